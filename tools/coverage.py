#!/usr/bin/env python3
"""Line coverage a room, from the counts that `./dev coverage` left in build/coverage (tests and mains left out)."""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    command = ["gcovr", ROOT / "build/coverage", "--root", ROOT, "--filter", "src/", "--filter", "fakegpu/"]
    command += ["--exclude", r".*_test\.cc", "--json-summary"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    rooms = collections.defaultdict(lambda: [0, 0])
    for file in json.loads(run.stdout)["files"]:
        parts = pathlib.PurePath(file["filename"]).parts
        for name in (parts[1] if parts[0] == "src" else parts[0], "all"):
            rooms[name][0] += file["line_covered"]
            rooms[name][1] += file["line_total"]
    print(f"{'room':<12} {'lines':>7} {'covered':>8}")
    for name, (covered, total) in sorted(rooms.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:<12} {total:>7} {100 * covered / total if total else 0:>7.1f}%")


if __name__ == "__main__":
    sys.exit(main())
