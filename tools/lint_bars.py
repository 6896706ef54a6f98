#!/usr/bin/env python3
"""Checks tests/bars.toml: every mission row and every bar is there, and what is called delivered has a test and a command.

lint_bars.py [ROOT]        check
lint_bars.py --table       the state of each row, as a table

A row: `[A1]`, about = "…", status = "open" | "started" | "delivered", tests = ["src/room/x_test.cc:Suite.Name", …],
command = "flyball …" (what prints the figure)."""
import re
import sys
import tomllib

import lint_common

# The rows of the mission and the bars of the measures, by letter.
COUNTS = {"A": 11, "B": 8, "C": 10, "D": 10, "S": 5, "P": 7, "R": 11, "L": 6, "G": 5, "F": 6, "H": 7}
IDS = [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]
STATES = ("open", "started", "delivered")
KEYS = {"about", "status", "tests", "command"}
COMMANDS = ("flyball", "flyball-guard", "flyball-fakegpu", "flyball_bench", "./dev", "ctest", "python3", "npm")


def find_test(root, test):
    """What is wrong with "path:Suite.Name" (C++) or "path:Class.test" (Python) or "path" (a script), or None."""
    name, _, case = test.partition(":")
    path = root / name
    if not path.is_file():
        return f"test file {name} does not exist"
    if not case:
        return None if path.suffix not in (".cc", ".py") else f"{test} names no test in the file, as path:Suite.Name"
    suite, _, member = case.partition(".")
    text = path.read_text()
    if path.suffix == ".py":
        found = re.search(rf"class {re.escape(suite)}\b", text) and re.search(rf"def {re.escape(member)}\b", text)
    else:
        found = re.search(rf"\b\w*(TEST|PROP)\w*\(\s*{re.escape(suite)}\s*,\s*{re.escape(member)}\b", text)
    return None if found else f"{name} has no test {case}"


def check_row(root, identifier, row):
    """Yields what is wrong with one row."""
    for key in sorted(row.keys() - KEYS):
        yield f"unknown key {key}"
    if row.get("status") not in STATES:
        yield f"status {row.get('status')!r} is not one of {', '.join(STATES)}"
    if not row.get("about"):
        yield "says nothing in `about`"
    tests = row.get("tests", [])
    yield from filter(None, (find_test(root, test) for test in tests))
    command = row.get("command", "")
    if command and command.split()[0] not in COMMANDS:
        yield f"command starts with {command.split()[0]!r}, not one of {', '.join(COMMANDS)}"
    if row.get("status") == "delivered":
        if not tests:
            yield "delivered without a test"
        if not command:
            yield "delivered without the command that shows it"


def check(root):
    """(findings, number of rows)."""
    path = root / "tests/bars.toml"
    try:
        rows = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        return [f"tests/bars.toml: {error}"], 0
    findings = [f"tests/bars.toml: {identifier} is missing" for identifier in IDS if identifier not in rows]
    for identifier, row in rows.items():
        if identifier not in IDS:
            findings.append(f"tests/bars.toml: {identifier} is no mission row or bar")
        else:
            findings += [f"tests/bars.toml: {identifier}: {problem}" for problem in check_row(root, identifier, row)]
    return findings, len(rows)


def print_table(root):
    rows = tomllib.loads((root / "tests/bars.toml").read_text())
    print("| id | what | state | command |\n|---|---|---|---|")
    for identifier, row in rows.items():
        command = f"`{row['command']}`" if row.get("command") else ""
        print(f"| {identifier} | {row['about']} | {row['status']} | {command} |")


def main():
    root = lint_common.root_from_arguments()
    if "--table" in sys.argv:
        print_table(root)
        return 0
    findings, count = check(root)
    return lint_common.finish("bars", findings, f"{count} rows")


if __name__ == "__main__":
    sys.exit(main())
