"""The tables of docs/sql.md, computed from a session file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..frames import Coded, Column, Missing, frame_of, step_texts
from ..schema import TABLES
from . import names
from .accesses import DerivedTemplate, StepRows, scores_of, slot_tokens
from .blob import NONE
from .faults import FaultPlaces
from .footprint import span_of
from .graph import Template, Tensor
from .lookup import AccessLookup, OpLookup
from .session_file import CONDITIONS, SessionFile, Step

SLICE_ROWS = 1 << 16  # rows after which a data frame is made by default


class Decoder:
    """Makes data frames from a session file. One thread at a time."""

    name = "decoder"

    def __init__(self, path: Path, *, running: bool = False) -> None:
        self.file = SessionFile(path, running=running)
        self._addresses: dict[int, NDArray[np.uint64]] = {}

    def close(self) -> None:
        self.file.close()

    def frames(
        self, table: str, columns: Sequence[str] | None, first: int = 0, end: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """The rows of the steps from `first` to before `end`, in several data frames. Tables
        without steps have one."""
        if table == "access":
            yield from self.accesses(columns, first, end)
            return
        wanted = list(TABLES[table] if columns is None else columns)
        for part in _PARTS[table](self, set(wanted), first, end):
            yield frame_of(table, part, wanted)

    @cached_property
    def templates(self) -> dict[int, DerivedTemplate]:
        return {graph.id: DerivedTemplate(graph) for graph in self.file.templates()}

    @cached_property
    def access_lookup(self) -> AccessLookup:
        return AccessLookup(list(self.templates.values()), self.model_heads)

    @cached_property
    def op_lookup(self) -> OpLookup:
        return OpLookup(list(self.templates.values()), names.kernel_rules(dict(self.file.facts)))

    @property
    def model_heads(self) -> tuple[int, int]:
        return self.number("n_heads"), self.number("n_heads_kv")

    def number(self, key: str) -> int:
        try:
            return int(self.file.meta.get(key, "0"))
        except ValueError:
            return 0

    def addresses(self, allocation: int) -> NDArray[np.uint64]:
        if allocation == 0:
            return np.zeros(0, np.uint64)
        if allocation not in self._addresses:
            self._addresses[allocation] = self.file.addresses(allocation)
        return self._addresses[allocation]

    # --- accesses and ops ---

    def accesses(
        self,
        columns: Sequence[str] | None,
        first: int = 0,
        end: int | None = None,
        *,
        rows: int = SLICE_ROWS,
        per_token: bool = False,
        per_head: bool = False,
    ) -> Iterator[pd.DataFrame]:
        """The rows of `access`, in data frames of about `rows` rows: complete steps."""
        wanted = list(TABLES["access"] if columns is None else columns)
        part = _AccessPart(self, set(wanted))
        for step in self.file.steps(first, end):
            derived = self.templates.get(step.template)
            if derived is None:
                continue
            of_step = StepRows(derived, step)
            if per_head:
                base, n = self.access_lookup.base[step.template], len(derived.accesses)
                of_step.split_heads(derived, self.access_lookup.heads[base : base + n])
            if per_token:
                of_step.split_tokens(derived, step)
            part.add(step, of_step)
            if part.rows >= rows:
                yield frame_of("access", part.columns(), wanted)
                part = _AccessPart(self, set(wanted))
        if part.rows:
            yield frame_of("access", part.columns(), wanted)

    def step_rows(self, step: Step) -> StepRows | None:
        """None: the step has no template."""
        derived = self.templates.get(step.template)
        return None if derived is None else StepRows(derived, step)

    def _op(self, wanted: set[str], first: int, end: int | None):
        part = _OpPart(self, wanted)
        for step in self.file.steps(first, end):
            if step.template in self.templates:
                part.add(step)
            if part.rows >= SLICE_ROWS:
                yield part.columns()
                part = _OpPart(self, wanted)
        if part.rows:
            yield part.columns()

    # --- steps ---

    def _step(self, wanted: set[str], first: int, end: int | None):
        steps, totals = [], []
        needed = wanted & {
            "accesses",
            "bytes_read",
            "bytes_written",
            "mapped_bytes",
            "reread_factor",
        }
        for step in self.file.steps(first, end):
            totals.append(self._totals(step) if needed else (0, 0, 0, 0))
            step.slots = []  # only the times are needed
            steps.append(step)
        accesses, read, written, mapped = (
            np.array(of, np.int64) for of in (zip(*totals) if totals else ([], [], [], []))
        )
        conditions = {name: [step.conditions[name] for step in steps] for name in CONDITIONS}
        conditions = {
            name: [np.nan if value is None else value for value in values]
            for name, values in conditions.items()
        }
        disk = np.array(conditions["disk_read_bytes"], np.float64)
        faults = np.array(conditions["major_faults"], np.float64)
        yield {
            "step": [step.id for step in steps],
            "phase": [step.phase for step in steps],
            "timing": [step.timing for step in steps],
            "template": [step.template or None for step in steps],
            "token_id": [step.first_token for step in steps],
            "token_count": [step.n_tokens for step in steps],
            "begin_ns": [step.begin_ns for step in steps],
            "end_ns": [step.end_ns for step in steps],
            "duration_ns": [step.end_ns - step.begin_ns for step in steps],
            "first_op_ns": [step.first_op_ns for step in steps],
            "threads": [step.threads for step in steps],
            "ops_timed": [step.ops_timed for step in steps],
            "accesses": accesses,
            "bytes_read": read,
            "bytes_written": written,
            "dropped": [step.dropped for step in steps],
            "aborted": [step.aborted for step in steps],
            "verdict": [verdict_of(step) for step in steps],
            **conditions,
            "mapped_bytes": mapped,
            "reread_factor": disk / np.where(mapped > 0, mapped, np.nan),
            "bytes_per_fault": disk // np.where(faults > 0, faults, np.nan),
        }

    def _totals(self, step: Step) -> tuple[int, int, int, int]:
        rows = self.step_rows(step)
        if rows is None:
            return 0, 0, 0, 0
        derived = self.templates[step.template]
        write = derived.write[rows.access]
        mapped = ~write & derived.mapped[rows.access] & (rows.file_length > 0)
        return (
            len(rows),
            int(rows.size[~write].sum()),
            int(rows.size[write].sum()),
            _union(
                derived.file[rows.access[mapped]],
                rows.file_offset[mapped],
                rows.file_length[mapped],
            ),
        )

    def _expert(self, wanted: set[str], first: int, end: int | None):
        parts = []
        for step in self.file.steps(first, end):
            derived = self.templates.get(step.template)
            if derived is None or len(step.slots) != len(derived.graph.slots):
                continue
            parts += _expert_choices(derived.graph, step)
        if not parts:
            yield {name: [] for name in wanted}
            return
        yield {name: _joined([part[name] for part in parts]) for name in wanted}

    # --- faults and residency ---

    def _fault(self, wanted: set[str], first: int, end: int | None):
        places: dict[tuple[int, int], FaultPlaces] = {}
        rows: list[dict[str, object]] = []
        steps: dict[int, Step] = {}
        for faults in self.file.faults(first, end):
            if faults.step not in steps:
                steps = {step.id: step for step in self.file.steps(faults.step, faults.step + 1)}
            step = steps[faults.step]
            derived = self.templates.get(step.template)
            place = None
            if derived is not None:
                key = (step.template, step.allocation)
                if key not in places:
                    places[key] = FaultPlaces(derived, self.addresses(step.allocation))
                place = places[key]
                place.begin_step(step)
            common = {
                "step": step.id,
                "phase": step.phase,
                "token_id": step.first_token,
                "kind": faults.kind,
            }
            if not len(faults.at_ns):
                rows.append(common | {"count": faults.count})
            for at, address in zip(faults.at_ns.tolist(), faults.addresses.tolist()):
                row = common | {"count": 1, "timestamp_ns": at, "address": address}
                rows.append(row | (place.of(at, address) if place else {}))
        table = {name: [row.get(name) for row in rows] for name in TABLES["fault"]}
        for name in ("timestamp_ns", "file_offset"):
            table[name] = [np.nan if value is None else value for value in table[name]]
        yield table

    def _residency(self, wanted: set[str], first: int, end: int | None):
        weights = {}
        for derived in self.templates.values():
            for tensor in derived.graph.tensors:
                if tensor.file_length and tensor.view_of == NONE:
                    weights.setdefault((tensor.file, tensor.file_offset), tensor)
        weights = [weights[place] for place in sorted(weights)]
        found = [
            (snapshot.step, snapshot.at_ns, weight, _resident(weight, snapshot.ranges))
            for snapshot in self.file.residency(first, end)
            for weight in weights
        ]
        yield {
            "step": [step for step, _, _, _ in found],
            "timestamp_ns": [at for _, at, _, _ in found],
            "tensor_name": [weight.name for _, _, weight, _ in found],
            "layer_id": [_layer(weight.layer) for _, _, weight, _ in found],
            "component": [weight.component for _, _, weight, _ in found],
            "model_file": [weight.file for _, _, weight, _ in found],
            "file_offset": [weight.file_offset for _, _, weight, _ in found],
            "size_bytes": [weight.file_length for _, _, weight, _ in found],
            "resident_bytes": [resident for _, _, _, resident in found],
        }

    # --- graphs ---

    def _template(self, wanted: set[str], first: int, end: int | None):
        all_of = self.templates.values()
        yield {
            "template": [of.graph.id for of in all_of],
            "fingerprint": [of.graph.fingerprint for of in all_of],
            "tensors": [len(of.graph.tensors) for of in all_of],
            "nodes": [len(of.graph.nodes) for of in all_of],
            "ops": [len(of.graph.ops) for of in all_of],
            "slots": [len(of.graph.slots) for of in all_of],
            "accesses": [len(of.accesses) for of in all_of],
        }

    def _tensor(self, wanted: set[str], first: int, end: int | None):
        rows = [
            (of.graph.id, i, tensor, category)
            for of in self.templates.values()
            for i, (tensor, category) in enumerate(zip(of.graph.tensors, of.categories))
        ]
        tensors = [tensor for _, _, tensor, _ in rows]
        in_file = [bool(tensor.file_length) for tensor in tensors]
        columns: dict[str, Column] = {
            "template": [id for id, _, _, _ in rows],
            "tensor": [i for _, i, _, _ in rows],
            "tensor_name": [tensor.name for tensor in tensors],
            "tensor_type": [tensor.type for tensor in tensors],
            "tensor_kind": [tensor.kind for tensor in tensors],
            "layer_id": [_layer(tensor.layer) for tensor in tensors],
            "component": [tensor.component for tensor in tensors],
            "role": [tensor.role for tensor in tensors],
            "category": [category for _, _, _, category in rows],
            "input": [tensor.input or None for tensor in tensors],
            "memory_source": [tensor.source for tensor in tensors],
            "buffer": [tensor.buffer for tensor in tensors],
            "tensor_bytes": [span_of(tensor) for tensor in tensors],
            "view_of": [None if tensor.view_of == NONE else tensor.view_of for tensor in tensors],
            "view_offset": Missing.of(
                None if tensor.view_of == NONE else tensor.view_offset for tensor in tensors
            ),
            "model_file": [t.file if known else None for t, known in zip(tensors, in_file)],
            "file_offset": Missing.of(
                t.file_offset if known else None for t, known in zip(tensors, in_file)
            ),
            "file_bytes": Missing.of(
                t.file_length if known else None for t, known in zip(tensors, in_file)
            ),
        }
        for i in range(4):
            columns[f"ne{i}"] = [tensor.ne[i] for tensor in tensors]
            columns[f"nb{i}"] = [tensor.nb[i] for tensor in tensors]
        yield columns

    def _edge(self, wanted: set[str], first: int, end: int | None):
        rows = [
            (of.graph, before, after)
            for of in self.templates.values()
            for before, after in _edges(of.graph)
        ]
        columns: dict[str, Column] = {"template": [graph.id for graph, _, _ in rows]}
        for name, at in (("from", 1), ("to", 2)):
            tensors = [(row[0].tensors[row[at]]) for row in rows]
            columns[f"{name}_tensor"] = [row[at] for row in rows]
            columns[f"{name}_name"] = [tensor.name for tensor in tensors]
            columns[f"{name}_layer_id"] = [_layer(tensor.layer) for tensor in tensors]
        yield columns

    # --- the session ---

    def _token(self, wanted: set[str], first: int, end: int | None):
        rows = list(self.file.tokens())
        columns: dict[str, Column] = {
            name: [row[i] for row in rows]
            for i, name in enumerate(
                ("token_id", "vocabulary_id", "position", "generated", "reused", "sequence", "draft")
            )
        }
        slots = _server_slots(dict(self.file.facts))
        columns["server_slot"] = [slots.get(sequence) for sequence in columns["sequence"]]
        yield columns | {"text": [row[-1].decode("utf-8", "replace") for row in rows]}

    def _model(self, wanted: set[str], first: int, end: int | None):
        rows = list(self.file.model_files())
        yield {
            name: [row[i] for row in rows]
            for i, name in enumerate(
                ("model_file", "path", "size_bytes", "mtime_ns", "header_hash")
            )
        }

    def _metadata(self, wanted: set[str], first: int, end: int | None):
        yield {
            "name": [name for name, _ in self.file.facts],
            "value": [value for _, value in self.file.facts],
        }

    def _session(self, wanted: set[str], first: int, end: int | None):
        losses = self.file.losses()
        counts = {"steps": self.file.count("tt_step"), "tokens": self.file.count("tt_token")}
        row: dict[str, Column] = {}
        for name, kind in TABLES["session"].items():
            if name in counts:
                row[name] = [counts[name]]
            elif kind == "object":
                row[name] = [self.file.meta.get(name, "")]
            else:
                row[name] = [losses.get(name, self.number(name))]
        yield row


_PARTS = {
    "op": Decoder._op,
    "step": Decoder._step,
    "expert": Decoder._expert,
    "fault": Decoder._fault,
    "residency": Decoder._residency,
    "template": Decoder._template,
    "tensor": Decoder._tensor,
    "edge": Decoder._edge,
    "token": Decoder._token,
    "model": Decoder._model,
    "metadata": Decoder._metadata,
    "session": Decoder._session,
}


# --- accesses and ops ---


class _Part:
    """The rows of some steps, whose columns are made at once."""

    def __init__(self, decoder: Decoder, wanted: set[str]) -> None:
        self._decoder, self._wanted = decoder, wanted
        self._steps: list[tuple[Step, StepRows | None]] = []
        self._counts: list[int] = []
        self.rows = 0

    def _add(self, step: Step, accesses: StepRows | None, rows: int) -> None:
        self._steps.append((step, accesses))
        self._counts.append(rows)
        self.rows += rows

    def _step_columns(self) -> dict[str, Column]:
        def numbers(of) -> NDArray[np.int64]:
            return np.repeat(
                np.array([of(step) for step, _ in self._steps], np.int64), self._counts
            )

        def texts(name: str) -> Coded:
            words = step_texts(name)
            return Coded(numbers(lambda step: words.index(getattr(step, name))), words)

        return {
            "step": numbers(lambda step: step.id),
            "token_id": numbers(lambda step: step.first_token),
            "token_count": numbers(lambda step: step.n_tokens),
            "template": numbers(lambda step: step.template),
            "threads": numbers(lambda step: step.threads),
            "phase": texts("phase"),
            "timing": texts("timing"),
        }


class _AccessPart(_Part):
    def add(self, step: Step, accesses: StepRows) -> None:
        self._add(step, accesses, len(accesses))

    def columns(self) -> dict[str, Column]:
        wanted, decoder = self._wanted, self._decoder
        lookup = decoder.access_lookup

        def joined(name: str) -> NDArray:
            return np.concatenate([getattr(rows, name) for _, rows in self._steps])

        at = np.concatenate(
            [rows.access + lookup.base[step.template] for step, rows in self._steps]
        )
        part = lookup.taken(at, wanted) | self._step_columns()
        part["access"], part["part"], part["size_bytes"] = (
            joined("access"),
            joined("part"),
            joined("size"),
        )
        if wanted & {"timestamp_ns", "duration_ns"}:
            begins, durations = [], []
            for step, rows in self._steps:
                derived = decoder.templates[step.template]
                op, ops = derived.op[rows.access], len(derived.graph.ops)
                begins.append(step.op_begins(ops)[op])
                durations.append(step.op_durations(ops)[op])
            part["timestamp_ns"] = np.concatenate(begins)
            part["duration_ns"] = np.concatenate(durations)
        if "self_ns" in wanted:
            part["self_ns"] = np.concatenate(
                [
                    _self_ns(self._decoder.templates[step.template], step, rows)
                    for step, rows in self._steps
                ]
            )
        length = joined("file_length")
        part["file_offset"] = Missing(joined("file_offset"), length == 0)
        part["file_bytes"] = Missing(length, length == 0)
        is_expert, number = joined("is_expert"), joined("number")
        part["expert_id"] = Missing(number, ~is_expert)
        part["expert_rank"] = Missing(joined("rank"), ~is_expert)
        part["routing_score"] = joined("score")
        if "expert_name" in wanted:
            part["expert_name"] = lookup.expert_names_of(at, np.where(is_expert, number, NONE))
        if "tensor_ptr" in wanted:
            part["tensor_ptr"] = self._pointers(
                joined("head_offset") + np.where(is_expert, number, 0) * lookup.stride[at]
            )
        part["token_id"], part["token_count"] = joined("token"), joined("sharing")
        head = joined("head")
        part["attention_head"] = Missing(head, head == NONE)
        return part

    def _pointers(self, offsets: NDArray[np.int64]) -> Missing:
        found = []
        for step, rows in self._steps:
            tensors = self._decoder.templates[step.template].tensor[rows.access]
            addresses = np.zeros(int(tensors.max(initial=0)) + 1, np.int64)
            known = self._decoder.addresses(step.allocation).astype(np.int64)[: len(addresses)]
            addresses[: len(known)] = known
            found.append(addresses[tensors])
        pointers = np.concatenate(found)
        return Missing(pointers + offsets, pointers == 0)


def _self_ns(derived: DerivedTemplate, step: Step, rows: StepRows) -> NDArray[np.float64]:
    """The part of the op's duration that counts for each row: equal parts, in whole nanoseconds
    (the first one has the remainder), for the rows of the op's main access."""
    whole = step.op_durations(len(derived.graph.ops))[derived.op[rows.access]]
    count = np.bincount(rows.access, minlength=len(derived.accesses))[rows.access]
    order = np.argsort(rows.access, kind="stable")
    number = np.empty(len(rows), np.int64)
    number[order] = np.arange(len(rows)) - np.searchsorted(rows.access[order], rows.access[order])
    known = np.nan_to_num(whole).astype(np.int64)
    share = np.where(number > 0, known // count, known - known // count * (count - 1))
    return np.where(np.isnan(whole), np.nan, np.where(derived.is_main[rows.access], share, 0))


class _OpPart(_Part):
    def add(self, step: Step) -> None:
        derived = self._decoder.templates[step.template]
        of_bytes = self._wanted & {"bytes_read", "bytes_written"}
        accesses = StepRows(derived, step) if of_bytes else None
        self._add(step, accesses, step.ops_run(len(derived.graph.ops)))

    def columns(self) -> dict[str, Column]:
        lookup, templates = self._decoder.op_lookup, self._decoder.templates
        ops = [np.arange(count) for count in self._counts]
        at = np.concatenate(
            [of + lookup.base[step.template] for (step, _), of in zip(self._steps, ops)]
        )
        part = lookup.taken(at, self._wanted) | self._step_columns()
        part["op"] = np.concatenate(ops)
        each = list(zip(self._steps, self._counts))
        part["timestamp_ns"] = np.concatenate([step.op_begins(n) for (step, _), n in each])
        part["duration_ns"] = np.concatenate([step.op_durations(n) for (step, _), n in each])
        for name, write in (("bytes_read", False), ("bytes_written", True)):
            sums = []
            for (step, accesses), n in each if name in self._wanted else ():
                derived, of_op = templates[step.template], np.zeros(n, np.int64)
                size = np.where(derived.write[accesses.access] == write, accesses.size, 0)
                np.add.at(of_op, derived.op[accesses.access], size)
                sums.append(of_op)
            part[name] = np.concatenate(sums) if sums else np.zeros(self.rows, np.int64)
        return part | self._statistics()

    def _statistics(self) -> dict[str, Column]:
        names = ("min", "max", "mean", "std")
        floats = {name: np.full(self.rows, np.nan, np.float32) for name in names}
        counts = {name: np.zeros(self.rows, np.int64) for name in ("nan", "inf")}
        missing = np.ones(self.rows, bool)
        begin = 0
        for (step, _), n in zip(self._steps, self._counts):
            for stats in reversed(step.stats):  # the first one of an op counts
                if stats.op >= n:
                    continue
                at = begin + stats.op
                missing[at] = False
                for name, column in floats.items():
                    value = getattr(stats, name)
                    column[at] = value if np.isfinite(value) else np.nan
                for name, column in counts.items():
                    column[at] = getattr(stats, name)
            begin += n
        return {f"output_{name}": column for name, column in floats.items()} | {
            f"output_{name}": Missing(column, missing) for name, column in counts.items()
        }


# --- routing, faults, residency, edges ---


def _expert_choices(graph: Template, step: Step) -> Iterator[dict[str, Column]]:
    """The choices of each router: one row per token and rank."""
    for i, slot in enumerate(graph.slots):
        experts = step.slots[i][0]
        if slot.kind != "experts" or not len(experts):
            continue
        ranks = max(1, graph.tensors[slot.tensor].ne[0])
        entries = np.arange(len(experts))
        tokens = np.append(slot_tokens(graph, step, len(experts) // ranks), NONE)
        token = tokens[np.minimum(entries // ranks, len(tokens) - 1)]
        known, scores = np.full(len(experts), np.nan, np.float32), scores_of(graph, step, i)
        if scores is not None:
            n = min(len(scores), len(experts))
            known[:n] = scores[:n]
        texts = step_texts("phase")
        layer = np.full(len(experts), slot.layer)
        yield {
            "step": np.full(len(experts), step.id),
            "phase": Coded(np.full(len(experts), texts.index(step.phase)), texts),
            "layer_id": Missing(layer, layer == NONE),
            "token_id": Missing(token + step.first_token, token == NONE),
            "expert_id": experts,
            "expert_rank": entries % ranks,
            "routing_score": known,
        }


def verdict_of(step: Step) -> str | None:
    """What the machine did to the times of a step (docs/conditions.md)."""
    of = step.conditions
    if None in (of["interval_ns"], of["cpu_ns"], of["cpu_wait_ns"]):
        return None
    total = of["interval_ns"] * max(step.threads, 1)
    if total <= 0:
        return None
    throttled = min(of["throttled_ns"] or 0, total)
    wait, hot = of["cpu_wait_ns"], total if of["thermal_throttles"] else 0
    blocked = max(total - of["cpu_ns"] - wait - throttled, 0) if of["major_faults"] else 0

    def is_loss(ns: int, share: float) -> bool:
        return ns >= share * total and ns >= 100_000

    if is_loss(throttled, 0.05) or is_loss(hot, 0.05):
        return "throttled"
    contended = is_loss(wait, 0.05)
    if is_loss(blocked, 0.10) and (not contended or blocked > wait):
        return "disk"
    return "contended" if contended else "clean"


def _union(file: NDArray, offset: NDArray, length: NDArray) -> int:
    """The bytes of ranges, each counted once."""
    if not len(file):
        return 0
    order = np.lexsort((length, offset, file))
    file, begin, end = file[order], offset[order], (offset + length)[order]
    total = 0
    for one in np.unique(file):
        of = file == one
        begins, reached = begin[of], np.maximum.accumulate(end[of])
        before = np.concatenate(([begins[0]], reached[:-1]))
        total += int(np.maximum(reached - np.maximum(begins, before), 0).sum())
    return total


def _resident(weight: Tensor, ranges: list[tuple[int, int, int]]) -> float:
    if weight.source != "disk":
        return np.nan
    begin, end = weight.file_offset, weight.file_offset + weight.file_length
    return sum(
        max(0, min(offset + length, end) - max(offset, begin))
        for file, offset, length in ranges
        if file == weight.file
    )


def _edges(graph: Template) -> Iterator[tuple[int, int]]:
    """From each tensor that a node reads to its output."""
    made_by: dict[int, int] = {}
    written_by: dict[int, int] = {}  # by root tensor: the last node that wrote into it
    for n, node in enumerate(graph.nodes):
        root = graph.root(node.output)
        reads: list[int] = []

        def read(source: int) -> None:
            reads.append(source)
            writer = written_by.get(graph.root(source))
            if writer is not None and writer > made_by.get(source, -1):
                reads.append(graph.nodes[writer].output)

        sources = [source for source in node.sources if source != NONE]
        for source in sources:
            read(source)
        if node.output != root and all(graph.root(source) != root for source in sources):
            read(root)
        yield from (
            (source, node.output) for source in dict.fromkeys(reads) if source != node.output
        )
        made_by[node.output] = n
        if node.computed:
            written_by[root] = n


def _joined(parts: Sequence[Column]) -> Column:
    if isinstance(parts[0], Coded):
        return Coded(np.concatenate([part.codes for part in parts]), parts[0].texts)
    if isinstance(parts[0], Missing):
        return Missing(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.missing for part in parts]),
        )
    return np.concatenate(parts)


def _server_slots(facts: dict[str, str]) -> dict[int | None, int]:
    """The slot of llama-server by request, where it is known: "0 1 -"."""
    slots = facts.get("attach.server_slots", "").split(" ")
    return {request: int(slot) for request, slot in enumerate(slots, 1) if slot.isdecimal()}


def _layer(layer: int) -> int | None:
    return None if layer == NONE else layer
