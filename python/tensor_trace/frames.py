"""Columns to data frames with the types of `schema`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import union_categoricals

from .schema import TABLES, TEXT

_PER_STEP = {
    "phase": ("prompt", "generate", "encode", "embed", "other"),
    "timing": ("fast", "learned", "exact", "none"),
    "verdict": ("clean", "contended", "throttled", "disk"),
    "kind": ("major", "minor"),
    "draft": ("accepted", "rejected", "unknown"),
}


class Coded:
    """A column of texts: indices into a list of texts; -1: missing."""

    def __init__(self, codes: NDArray, texts: Sequence[str]) -> None:
        self.codes, self.texts = codes, texts

    @staticmethod
    def of(values: Iterable[str | None], texts: Sequence[str] = ()) -> Coded:
        known = {text: code for code, text in enumerate(texts)}
        codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
        return Coded(np.array(codes, np.int32), list(known))

    def take(self, at: NDArray) -> Coded:
        return Coded(self.codes[at], self.texts)


class Missing:
    """A column of numbers, some of which are missing."""

    def __init__(self, values: NDArray, missing: NDArray) -> None:
        self.values, self.missing = values, missing

    @staticmethod
    def of(values: Iterable[int | None]) -> Missing:
        listed = list(values)
        missing = np.array([value is None for value in listed], bool)
        numbers = [0 if value is None else _as_signed(value) for value in listed]
        return Missing(np.array(numbers, np.int64), missing)

    def take(self, at: NDArray) -> Missing:
        return Missing(self.values[at], self.missing[at])


def _as_signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


Column = NDArray | Coded | Missing | list


def frame_of(table: str, columns: Mapping[str, Column], wanted: Sequence[str]) -> pd.DataFrame:
    types = TABLES[table]
    return pd.DataFrame({name: _typed(columns[name], types[name], name) for name in wanted})


def _typed(column: Column, kind: str, name: str):
    if kind == TEXT:
        if not isinstance(column, Coded):
            column = Coded.of(column, _PER_STEP.get(name, ()))
        return pd.Categorical.from_codes(column.codes, pd.Index(column.texts, dtype=object))
    if kind in ("Int32", "Int64"):
        if not isinstance(column, Missing):
            column = Missing.of(column)
        return pd.arrays.IntegerArray(column.values.astype(kind.lower()), column.missing)
    if isinstance(column, Missing):
        return np.where(column.missing, np.nan, column.values).astype(kind)
    if kind == "object":
        return pd.Series(column, dtype=object)
    if kind.startswith("float"):
        return np.asarray(column, kind)
    return np.asarray(column).astype(kind)


def step_texts(name: str) -> tuple[str, ...]:
    """The possible texts of a column that has the same value in a whole step."""
    return _PER_STEP[name]


def concatenated(
    table: str, columns: Sequence[str] | None, frames: Iterator[pd.DataFrame] | list[pd.DataFrame]
) -> pd.DataFrame:
    """The rows of all frames of a table, which share their categories afterwards."""
    frames = [frame for frame in frames if len(frame)]
    names = list(TABLES[table] if columns is None else columns)
    if not frames:
        return frame_of(table, {name: [] for name in names}, names)
    if len(frames) == 1:
        return frames[0]
    for name in names:
        parts = [frame[name] for frame in frames]
        if parts[0].dtype == "category" and any(
            not part.cat.categories.equals(parts[0].cat.categories) for part in parts
        ):
            categories = union_categoricals([part.array for part in parts]).categories
            for frame in frames:
                frame[name] = frame[name].cat.set_categories(categories)
    return pd.concat(frames, ignore_index=True)
