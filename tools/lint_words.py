#!/usr/bin/env python3
"""Checks words and scripts: no paths of one machine, no registry hosts, no notes of unfinished work; shell and Python parse
and keep the bounds on sizes.

lint_words.py [ROOT]"""
import ast
import re
import subprocess
import sys

import lint_common

# The classes of one letter keep this file itself from matching.
WORDS = [
    ("a path of one machine", re.compile(r"(?<![\w.)}>*/-])/(?:[w]ork|[r]oot|[f]arm|[h]ome/\w+)(?=[/\s\"'`:;,)]|$)", re.M)),
    ("a registry's host", re.compile(r"\b(?:deb|security|registry|files|proxy|crates|index)\.(?:debian|[n]pmjs|pythonhosted|golang|docker)\.\w+|\bpypi\.[o]rg")),
    ("a note of unfinished work", re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX|[H]ACK)\b")),
]
# Written by tools, not by us.
GENERATED = ("package-lock.json", "web/dist/")
TEXT_LIMIT_BYTES = 2_000_000


def read_text(path):
    """The text of a file, or None for a binary, large or unreadable one."""
    try:
        if path.is_symlink() or path.stat().st_size > TEXT_LIMIT_BYTES:
            return None
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def check_words(name, text):
    for what, pattern in WORDS:
        for match in pattern.finditer(text):
            yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match.group(0)}"


def check_script(path, name, text):
    first = text.split("\n", 1)[0]
    if path.suffix in (".py", ".sh", ".ts") and text.count("\n") > lint_common.MAX_FILE_LINES:
        yield f"{name}: more than {lint_common.MAX_FILE_LINES} lines"
    if path.suffix == ".sh" or re.match(r"#!.*\b(ba)?sh\b", first):
        run = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
        if run.returncode:
            yield f"{name}: bash -n: {run.stderr.strip()}"
    elif path.suffix == ".py" or re.match(r"#!.*\bpython3?\b", first):
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            yield f"{name}:{error.lineno}: {error.msg}"
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 70:
                yield f"{name}:{node.lineno}: function {node.name} has more than 70 lines"


def main():
    root = lint_common.root_from_arguments()
    findings, count = [], 0
    for path in lint_common.files(root):
        name = str(path.relative_to(root))
        text = None if any(part in name for part in GENERATED) else read_text(path)
        if text is None:
            continue
        count += 1
        if not name.startswith("tests/fuzz/corpus/"):
            findings += check_words(name, text)
        findings += check_script(path, name, text)
    return lint_common.finish("words", findings, f"{count} files")


if __name__ == "__main__":
    sys.exit(main())
