"""Reads sessions through the SQLite extension of an installed tensor-trace (docs/sql.md)."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from .decoder.session_file import SQLITE_ERRORS, connect, damage
from .errors import SessionError
from .frames import frame_of
from .schema import TABLES

# A path to tensor_trace.so, instead of that of the installation.
VARIABLE = "TENSOR_TRACE_EXTENSION"
_FILE = "tensor_trace.so"
_STEPS = {name for name, columns in TABLES.items() if "step" in columns}
_SLICE_ROWS = 1 << 16


def find_extension() -> Path | None:
    """The extension of the installation that `tt` on the PATH belongs to, or of the system."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    prefixes = [Path("/usr/local"), Path("/usr")]
    if program := shutil.which("tt"):
        prefixes.insert(0, Path(program).resolve().parent.parent)
    for prefix in prefixes:
        for folder in ("lib/tensor-trace", "lib", "lib64/tensor-trace", "lib/*/tensor-trace"):
            for found in sorted(prefix.glob(f"{folder}/{_FILE}")):
                return found
    return None


class Extension:
    """Queries one session file. One thread at a time."""

    name = "extension"

    def __init__(self, path: Path, extension: Path) -> None:
        """Raises SessionError if the extension cannot be loaded."""
        self._path = path
        self._db = connect(path)
        try:
            self._db.enable_load_extension(True)
            self._db.load_extension(str(extension))
            self._db.enable_load_extension(False)
            self._db.execute("PRAGMA query_only = ON")
        except (AttributeError, *SQLITE_ERRORS) as error:
            self._db.close()
            raise SessionError(
                f"The SQLite extension {extension} cannot be loaded: {error}."
            ) from error

    def close(self) -> None:
        self._db.close()

    def frames(
        self, table: str, columns: Sequence[str] | None, first: int = 0, end: int | None = None
    ) -> Iterator[pd.DataFrame]:
        wanted = list(TABLES[table] if columns is None else columns)
        query = f'SELECT {", ".join(wanted)} FROM "{table}"'
        if table in _STEPS:
            query += f" WHERE step >= {first}" + ("" if end is None else f" AND step < {end}")
        try:
            cursor = self._db.execute(query)
            while rows := cursor.fetchmany(_SLICE_ROWS):
                columns_of = list(zip(*rows))
                yield frame_of(table, {n: list(c) for n, c in zip(wanted, columns_of)}, wanted)
        except SQLITE_ERRORS as error:
            if str(error).startswith("no such"):
                raise SessionError(
                    f"The installed SQLite extension is of another version ({error}). Install this "
                    'version of tensor-trace, or use reader="decoder".'
                ) from error
            raise damage(self._path, error) from error

    def query(self, sql: str, values: Sequence[object] | dict[str, object]) -> sqlite3.Cursor:
        return self._db.execute(sql, values)
