#!/usr/bin/env python3
"""clang-format and clang-tidy over the project's sources: lint_clang.py [-j N].

clang-tidy runs on each .cc of the compile database of build/release that is no test (headers are seen through them) and
is skipped where the file, all project headers that it reaches, its flags, .clang-tidy and the tool are those of a run
without findings: build/tidy-cache holds one empty file for each such run."""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import lint_common

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build/tidy-cache"
CACHE_MAX_FILES = 5000
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def check_format():
    """Findings of clang-format."""
    paths = [str(path) for path in lint_common.sources(ROOT)]
    run = subprocess.run(["clang-format-16", "--dry-run", "-Werror", *paths], capture_output=True, text=True, cwd=ROOT)
    lines = re.findall(rf"^{ROOT}/(.*?:\d+):\d+: error: ", run.stderr, re.M)
    if run.returncode and not lines:
        lines = [run.stderr.strip() or "clang-format-16 failed"]
    return [f"{line}: not as clang-format-16 writes it" for line in lines]


def reached_headers(path, seen):
    """The project's headers that a file includes, directly or not, into seen."""
    for name in _INCLUDE.findall(path.read_text(errors="replace")):
        for folder in (ROOT / "src", ROOT / "include", ROOT, path.parent):
            header = folder / name
            if header.is_file():
                if header not in seen:
                    seen.add(header)
                    reached_headers(header, seen)
                break
    return seen


def key(entry, settings):
    """A hash of everything that the outcome depends on."""
    path = pathlib.Path(entry["file"])
    digest = hashlib.sha256(settings + entry["command"].replace(str(ROOT), "").encode())
    for each in [path, *sorted(reached_headers(path, set()))]:
        digest.update(str(each.relative_to(ROOT)).encode() + b"\0" + each.read_bytes())
    return digest.hexdigest()


def tidy(entry, settings):
    """Findings in one file."""
    mark = CACHE / key(entry, settings)
    if mark.exists():
        mark.touch()
        return []
    command = ["clang-tidy-16", "-p", "build/release", "--quiet", entry["file"]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if run.returncode == 0:
        mark.touch()
        return []
    output = (run.stdout.strip() or run.stderr.strip()).replace(str(ROOT) + "/", "")
    return re.split(r"\n(?=\S+:\d+:\d+: (?:error|warning): )", output)


def entries():
    database = json.loads((ROOT / "build/release/compile_commands.json").read_text())
    seen = set()  # a file that several programs compile is looked at once
    for entry in database:
        path = pathlib.Path(entry["file"])
        if path in seen:
            continue
        seen.add(path)
        if path.is_relative_to(ROOT) and not path.name.endswith("_test.cc") and path.exists():
            yield entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", type=int, default=2, help="files at a time")
    options = parser.parse_args()
    findings = check_format()
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy-16", "--version"], capture_output=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    todo = list(entries())
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for found in pool.map(lambda entry: tidy(entry, settings), todo):
            findings += [finding for finding in found if finding not in findings]  # a header's come once a file
    for mark in sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime)[:-CACHE_MAX_FILES]:
        mark.unlink()
    return lint_common.finish("clang", findings, f"{len(todo)} files")


if __name__ == "__main__":
    sys.exit(main())
