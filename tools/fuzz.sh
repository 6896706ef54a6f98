#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET…]: runs each fuzz target, one line of result each. New inputs stay under build/fuzz/corpus;
# an input that fails is named, to be fixed and then kept under tests/fuzz/corpus/TARGET/ as a regression test.
set -euo pipefail
seconds=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
build=$here/build/fuzz
if [ $# = 0 ]; then
  for source in "$here"/tests/fuzz/*_fuzz.cc; do
    set -- "$@" "$(basename "$source" _fuzz.cc)"
  done
fi

failed=0
for name in "$@"; do
  found=$build/corpus/$name
  mkdir -p "$found" "$build/artifacts"
  log=$build/artifacts/$name.log
  if "$build/${name}_fuzz" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/artifacts/$name-" "$found" "$here/tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null; then
    runs=$(awk '/^stat::number_of_executed_units/ { print $2 }' "$log")
    covered=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
    echo "fuzz $name: ok, ${runs:-?} runs in $seconds s, ${covered:-cov: ?}"
  else
    failed=1
    echo "fuzz $name: FAILED; $(grep -o 'Test unit written to .*' "$log" || echo "see $log")"
    tail -n 40 "$log" >&2
  fi
done
exit $failed
