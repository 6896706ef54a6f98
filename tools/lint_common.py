"""What the lints share: the files of the tree, and how findings are printed."""
import os
import pathlib
import sys

SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__", ".cache"}
SOURCE_FOLDERS = ("src", "fakegpu", "include", "tests", "bench")
MAX_FILE_LINES = 600
SOURCE_SUFFIXES = {".h", ".c", ".cc"}


def files(root, *folders):
    """All files under root (or under the named folders of it), sorted, without build outputs."""
    for top in folders or (".",):
        for folder, names, leaves in os.walk(pathlib.Path(root) / top):
            names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
            for leaf in sorted(set(leaves) - SKIPPED_FOLDERS):
                yield pathlib.Path(folder) / leaf


def sources(root):
    """The C and C++ files of the project."""
    return [path for path in files(root, *SOURCE_FOLDERS) if path.suffix in SOURCE_SUFFIXES]


def root_from_arguments():
    """The tree to check: the first argument that is no option, or the checkout that holds this file."""
    given = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    return pathlib.Path(given[0] if given else pathlib.Path(__file__).parent.parent).resolve()


def finish(name, findings, checked):
    """Prints the findings; the exit status."""
    for finding in findings:
        print(finding)
    print(f"{name}: {len(findings)} findings, {checked} checked")
    return 1 if findings else 0
