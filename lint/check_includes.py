#!/usr/bin/env python3
"""Checks every #include "..." of the tree against include_rules.txt (its head has the format).

Usage: check_includes.py [TREE]. Prints each forbidden include with the rule that it breaks and
exits with 1; exits with 0 when there is none.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def read_rules(path):
    """{folder: allowed prefixes}, in the order of the file."""
    rules = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            folder, _, allowed = line.partition(":")
            rules[folder] = allowed.split()
    return rules


def below(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def violations(tree, rules):
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={tree}", "ls-files", "--cached", "--others", "--exclude-standard",
         "--", "*.h", "*.cpp"],
        cwd=tree, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        source = tree / name
        if not source.is_file():
            continue
        folder = max((f for f in rules if below(name, f)), key=len, default=None)
        if folder is None:
            yield f"{name}: no rule of lint/include_rules.txt is about this folder"
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            found = re.match(r'#include "([^"]+/[^"]+)"', line)
            if not found:
                continue
            header = found.group(1)
            if not any(below(header, prefix) for prefix in [folder, *rules[folder]]):
                allowed = " ".join(rules[folder]) or "(nothing else)"
                yield f'{name}:{number}: includes "{header}"; the rule is "{folder}: {allowed}"'


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent).resolve()
    found = list(violations(tree, read_rules(HERE / "include_rules.txt")))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
