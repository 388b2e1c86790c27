"""The accesses of a template, and their rows in a step (docs/byte-rules.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .blob import NONE
from .byte_rules import ALL, CELLS, EXPERTS, ROW, ROWS, SEQUENCE, SLICE, Touch, covers, touches_of
from .footprint import footprint, span_of
from .graph import Op, Template
from .names import HeadGeometry, categories_of
from .session_file import Step

Integers = NDArray[np.int64]


@dataclass(slots=True)
class Access:
    op: int
    tensor: int  # possibly a view
    write: bool
    extent: str
    slot: int  # the list that selects parts; NONE: none
    unit: int  # bytes touched, or bytes per part
    stride: int  # bytes between parts; 0 without parts
    file: int  # of the whole tensor or view; file_length 0: not in a file
    file_offset: int
    file_length: int
    file_room: int  # bytes from file_offset to the end of the weight


def accesses_of(graph: Template) -> list[Access]:
    """By op; the reads of an op before its writes."""
    slots = {CELLS: {}, ROWS: {}}
    for i, slot in enumerate(graph.slots):
        if slot.kind != "expert scores":
            of = slots[CELLS if slot.kind == "attended cells" else ROWS]
            of.setdefault(slot.tensor, i)
    accesses = []
    for i, op in enumerate(graph.ops):
        touches = _without_covered(graph, _touches_of_op(graph, op))
        for write in (False, True):
            accesses += [
                _access(graph, slots, i, touch) for touch in touches if touch.write == write
            ]
    return accesses


def _touches_of_op(graph: Template, op: Op) -> list[Touch]:
    """Without the tensors that the nodes of a fused op pass to each other."""
    touches, inside = [], set()
    for node in graph.nodes[op.first : op.last + 1]:
        last = node is graph.nodes[op.last]
        for touch in touches_of(graph, node):
            internal = not last if touch.write else graph.root(touch.tensor) in inside
            if not internal:
                touches.append(touch)
        inside.add(graph.root(node.output))
    return touches


def _without_covered(graph: Template, touches: list[Touch]) -> list[Touch]:
    """Each byte once per op. If two touches cover each other, the first one stays."""
    return [
        touch
        for i, touch in enumerate(touches)
        if not any(
            i != j and covers(graph, other, touch) and (j < i or not covers(graph, touch, other))
            for j, other in enumerate(touches)
        )
    ]


def _access(graph: Template, slots: dict[str, dict[int, int]], op: int, touch: Touch) -> Access:
    view, owner = graph.tensors[touch.tensor], graph.tensors[graph.root(touch.tensor)]
    room = owner.file_length - view.view_offset if owner.file_length else 0
    access = Access(
        op, touch.tensor, touch.write, touch.extent, NONE, touch.unit, 0,
        owner.file, owner.file_offset + view.view_offset, min(span_of(view), max(room, 0)), room,
    )  # fmt: skip
    if touch.extent == ALL:
        return access
    access.slot = slots[CELLS if touch.extent == CELLS else ROWS].get(touch.index, NONE)
    access.stride = view.nb[touch.axis]
    if access.slot == NONE:
        # The list was not recorded: as if all its entries were different.
        index, whole = graph.tensors[touch.index], footprint(view)
        listed = index.ne[0] * index.ne[1] * index.ne[2]
        bounded = touch.extent != CELLS and listed < whole // touch.unit
        access.extent, access.stride = ALL, 0
        access.unit = listed * touch.unit if bounded else whole
    return access


class StepRows:
    """The access rows of one step: equally long arrays."""

    def __init__(self, derived: DerivedTemplate, step: Step) -> None:
        n = len(derived.accesses)
        ran = derived.op < step.ops_run(len(derived.graph.ops))
        counts = (ran & (derived.slot == NONE)).astype(np.int64)
        touched = derived.unit.copy()
        separate: dict[int, list] = {}  # by access: parts, ranks, scores
        for rule, of in derived.by_rule.items():
            values = step.values_of(rule.slot)
            of = of[ran[of]]
            if values is None or not len(of):
                continue
            if not rule.separate:
                parts = rule.parts_of(derived.graph, values)
                counts[of] = parts > 0
                touched[of] = derived.unit[of] * parts
                continue
            rows = rule.rows_of(derived.graph, step, values)
            counts[of] = len(rows[0])
            separate.update((int(access), rows) for access in of)
        self.access = np.repeat(np.arange(n), counts)
        self.part = np.arange(len(self.access)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.size = touched[self.access]
        self.file_offset = derived.file_offset[self.access]
        self.file_length = derived.file_length[self.access]
        self.number = np.full(len(self.access), NONE, np.int64)  # of the expert or row
        self.rank = np.full(len(self.access), NONE, np.int64)
        self.score = np.full(len(self.access), np.nan, np.float32)
        firsts = np.cumsum(counts) - counts
        for access, (parts, ranks, scores) in separate.items():
            rows_of = slice(firsts[access], firsts[access] + counts[access])
            self.number[rows_of], self.rank[rows_of], self.score[rows_of] = parts, ranks, scores
            if derived.file_length[access]:
                begin = parts * derived.accesses[access].stride
                room = derived.accesses[access].file_room - begin
                self.file_offset[rows_of] += begin
                self.file_length[rows_of] = np.clip(derived.unit[access], 0, np.maximum(room, 0))
        self.is_expert = derived.is_expert[self.access]
        self.head = np.full(len(self.access), NONE, np.int64)
        self.head_offset = np.zeros(len(self.access), np.int64)  # bytes before the head
        self.token = np.full(len(self.access), step.first_token)
        self.sharing = np.full(len(self.access), step.n_tokens)  # tokens that share the row

    def __len__(self) -> int:
        return len(self.access)

    def split_heads(self, derived: DerivedTemplate, geometry: list[HeadGeometry]) -> None:
        """A read of a whole Q, K, V or O weight becomes one row per head, if each of its bytes
        belongs to one head."""
        heads = np.array([of.count for of in geometry], np.int64)[self.access]
        size = np.array([of.size for of in geometry], np.int64)[self.access]
        by_columns = np.array([of.by_columns for of in geometry], bool)[self.access]
        divided = (heads > 0) & ~derived.write[self.access] & derived.whole[self.access]
        divided &= self.size % np.maximum(heads, 1) == 0
        divided &= (self.file_length == 0) | (self.file_length >= heads * size)
        at = np.repeat(np.arange(len(self)), np.where(divided, heads, 1))
        head = np.arange(len(at)) - np.searchsorted(at, at)
        self._take(at)
        of, heads, size, by_columns = divided[at], heads[at], size[at], by_columns[at]
        self.head[of] = self.part[of] = head[of]
        self.head_offset[of] = head[of] * size[of]
        self.size[of] //= heads[of]
        in_file = of & (self.file_length > 0)
        self.file_offset[in_file] += self.head_offset[in_file]
        whole_rows = self.file_length - (heads - 1) * size
        self.file_length[in_file] = np.where(by_columns, whole_rows, size)[in_file]

    def split_tokens(self, derived: DerivedTemplate, step: Step) -> None:
        """The rows of a step of several tokens, once for each of its tokens. An expert, or a row
        of the embedding, belongs to the tokens that chose it; all tokens share the others."""
        if step.n_tokens <= 1:
            return
        owners: dict[tuple[int, bool], dict[int, tuple]] = {}
        owned = np.zeros(len(self), bool)
        parts = []  # rows, their tokens, ranks, scores, number of tokens
        for row in np.flatnonzero(self.number != NONE):
            key = (int(derived.slot[self.access[row]]), bool(self.is_expert[row]))
            if key not in owners:
                owners[key] = _owners(derived.graph, step, *key)
            found = owners[key].get(int(self.number[row]))
            if found is not None:
                owned[row] = True
                n = len(found[0])
                parts.append((np.full(n, row), *found, np.full(n, n)))
        shared = np.tile(np.flatnonzero(~owned), step.n_tokens)
        tokens = np.repeat(np.arange(step.n_tokens), np.count_nonzero(~owned))
        parts.append(
            (
                shared,
                tokens,
                self.rank[shared],
                self.score[shared],
                np.full(len(shared), step.n_tokens),
            )
        )
        rows_of, tokens_of, ranks, scores, sharing = (np.concatenate(of) for of in zip(*parts))
        order = np.lexsort((rows_of, tokens_of))
        self._take(rows_of[order])
        self.token = step.first_token + tokens_of[order]
        self.sharing, self.rank, self.score = sharing[order], ranks[order], scores[order]

    def _take(self, at: Integers) -> None:
        for name, values in vars(self).items():
            setattr(self, name, values[at])


def _owners(graph: Template, step: Step, slot: int, experts: bool) -> dict[int, tuple]:
    """Of each expert or row: the tokens (within the step) that chose it, with rank and score."""
    values = step.slots[slot][0]
    entries = np.arange(len(values))
    ranks, scores = np.full(len(values), NONE), np.full(len(values), np.nan, np.float32)
    if experts:
        of_token = max(1, graph.tensors[graph.slots[slot].tensor].ne[0])
        tokens = slot_tokens(graph, step, len(values) // of_token)
        entries = entries[: len(tokens) * of_token]
        tokens, ranks = tokens[entries // of_token], entries % of_token
        known = scores_of(graph, step, slot)
        if known is not None:
            n = min(len(known), len(scores))
            scores[:n] = known[:n]
    elif len(values) == step.n_tokens:
        tokens = entries
    else:
        return {}
    values = values[entries]
    order = np.lexsort((tokens, values))  # stable: of two choices by a token, the first one counts
    found: dict[int, dict[int, tuple[int, float]]] = {}
    for i in order.tolist():
        of_part = found.setdefault(int(values[i]), {})
        of_part.setdefault(int(tokens[i]), (int(ranks[i]), float(scores[i])))
    return {
        part: (
            np.array(list(of)),
            np.array([rank for rank, _ in of.values()]),
            np.array([score for _, score in of.values()], np.float32),
        )
        for part, of in found.items()
        if NONE not in of  # with an unknown token, the others are not all of them
    }


def slot_tokens(graph: Template, step: Step, count: int) -> Integers:
    """The token, within the step, that each of `count` entries belongs to; NONE: unknown."""
    if count == step.n_tokens:
        return np.arange(count)
    tokens = np.full(count, NONE, np.int64)
    for slot, (values, _) in zip(graph.slots, step.slots):
        if slot.kind == "output ids" and len(values) == count:
            valid = (values >= 0) & (values < step.n_tokens)
            tokens[valid] = values[valid]
            break
    return tokens


@dataclass(frozen=True, slots=True)
class PartRule:
    """How the parts of an access are counted. Accesses with equal rules have equal parts."""

    slot: int
    extent: str
    axis: int
    limit: int  # parts of the view
    separate: bool  # whether each part is a row
    batches: tuple[int, int]  # (0, 0): one list for all

    def parts_of(self, graph: Template, values: Integers) -> int:
        """The number of distinct parts."""
        if self.batches == (0, 0):
            return len(self._distinct(values))
        # List (i2, i3) of the index selects from batch (i2, i3) of the view. With fewer lists
        # than batches, the lists repeat.
        length, n1, n2 = (max(1, n) for n in graph.tensors[graph.slots[self.slot].tensor].ne[:3])
        parts = 0
        for i in range(min(len(values) // length, n1 * n2)):
            batches = _repeats(self.batches[0], i % n1, n1) * _repeats(self.batches[1], i // n1, n2)
            if batches:
                parts += len(self._distinct(values[i * length : (i + 1) * length])) * batches
        return parts

    def rows_of(self, graph: Template, step: Step, values: Integers):
        """The distinct parts, ascending; of experts also the best rank and its score."""
        if self.extent != EXPERTS:
            return self._distinct(values), NONE, np.nan
        ranks = max(1, graph.tensors[graph.slots[self.slot].tensor].ne[0])
        valid = np.flatnonzero((values >= 0) & (values < self.limit))
        order = valid[np.lexsort((valid, valid % ranks, values[valid]))]
        experts, first = np.unique(values[order], return_index=True)
        at = order[first]
        scores = scores_of(graph, step, self.slot)
        known = np.full(len(at), np.nan, np.float32)
        if scores is not None:
            known[at < len(scores)] = scores[at[at < len(scores)]]
        return experts, at % ranks, known

    def _distinct(self, values: Integers) -> Integers:
        return np.unique(values[(values >= 0) & (values < self.limit)])


def _repeats(of: int, one: int, lists: int) -> int:
    return (of - one - 1) // lists + 1 if of > one else 0


def scores_of(graph: Template, step: Step, experts: int) -> NDArray[np.float32] | None:
    """The scores of a slot of experts: of the same layer, read nearest to it."""
    ids = graph.slots[experts]
    found = [
        (abs(slot.read_at - ids.read_at), i)
        for i, slot in enumerate(graph.slots)
        if slot.kind == "expert scores" and slot.layer == ids.layer and i < len(step.slots)
    ]
    return step.slots[min(found)[1]][1] if found else None


class DerivedTemplate:
    """A template with its accesses as arrays. Made once per template."""

    def __init__(self, graph: Template) -> None:
        self.graph = graph
        self.accesses = accesses_of(graph)

        def column(name: str) -> Integers:
            return np.array([getattr(access, name) for access in self.accesses], np.int64)

        self.op, self.tensor, self.file = column("op"), column("tensor"), column("file")
        self.slot, self.unit = column("slot"), column("unit")
        self.write = column("write").astype(bool)
        roots = [graph.tensors[graph.root(access.tensor)] for access in self.accesses]
        self.mapped = np.array([root.source == "disk" for root in roots], bool)
        self.file_offset, self.file_length = column("file_offset"), column("file_length")
        self.categories = categories_of(graph)
        self.is_main = self._main_accesses()
        self.whole = np.array([access.extent == ALL for access in self.accesses], bool)
        self.is_expert = np.array([a.extent == EXPERTS for a in self.accesses], bool)
        by_rule: dict[PartRule, list[int]] = {}
        for i, access in enumerate(self.accesses):
            if access.slot != NONE:
                by_rule.setdefault(self._part_rule(access), []).append(i)
        self.by_rule = {rule: np.array(of) for rule, of in by_rule.items()}
        self.separate = np.zeros(len(self.accesses), bool)  # one row per part
        for rule, of in self.by_rule.items():
            self.separate[of] = rule.separate

    def _main_accesses(self) -> NDArray[np.bool_]:
        """Which accesses the time of their op counts for (docs/heat.md): one per op."""
        main: dict[int, tuple[tuple[int, int], int]] = {}
        for i, access in enumerate(self.accesses):
            view = self.graph.tensors[access.tensor]
            kind = (
                3 if view.kind == "weight" and not access.write
                else 2 if view.kind == "kv"
                else 0 if access.write
                else 1
            )  # fmt: skip
            priority = (kind, access.unit if access.slot == NONE else span_of(view))
            if access.op not in main or main[access.op][0] < priority:
                main[access.op] = (priority, i)
        found = np.zeros(len(self.accesses), bool)
        found[[i for _, i in main.values()]] = True
        return found

    def _part_rule(self, access: Access) -> PartRule:
        view = self.graph.tensors[access.tensor]
        if access.extent == EXPERTS:
            return PartRule(access.slot, EXPERTS, SLICE, view.ne[2], True, (0, 0))
        if access.extent == CELLS:
            return PartRule(access.slot, CELLS, ROW, view.ne[1], False, (0, 0))
        op = self.graph.ops[access.op]
        axis = SEQUENCE if self.graph.nodes[op.last].op == "SSM_SCAN" else ROW
        matrix = view.ne[2] == 1 and view.ne[3] == 1
        separate = access.file_length > 0 and matrix
        batches = (view.ne[2], view.ne[3]) if axis == ROW and max(view.ne[2:]) > 1 else (0, 0)
        # Rows of a separate access are numbered along dimension 1.
        limit = view.ne[ROW] if separate else view.ne[axis]
        return PartRule(access.slot, ROWS, axis, limit, separate, batches)
