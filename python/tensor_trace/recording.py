"""Records a session with the program `tt`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import SessionError
from .session import Session, open


def record(
    model: str | os.PathLike[str],
    prompt: str | None = None,
    output: str | os.PathLike[str] = "session.ttrace",
    *,
    tokens: Sequence[int] | None = None,
    n_predict: int = 128,
    temperature: float | None = None,
    seed: int | None = None,
    force: bool = False,
    options: Sequence[str] = (),
    program: str | os.PathLike[str] = "tt",
) -> Session:
    """Runs one prompt (a text, or token ids) with `tt record` and opens the session.

    `options` are further options of `tt record`, such as ["--level", "verbose"]. `force` replaces
    an existing file. Raises SessionError with the message of the program.
    """
    found = shutil.which(program)
    if found is None:
        raise SessionError(
            f"The program {os.fspath(program)!r} was not found. Install tensor-trace, or pass the "
            "path of tt: record(..., program='/path/to/tt')."
        )
    if (prompt is None) == (tokens is None):
        raise ValueError("record() needs either a prompt or tokens")
    command = [
        found,
        "record",
        "--quiet",
        "--model",
        os.fspath(model),
        "--output",
        os.fspath(output),
    ]
    command.append(
        f"--prompt={prompt}" if prompt is not None else f"--tokens={','.join(map(str, tokens))}"
    )
    command += ["--n-predict", str(n_predict)]
    if temperature is not None:
        command += ["--temp", str(temperature)]
    if seed is not None:
        command += ["--seed", str(seed)]
    if force:
        command.append("--force")
    ran = subprocess.run([*command, *options], capture_output=True, text=True, errors="replace")
    if ran.returncode != 0:
        raise SessionError(ran.stderr.strip() or f"tt record failed (exit status {ran.returncode})")
    return open(Path(output))
