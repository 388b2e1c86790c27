#!/usr/bin/env python3
"""Code that words answers decides nothing: a number with a fraction in api/text/ and cli/ is a
threshold, which belongs into analysis/findings/, beside the others. cli/video/ draws: its
fractions are places and sizes in a picture.

Usage: lint/check_thresholds.py [TREE]. Exit status: 0 none, 1 found."""
import re
import sys
from pathlib import Path

FOLDERS = ("api/text", "cli")
PICTURES = "cli/video"
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*')
FRACTION = re.compile(r"(?<![\w.])\d*\.\d*[1-9]\d*(?![\w.])")


def found_in(tree):
    for folder in FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            is_picture = path.is_relative_to(tree / PICTURES)
            if path.suffix not in (".cpp", ".h") or is_picture:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if FRACTION.search(QUOTED.sub("", line)):
                    yield f"{path.relative_to(tree)}:{number}: {line.strip()}"


def main():
    tree = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(found_in(tree))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
