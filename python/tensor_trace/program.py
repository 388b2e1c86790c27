"""Runs the program `tt` of an installed tensor-trace."""

from __future__ import annotations

import os
import shutil
import subprocess

from .errors import SessionError

Program = str | os.PathLike[str]


def run_tt(program: Program, verb: str, *arguments: str) -> str:
    """What `tt VERB ...` prints. Raises SessionError with its message if it fails."""
    found = shutil.which(program)
    if found is None:
        raise SessionError(
            f"The program {os.fspath(program)!r} was not found. Install tensor-trace, or pass the "
            "path of tt: program='/path/to/tt'."
        )
    ran = subprocess.run(
        [found, verb, *arguments], capture_output=True, text=True, errors="replace"
    )
    if ran.returncode != 0:
        raise SessionError(ran.stderr.strip() or f"tt {verb} failed (exit status {ran.returncode})")
    return ran.stdout
