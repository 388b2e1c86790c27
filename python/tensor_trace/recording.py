"""Records a session with the program `tt`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .program import Program, run_tt
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
    program: Program = "tt",
) -> Session:
    """Runs one prompt (a text, or token ids) with `tt record` and opens the session.

    `options` are further options of `tt record`, such as ["--level", "verbose"]. `force` replaces
    an existing file. Raises SessionError with the message of the program.
    """
    if (prompt is None) == (tokens is None):
        raise ValueError("record() needs either a prompt or tokens")
    command = [
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
    run_tt(program, "record", *command, *options)
    return open(Path(output))
