"""Several sessions as one data frame each."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from .errors import MissingSession
from .frames import concatenated
from .program import Program, run_tt
from .session import Reader, Session
from .trend import By, Trend, trend_of

Pathname = str | os.PathLike[str]


def open_set(paths: Pathname | Sequence[Pathname], *, reader: Reader = "auto") -> SessionSet:
    """Several sessions: a folder (its `*.ttrace`), a pattern, a file, or a list of these.

    Their names are those of `tt sql` and `tt compare`: the name of the file without `.ttrace`, or
    its path where two files have the same name. No file is opened yet.

    Raises MissingSession if a folder or a pattern has no session.
    """
    return SessionSet(paths, reader=reader)


class SessionSet:
    """The tables of several sessions, each with a column `session` first. One thread at a time.

    A loop over it opens one session after the other, under its name:

        for name, session in runs:
            print(name, session.text)
    """

    def __init__(
        self, paths: Pathname | Sequence[Pathname], *, reader: Reader = "auto"
    ) -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        files = {file for of in given for file in _files(os.fspath(of))}
        uses = Counter(_stem(file) for file in files)
        named = {_stem(file) if uses[_stem(file)] == 1 else _path(file): file for file in files}
        self._paths = {name: Path(named[name]) for name in sorted(named, key=os.fsencode)}
        self._reader: Reader = reader

    @property
    def names(self) -> list[str]:
        return list(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[tuple[str, Session]]:
        for name in self._paths:
            with self.open(name) as session:
                yield name, session

    def open(self, name: str) -> Session:
        """The session of that name. Close it."""
        return Session(self._paths[name], reader=self._reader)

    def table(
        self, name: str, columns: Sequence[str] | None = None, steps: range | None = None
    ) -> pd.DataFrame:
        """A table of docs/sql.md over all sessions, in the order of their names. `steps`: only
        these steps of each."""
        frames, rows = [], []
        for _, session in self:
            frames.append(session.table(name, columns, steps))
            rows.append(len(frames[-1]))
        frame = concatenated(name, columns, list(frames))
        sessions = pd.Categorical.from_codes(
            [code for code, count in enumerate(rows) for _ in range(count)],
            categories=self.names,
            ordered=True,
        )
        frame.insert(0, "session", sessions)
        return frame

    def steps(
        self, columns: Sequence[str] | None = None, steps: range | None = None
    ) -> pd.DataFrame:
        """Session.steps() of all sessions."""
        return self.table("step", columns, steps)

    def ops(self, columns: Sequence[str] | None = None, steps: range | None = None) -> pd.DataFrame:
        """Session.ops() of all sessions."""
        return self.table("op", columns, steps)

    def tokens(self) -> pd.DataFrame:
        """The tokens of all sessions."""
        return self.table("token")

    def experts(self, steps: range | None = None) -> pd.DataFrame:
        """The choices of routers in all sessions."""
        return self.table("expert", None, steps)

    def trend(
        self, by: By = "day", *, disturbed: bool = False, program: Program = "tt"
    ) -> Trend:
        """Whether times, rates and bytes rise or fall over the days on which the sessions were
        recorded, or from session to session. `disturbed`: times that other work of the machine
        disturbed count, too.

        The figures are computed by `tt trend`. Raises SessionError if there is no program `tt`, or
        with its message.
        """
        options = ["--json", "--by", by, *(["--disturbed"] if disturbed else [])]
        files = [os.path.abspath(path) for path in self._paths.values()]
        return trend_of(run_tt(program, "trend", *options, *files))

    def __repr__(self) -> str:
        return f"<SessionSet of {len(self)}: {', '.join(self.names[:3])}{', ...' * (len(self) > 3)}>"


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(glob.glob(os.path.join(glob.escape(path), "*.ttrace")))
        if not found:
            raise MissingSession(f"{path} is a folder without sessions (*.ttrace).")
        return found
    if not os.path.exists(path) and any(letter in path for letter in "*?["):
        found = sorted(glob.glob(path))
        if not found:
            raise MissingSession(f"No file matches {path}.")
        return found
    return [path]


def _stem(file: str) -> str:
    return _path(os.path.basename(file))


def _path(file: str) -> str:
    return file.removesuffix(".ttrace")
