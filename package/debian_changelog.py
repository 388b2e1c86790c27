"""debian_changelog.py CHANGELOG.md CONTACT OUTPUT: writes the changelog in the format of Debian."""

import gzip
import re
import sys
from email.utils import formatdate
from pathlib import Path


def main(changelog: str, contact: str, output: str) -> None:
    text = Path(changelog).read_text()
    date = formatdate(Path(changelog).stat().st_mtime)
    out = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        version, _, changes = section.partition("\n")
        entries = re.sub(r"^(- )?(?=\S)", lambda m: "* " if m[1] else "", changes, flags=re.MULTILINE)
        lines = "".join(f"  {line}".rstrip() + "\n" for line in entries.strip().splitlines())
        out.append(
            f"tensor-trace ({version.split()[0]}) unstable; urgency=medium\n\n{lines}\n"
            f" -- {contact}  {date}\n"
        )
    Path(output).write_bytes(gzip.compress("\n".join(out).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
