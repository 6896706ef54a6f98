#!/usr/bin/env python3
"""Guards speed by instruction counts, which unlike time do not depend on what else the machine does.

instructions.py [--update] [NAME…]: counts each entry of bench/instructions.toml with callgrind and fails where it takes
more than 5 % over the committed count; --update writes the counts down. An entry:

  [NAME]
  command = "flyball_bench --benchmark_filter=^csv_read$ --benchmark_min_time=0"   a program of build/release
  function = "*csv_read(benchmark::State&)"   only what runs inside this function is counted (callgrind's --toggle-collect)
  instructions = 123456"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "bench/instructions.toml"
ALLOWED_GROWTH = 0.05


def count(entry):
    """The instructions that one entry's function takes; raises where callgrind does not say."""
    program, *arguments = shlex.split(entry["command"])
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={entry['function']}"]
    command = [*valgrind, ROOT / "build/release" / program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    collected = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not collected or not int(collected.group(1)):
        raise RuntimeError(f"{shlex.join(map(str, command))}\n{run.stderr}: nothing was counted")
    return int(collected.group(1))


def write(entries):
    """Writes the list again, keeping its comment."""
    comment = [line for line in LIST.read_text().splitlines() if line.startswith("#")]
    for name, entry in entries.items():
        comment += ["", f"[{name}]"] + [f'{key} = "{entry[key]}"' for key in ("command", "function")]
        comment += [f"instructions = {entry['instructions']}"]
    LIST.write_text("\n".join(comment) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    entries = tomllib.loads(LIST.read_text())
    grown = 0
    for name in options.names or entries:
        counted = count(entries[name])
        change = counted / entries[name].get("instructions", counted) - 1
        grown += change > ALLOWED_GROWTH
        print(f"{name}: {counted} instructions, {change:+.1%}{'  MORE' if change > ALLOWED_GROWTH else ''}")
        entries[name]["instructions"] = counted
    if options.update:
        write(entries)
        return 0
    print(f"instructions: {grown} of {len(options.names or entries)} grew by more than {ALLOWED_GROWTH:.0%}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
