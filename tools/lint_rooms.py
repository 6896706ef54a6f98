#!/usr/bin/env python3
"""Checks the rooms: who includes whom (doc/rooms.txt), READMEs, sizes of files and functions, where heavy headers may be.

lint_rooms.py [ROOT]"""
import fnmatch
import re
import sys

import cpp_functions
import lint_common

MAX_FUNCTION_LINES = 70
MAX_README_LINES = 30
_ROW = re.compile(r"^(\d+)\s+([a-z]+)\s*:([a-z ]*)(?:\[([a-z]+)\])?\s*$")
_INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)


def read_rooms(root, findings):
    """{room: (floor, rooms it may include, folder)}; findings about rows that break the floors."""
    rooms = {}
    for number, line in enumerate((root / "doc/rooms.txt").read_text().splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        row = _ROW.match(line)
        if not row:
            findings.append(f"doc/rooms.txt:{number}: not `FLOOR ROOM : ROOMS [FOLDER]`: {line}")
            continue
        floor, room, allowed, folder = row.groups()
        if room in rooms:
            findings.append(f"doc/rooms.txt:{number}: room {room} has two rows")
        rooms[room] = (int(floor), allowed.split(), folder or f"src/{room}")
        for other in allowed.split():
            if other not in rooms:
                findings.append(f"doc/rooms.txt:{number}: {room} names {other}, which has no row above")
            elif rooms[other][0] >= int(floor):
                findings.append(f"doc/rooms.txt:{number}: {room} (floor {floor}) names {other} of floor {rooms[other][0]}")
    return rooms


def check_include(rooms, room, target):
    """What is wrong with room's file including "target", or None."""
    other = target.split("/")[0]
    if "/" not in target:
        return f'"{target}": write the room, "{room}/{target}"'
    if other == room or (other == "flyball" and target.endswith(".h")):
        return None
    if other not in rooms:
        return f'"{target}": {other} is no room of doc/rooms.txt'
    if rooms[other][0] >= rooms[room][0]:
        return f'"{target}": room {room} is on floor {rooms[room][0]} and {other} on {rooms[other][0]}; only lower floors'
    if other not in rooms[room][1]:
        return f'"{target}": the row of {room} in doc/rooms.txt does not name {other}'
    return None


def check_room_includes(rooms, texts, findings):
    for room, (_, _, folder) in rooms.items():
        for path, text in texts.items():
            if not path.startswith(folder + "/"):
                continue
            for match in _INCLUDE.finditer(text):
                if match.group(1) == '"':
                    problem = check_include(rooms, room, match.group(2))
                    if problem:
                        findings.append(f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}: includes {problem}")
    known = {folder for _, _, folder in rooms.values()}
    for folder in sorted({"/".join(path.split("/")[:2]) for path in texts if path.startswith("src/")}):
        if folder not in known:
            findings.append(f"{folder}: no row in doc/rooms.txt")


def check_readmes(root, rooms, texts, findings):
    for room, (_, _, folder) in rooms.items():
        if not any(path.startswith(folder + "/") and path.endswith((".cc", ".h")) for path in texts):
            continue
        readme = root / folder / "README.md"
        if not readme.exists():
            findings.append(f"{folder}/README.md: missing (purpose, one flow, invariants)")
        elif (lines := len(readme.read_text().splitlines())) > MAX_README_LINES:
            findings.append(f"{folder}/README.md: {lines} lines, at most {MAX_README_LINES}")


def check_sizes(texts, findings):
    for path, text in texts.items():
        lines = text.count("\n")
        if lines > lint_common.MAX_FILE_LINES:
            findings.append(f"{path}: {lines} lines, at most {lint_common.MAX_FILE_LINES}: is it still one idea?")
        for name, line, length in cpp_functions.functions(text):
            if length > MAX_FUNCTION_LINES:
                findings.append(f"{path}:{line}: function {name} has {length} lines, at most {MAX_FUNCTION_LINES}")


def read_heavy_headers(root):
    """[(header pattern, [file patterns])] of doc/heavy_headers.txt."""
    listed = root / "doc/heavy_headers.txt"
    rows = listed.read_text().splitlines() if listed.exists() else []
    return [(row.split(":")[0].strip(), row.split(":")[1].split()) for row in rows if ":" in row and row[0] != "#"]


def check_heavy_headers(root, texts, findings):
    for header, allowed in read_heavy_headers(root):
        for path, text in texts.items():
            if not any(fnmatch.fnmatchcase(match.group(2), header) for match in _INCLUDE.finditer(text)):
                continue
            of_tests = path.startswith("tests/")  # what they share is a header, and no program includes it
            if not (path.endswith(".cc") or of_tests) or not any(fnmatch.fnmatchcase(path, pattern) for pattern in allowed):
                findings.append(f"{path}: includes {header}, which doc/heavy_headers.txt gives to: {' '.join(allowed)}")


def main():
    root = lint_common.root_from_arguments()
    findings = []
    rooms = read_rooms(root, findings)
    texts = {str(path.relative_to(root)): path.read_text(errors="replace") for path in lint_common.sources(root)}
    check_room_includes(rooms, texts, findings)
    check_readmes(root, rooms, texts, findings)
    check_sizes(texts, findings)
    check_heavy_headers(root, texts, findings)
    return lint_common.finish("rooms", findings, f"{len(texts)} files in {len(rooms)} rooms")


if __name__ == "__main__":
    sys.exit(main())
