#!/usr/bin/env python3
"""Adds up ctest's JUnit files: `ctest_sum.py [--also-failed N] FILE…` ends with the line 'N passed, N failed, N skipped'.

A GoogleTest binary is one ctest test; cases inside it that skipped themselves (data absent) are listed before that line."""
import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--also-failed", type=int, default=0, help="steps that failed outside ctest")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    passed, failed, skipped = 0, options.also_failed, 0
    for path in options.files:
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            print(f"{path}: {error}")
            failed += 1
            continue
        for case in cases:
            status = case.get("status")
            passed += status == "run"
            failed += status == "fail"
            skipped += status not in ("run", "fail")
            if status == "fail":
                print(f"failed: {case.get('name')} ({path})")
            output = case.findtext("system-out") or ""
            for name in sorted(set(re.findall(r"^\[  SKIPPED \] (\S+\.\S+) \(\d+ ms\)$", output, re.M))):
                print(f"skipped inside {case.get('name')}: {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
