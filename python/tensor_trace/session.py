"""A session as data frames."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .decoder.names import expert_name
from .decoder.session_file import SQLITE_ERRORS, damage
from .decoder.sql import TemporaryTables
from .decoder.tables import Decoder
from .errors import SessionError
from .extension import Extension, find_extension
from .frames import concatenated
from .schema import TABLES

Reader = Literal["auto", "extension", "decoder"]

MAX_ROWS = 20_000_000  # of one data frame of accesses, unless the caller says otherwise
MAX_SLICE_ROWS = 1_000_000

_WEIGHT_COLUMNS = [
    "tensor_name", "file_offset", "size_bytes", "layer_id", "component_type", "model_file",
    "tensor_type",
]  # fmt: skip


def open(
    path: str | os.PathLike[str], *, reader: Reader = "auto", running: bool = False
) -> Session:
    """Opens a session file (`.ttrace`) for reading.

    `reader`: "decoder" reads the file with this package alone, "extension" through the SQLite
    extension of an installed tensor-trace. "auto" makes data frames with the decoder, which is
    faster in Python, and runs SQL in the extension if it is installed.
    `running`: also opens a session that is still being recorded, with the steps so far.

    Raises MissingSession, DamagedSession, NewerVersion or RunningSession.

    >>> session = open("s.ttrace")
    >>> session
    <Session 's.ttrace': 19 tokens in 12 steps, done>
    """
    return Session(Path(path), reader=reader, running=running)


class Session:
    """One recorded request. Use it as a context manager, or close() it. One thread at a time."""

    def __init__(self, path: Path, *, reader: Reader = "auto", running: bool = False) -> None:
        self.path = path
        self._extension: Extension | None = None
        self._tables: TemporaryTables | None = None
        found = None if reader == "decoder" else find_extension()
        if reader == "extension" and found is None:
            raise SessionError(
                "The SQLite extension of tensor-trace is not installed. Install tensor-trace, set "
                'TENSOR_TRACE_EXTENSION to tensor_trace.so, or use reader="decoder".'
            )
        self._decoder = Decoder(path, running=running)
        self._source: Extension | Decoder = self._decoder
        try:
            if found is not None:
                self._extension = Extension(path, found)
            if self._extension is not None and reader == "extension":
                self._source = self._extension
        except SessionError:
            if reader == "extension":
                self.close()
                raise

    def close(self) -> None:
        for part in (self._tables, self._extension, self._decoder):
            if part is not None:
                part.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def reader(self) -> str:
        """What makes the data frames: "decoder" or "extension"."""
        return self._source.name

    # --- what the session is ---

    @cached_property
    def info(self) -> dict[str, Any]:
        """The row of the table `session`: id, title, state, level, shape of the model, losses.

        >>> session.info["state"], session.info["n_layers"]
        ('done', 2)
        """
        row = self.table("session").iloc[0]
        return {
            str(name): getattr(value, "item", lambda v=value: v)() for name, value in row.items()
        }

    @cached_property
    def facts(self) -> dict[str, str]:
        """Facts about the model, the request and the machine.

        >>> session.facts["model.architecture"]
        'llama'
        """
        table = self.table("metadata")
        return dict(zip(table.name, table.value))

    @cached_property
    def is_moe(self) -> bool:
        return bool(self.info["n_experts"])

    # --- data frames ---

    def table(
        self, name: str, columns: Sequence[str] | None = None, steps: range | None = None
    ) -> pd.DataFrame:
        """A table of docs/sql.md as a data frame. `steps`: only these consecutive steps."""
        if name not in TABLES:
            raise ValueError(f"There is no table {name!r}. The tables are: {', '.join(TABLES)}.")
        _check_columns(name, columns)
        first, end = _range(steps)
        return concatenated(name, columns, self._source.frames(name, columns, first, end))

    def steps(
        self, columns: Sequence[str] | None = None, steps: range | None = None
    ) -> pd.DataFrame:
        """One row per evaluation of a graph: phase, tokens, times, bytes, what the machine did.

        >>> session.steps().groupby("phase", observed=True).token_count.sum().to_dict()
        {'prompt': 7, 'generate': 11}
        """
        return self.table("step", columns, steps)

    def ops(self, columns: Sequence[str] | None = None, steps: range | None = None) -> pd.DataFrame:
        """One row per executed op of each step: kind, layer, time, bytes.

        >>> ops = session.ops(["operation_type", "duration_ns"], steps=range(1, 12))
        >>> ops.operation_type.value_counts().idxmax()
        'MUL_MAT'
        """
        return self.table("op", columns, steps)

    def tokens(self) -> pd.DataFrame:
        """The tokens of the prompt and of the answer.

        >>> session.tokens().generated.sum()
        np.int64(12)
        """
        return self.table("token")

    def experts(self, steps: range | None = None) -> pd.DataFrame:
        """The choices of the routers: one row per token, layer and rank. Empty without experts."""
        return self.table("expert", None, steps)

    def faults(self, steps: range | None = None) -> pd.DataFrame:
        """Page faults, with the op and the tensor that they belong to."""
        return self.table("fault", None, steps)

    def residency(self, steps: range | None = None) -> pd.DataFrame:
        """What of each weight was in memory before a step, if this was recorded."""
        return self.table("residency", None, steps)

    def values(
        self, name: str | None = None, steps: range | None = None
    ) -> Iterator[tuple[int, int, str, NDArray[np.float32]]]:
        """The captured outputs of ops (`tt record --capture`), in the order of execution: step, op,
        name and values, with the innermost dimension last. Attention weights are called
        `attention-3`, what the model would say after a layer `lens-3`, source 1 of an op
        `ffn_up-3.src1`, the largest values of rows `l_out-3.top`. `name`: only this output. One
        step is in memory at a time.

        >>> for step, op, name, values in session.values("l_out-1"):
        ...     print(step, name, values.shape)
        """
        first, end = _range(steps)
        templates = {of.id: of.template for of in self._decoder.file.steps(first, end)}
        for of in self._decoder.file.values(first, end):
            derived = self._decoder.templates.get(templates.get(of.step, 0))
            if of.outputs and (derived is None or of.outputs[-1][0] >= len(derived.graph.ops)):
                raise damage(self.path, f"the captured values of step {of.step}, their ops")
            for op, what, values in of.outputs:
                graph = derived.graph
                output = graph.tensors[graph.nodes[graph.ops[op].last].output].name
                if what in ("attention", "lens"):
                    layer = graph.ops[op].layer
                    output = what if layer < 0 else f"{what}-{layer}"
                elif what:
                    output += "." + what
                if name in (None, output):
                    yield of.step, op, output, values

    def tensors(self) -> pd.DataFrame:
        """The tensors of each template: name, type, shape, layer, place in the file."""
        return self.table("tensor")

    def templates(self) -> pd.DataFrame:
        """The distinct graphs."""
        return self.table("template")

    def edges(self) -> pd.DataFrame:
        """Which tensor is computed from which, by template."""
        return self.table("edge")

    def iter_accesses(
        self,
        columns: Sequence[str] | None = None,
        steps: range | None = None,
        *,
        rows: int = 1 << 16,
        per_token: bool = False,
        per_head: bool = False,
    ) -> Iterator[pd.DataFrame]:
        """The accesses in data frames of about `rows` rows. Only one of them is in memory, so a
        session of any size can be read.

        `per_token`: a step of several tokens (a prompt) has its rows once for each token;
        `token_count` is the number of tokens that share a row.
        `per_head`: a read of a whole Q, K, V or O weight has one row per head if each of its bytes
        belongs to one head.

        >>> sum(len(frame) for frame in session.iter_accesses(["size_bytes"]))
        1457
        """
        _check_columns("access", columns)
        first, end = _range(steps)
        if isinstance(self._source, Extension) and not (per_token or per_head):
            yield from self._source.frames("access", columns, first, end)
            return
        yield from self._decoder.accesses(
            columns,
            first,
            end,
            rows=min(rows, MAX_SLICE_ROWS),
            per_token=per_token,
            per_head=per_head,
        )

    def accesses(
        self,
        columns: Sequence[str] | None = None,
        steps: range | None = None,
        *,
        per_token: bool = False,
        per_head: bool = False,
        max_rows: int = MAX_ROWS,
    ) -> pd.DataFrame:
        """The accesses in one data frame: one row per read or write of a tensor by an op of a step
        (iter_accesses() explains the options). Raises SessionError if there are more than
        `max_rows`: iterate, or ask for fewer steps.

        >>> reads = session.accesses(["tensor_kind", "size_bytes"])
        >>> int(reads.size_bytes[reads.tensor_kind == "weight"].sum())
        21712272
        """
        frames, count = [], 0
        for frame in self.iter_accesses(columns, steps, per_token=per_token, per_head=per_head):
            frames.append(frame)
            count += len(frame)
            if count > max_rows:
                raise SessionError(
                    f"{self.path} has more than {max_rows:,} accesses. Use iter_accesses(), which "
                    "keeps one part of them in memory, select steps=range(A, B), or set max_rows."
                )
        return concatenated("access", columns, frames)

    def weights(self) -> pd.DataFrame:
        """The weights that the session used, by place in the file; each expert has a row of its
        own. Columns as in `gguf_structure.csv` (docs/exports.md); layer_id -1: no layer.

        >>> session.weights().tensor_name.head(2).tolist()
        ['output.weight', 'token_embd.weight']
        """
        tensors = self.tensors()
        whole = tensors[tensors.file_bytes.notna() & tensors.view_of.isna()]
        rows = []
        for of in whole.drop_duplicates(["model_file", "file_offset"]).itertuples():
            size, begin = int(of.file_bytes), int(of.file_offset)
            row = {
                "tensor_name": of.tensor_name,
                "file_offset": begin,
                "size_bytes": size,
                "layer_id": -1 if of.layer_id is pd.NA else of.layer_id,
                "component_type": of.component,
                "model_file": of.model_file,
                "tensor_type": of.tensor_type,
            }
            rows.append(row)
            if "_exps" in of.tensor_name and of.ne2 > 1:
                for expert in range(of.ne2):
                    name = expert_name(of.tensor_name, expert)
                    at = begin + expert * of.nb2
                    rows.append(
                        row | {"tensor_name": name, "file_offset": at, "size_bytes": of.nb2}
                    )
        frame = pd.DataFrame(rows, columns=_WEIGHT_COLUMNS)
        frame = frame.sort_values(["model_file", "file_offset"], kind="stable")
        return frame.reset_index(drop=True)

    # --- SQL ---

    def sql(
        self, statement: str, values: Sequence[object] | dict[str, object] = ()
    ) -> pd.DataFrame:
        """The rows of a SELECT over the tables and views of docs/sql.md.

        >>> session.sql("SELECT tensor_name, accesses FROM hottest_tensors LIMIT 1")
              tensor_name  accesses
        0  output.weight        12
        """
        source: Extension | TemporaryTables | None = self._extension or self._tables
        if source is None:
            source = self._tables = TemporaryTables(self._decoder)
        try:
            cursor = source.query(statement, values)
            rows = cursor.fetchall()
        except SQLITE_ERRORS as error:
            raise SessionError(
                f"SQL: {error}. The tables and columns are in docs/sql.md."
            ) from error
        if cursor.description is None:
            raise SessionError("SQL: only a SELECT is allowed: sessions are never changed.")
        return pd.DataFrame(rows, columns=[column[0] for column in cursor.description])

    # --- text ---

    @property
    def text(self) -> str:
        """The answer; the answers of several requests, one after the other.

        Without control tokens, and tokens of drafts that were not accepted or whose result is not
        known.
        """
        tokens = self.tokens()
        left_out = tokens.draft.isin(["rejected", "unknown"])
        silent = self.facts.get("request.silent", "")  # "0-2 7"
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", silent):
            left_out |= tokens.vocabulary_id.between(int(first), int(last or first))
        answer = tokens[tokens.generated & ~left_out]
        texts = answer.groupby(answer.sequence.fillna(0), sort=True).text.agg("".join)
        return "\n".join(texts)

    def __repr__(self) -> str:
        info = self.info
        return (
            f"<Session {self.path.name!r}: {info['tokens']} tokens in {info['steps']} steps, "
            f"{info['state']}>"
        )

    def _repr_html_(self) -> str:
        info, steps = self.info, self.steps()
        rows = [
            ("model", self.facts.get("model.name") or self.facts.get("model.architecture", "")),
            ("shape", _shape(info)),
            ("state", str(info["state"])),
            ("prompt", _shortened("".join(self.tokens().query("not generated").text))),
            ("answer", _shortened(self.text)),
        ]
        for phase, of in steps.groupby("phase", observed=True):
            seconds, tokens = of.duration_ns.sum() / 1e9, int(of.token_count.sum())
            rows.append(
                (str(phase), f"{tokens:,} tokens in {len(of):,} steps, {seconds:.3f} s; "
                 f"{of.bytes_read.sum() / 2**20:,.1f} MiB read, "
                 f"{of.bytes_written.sum() / 2**20:,.1f} MiB written")
            )  # fmt: skip
        lines = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in rows
        )
        return f"<table><caption>{html.escape(self.path.name)}</caption>{lines}</table>"


def _shape(info: Mapping[str, Any]) -> str:
    shape = f"{info['n_layers']} layers of {info['n_embd']}, {info['n_heads']} heads"
    if info["n_experts"]:
        shape += f", {info['n_experts_used']} of {info['n_experts']} experts"
    return shape


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _check_columns(table: str, columns: Sequence[str] | None) -> None:
    if isinstance(columns, str):
        raise TypeError("columns is a list of names, not one text")
    unknown = [name for name in columns or () if name not in TABLES[table]]
    if unknown:
        raise ValueError(
            f"The table {table} has no column {unknown[0]!r}. Its columns are: "
            f"{', '.join(TABLES[table])}."
        )


def _range(steps: range | None) -> tuple[int, int | None]:
    if steps is None:
        return 0, None
    if not isinstance(steps, range) or steps.step != 1 or steps.start < 0:
        raise ValueError("steps is a range of consecutive steps: range(3, 10)")
    return steps.start, max(steps.start, steps.stop)
