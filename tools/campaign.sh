#!/usr/bin/env bash
# The long versions of everything: tests labelled campaign with FLYBALL_CAMPAIGN=1, fuzzing 600 s a target (or
# FLYBALL_FUZZ_SECONDS), benchmarks. Prints Markdown for doc/benchmarks.md. A test or benchmark adds a row by printing a
# line `bar: ID what = figure unit`.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
logs=$here/build/campaign
mkdir -p "$logs"
failed=0

cmake --preset release -S "$here" >"$logs/configure.log"
"$here/dev" build
FLYBALL_CAMPAIGN=1 ctest --test-dir "$here/build/release" -L campaign --verbose --timeout 14400 \
  --output-junit campaign.xml >"$logs/tests.log" 2>&1 || failed=1
"$here/dev" bench >"$logs/bench.log" 2>&1 || failed=1
"$here/dev" fuzz "${FLYBALL_FUZZ_SECONDS:-600}" >"$logs/fuzz.log" 2>"$logs/fuzz_errors.log" || failed=1

"$here/tools/machine.sh"
printf '\n| id | what | figure |\n|---|---|---|\n'
sed -nE 's/^([0-9]+: )?bar: ([A-Z][0-9]+) (.*[^ ]) += +(.*)$/| \2 | \3 | \4 |/p' "$logs/tests.log" "$logs/bench.log" | sort -V
sed -nE 's/^fuzz ([a-z_0-9]+): (.*)$/| G4 | fuzz \1 | \2 |/p' "$logs/fuzz.log"
printf '\n'
python3 "$here/tools/ctest_sum.py" "$here/build/release/campaign.xml" || failed=1
[ $failed = 0 ] || echo "campaign: something failed; see build/campaign/" >&2
exit $failed
