#!/usr/bin/env python3
"""report_plots.py PAGE.html FOLDER PREFIX: the plots of a report as SVG files of their own, PREFIX-1.svg and on, with
the page's style in them, for documents."""

import pathlib
import re
import sys


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    folder, prefix = pathlib.Path(sys.argv[2]), sys.argv[3]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    if not style or not plots:
        print(f"{sys.argv[1]}: there is no plot in it", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for number, plot in enumerate(plots, 1):
        tag, rest = plot.split(">", 1)
        text = f"{tag}>\n<style>{style.group(1)}</style>{rest}\n"
        (folder / f"{prefix}-{number}.svg").write_text(text, encoding="utf-8")
        print(folder / f"{prefix}-{number}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
