"""debian_changelog.py CHANGELOG.md CONTACT OUTPUT: writes the changes of the newest version in the
format of Debian's changelogs."""

import gzip
import re
import sys
from email.utils import formatdate
from pathlib import Path
from textwrap import fill


def main(changelog: str, contact: str, output: str) -> None:
    newest = re.split(r"^## ", Path(changelog).read_text(), flags=re.MULTILINE)[1]
    version, _, changes = newest.partition("\n")
    entries = [" ".join(entry.split()) for entry in re.split(r"^- ", changes, flags=re.MULTILINE)]
    lines = [
        fill(entry, 78, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False)
        for entry in entries
        if entry
    ]
    text = (
        f"tensor-trace ({version.split()[0]}) unstable; urgency=medium\n\n"
        + "\n".join(lines)
        + f"\n\n -- {contact}  {formatdate(Path(changelog).stat().st_mtime)}\n"
    )
    # Without a time, so that the same text is the same file.
    Path(output).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
