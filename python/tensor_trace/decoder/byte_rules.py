"""What a node reads and writes (docs/byte-rules.md, "Rules by op")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .blob import NONE
from .footprint import footprint, span_of
from .graph import Node, Template, Tensor

ALL, ROWS, EXPERTS, CELLS = "all", "rows", "experts", "cells"
# The dimension along which an index list selects parts.
ROW, SLICE, SEQUENCE = 1, 2, 3


@dataclass(slots=True)
class Touch:
    tensor: int
    unit: int  # bytes touched; with an index list: bytes of each selected part
    write: bool = False
    extent: str = ALL
    axis: int = 0
    index: int = NONE  # the tensor with the list


class _Touches:
    """Collects the touches of a node. Absent sources and empty tensors have none."""

    def __init__(self, graph: Template, node: Node) -> None:
        self.graph, self.node = graph, node
        self.touches: list[Touch] = []

    def has(self, i: int) -> bool:
        return self._id(i) != NONE

    def source(self, i: int) -> Tensor:
        return self.graph.tensors[self.node.sources[i]]

    @property
    def output(self) -> Tensor:
        return self.graph.tensors[self.node.output]

    def read(self, i: int) -> None:
        if self.has(i):
            self.read_bytes(i, footprint(self.source(i)))

    def read_bytes(self, i: int, size: int) -> None:
        self._add(Touch(self._id(i), size))

    def read_columns(self, i: int, count: int) -> None:
        if self.has(i):
            self.read_bytes(i, footprint(self.source(i).limited(0, count)))

    def read_rows(self, i: int, count: int) -> None:
        if self.has(i):
            self.read_bytes(i, footprint(self.source(i).limited(1, count)))

    def read_selected(self, i: int, index: int, extent: str, axis: int) -> None:
        if not self.has(index):
            return self.read(i)
        unit = footprint(self.source(i).one_part(axis)) if self.has(i) else 0
        self._add(Touch(self._id(i), unit, extent=extent, axis=axis, index=self._id(index)))

    def read_cells(self, i: int, mask: int) -> None:
        if not self.has(mask):
            return self.read(i)
        unit = footprint(self.source(i).limited(1, 1)) if self.has(i) else 0
        self._add(Touch(self._id(i), unit, extent=CELLS, axis=ROW, index=self._id(mask)))

    def read_all(self) -> None:
        for i in range(len(self.node.sources)):
            self.read(i)

    def write(self) -> None:
        self.write_bytes(footprint(self.output))

    def write_bytes(self, size: int) -> None:
        self._add(Touch(self.node.output, size, write=True))

    def write_rows(self, index: int) -> None:
        if not self.has(index):
            return self.write()
        unit = footprint(self.output.one_part(ROW))
        self._add(Touch(self.node.output, unit, True, ROWS, ROW, self._id(index)))

    def write_with_snapshots(self, values: int, state: int, tokens: int) -> None:
        """An output of `values` elements, then snapshots of a state: at most one per token."""
        whole, value_bytes = footprint(self.output), values * self.output.block_bytes
        if state == 0 or whole < value_bytes:
            return self.write()
        self.write_bytes(value_bytes + min((whole - value_bytes) // state, tokens) * state)

    def _id(self, i: int) -> int:
        return self.node.sources[i] if i < len(self.node.sources) else NONE

    def _add(self, touch: Touch) -> None:
        if touch.tensor != NONE and touch.unit > 0:
            self.touches.append(touch)


def _elements(tensor: Tensor) -> int:
    return tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]


def _every_source_once(t: _Touches) -> None:
    t.read_all()
    t.write()


def _get_rows(t: _Touches) -> None:
    t.read_selected(0, 1, ROWS, ROW)
    t.read(1)
    t.write()


def _set_rows(t: _Touches) -> None:
    t.read(0)
    t.read(1)  # source 2 is the destination
    t.write_rows(1)


def _mul_mat_id(t: _Touches) -> None:
    t.read_selected(0, 2, EXPERTS, SLICE)
    t.read(1)
    t.read(2)
    t.write()


def _add_id(t: _Touches) -> None:
    t.read(0)
    t.read_selected(1, 2, ROWS, ROW)
    t.read(2)
    t.write()


def _flash_attn_ext(t: _Touches) -> None:
    mask, sinks = 3, 4
    t.read(0)
    t.read_cells(1, mask)
    t.read_cells(2, mask)
    t.read_rows(mask, t.source(0).ne[1] if t.has(0) else 0)
    t.read(sinks)
    t.write()


def _soft_max(t: _Touches) -> None:
    t.read(0)
    t.read_rows(1, t.output.ne[1])
    t.read(2)
    t.write()


def _rope(t: _Touches) -> None:
    t.read(0)
    t.read(1)
    t.read_columns(2, int(t.node.params[1] / 2))  # one frequency factor per pair
    t.write()


def _cpy(t: _Touches) -> None:
    t.read(0)  # source 1 is the destination
    t.write()


def _changed_block(t: _Touches) -> int:
    a, b = t.source(0), t.source(1)
    strides = (a.nb[0], *(param & 0xFFFFFFFF for param in t.node.params[:3]))
    return footprint(
        replace(b, block_elements=a.block_elements, block_bytes=a.block_bytes, nb=strides)
    )


def _acc(t: _Touches) -> None:
    if t.node.params[4] == 0 or not t.has(0) or not t.has(1):
        return _every_source_once(t)
    t.read_bytes(0, _changed_block(t))
    t.read(1)
    t.write_bytes(_changed_block(t))


def _set(t: _Touches) -> None:
    if t.node.params[4] == 0 or not t.has(0) or not t.has(1):
        return _every_source_once(t)
    t.read(1)
    t.write_bytes(_changed_block(t))


def _im2col(t: _Touches) -> None:
    t.read(1)  # source 0 only has its shape
    t.write()


def _fill(t: _Touches) -> None:
    t.write()


def _lower_triangle(tensor: Tensor) -> int:
    n0, n1 = tensor.ne[:2]
    square = min(n0, n1)
    return square * (square + 1) // 2 + (n1 - square) * n0


def _read_triangle(t: _Touches, elements: int) -> None:
    a = t.source(0)
    t.read_bytes(0, elements * a.ne[2] * a.ne[3] * a.block_bytes)


def _tri(t: _Touches) -> None:
    if not t.has(0):
        return t.write()
    n0, n1 = t.source(0).ne[:2]
    lower = _lower_triangle(t.source(0))
    kept = {0: n0 * n1 - lower + min(n0, n1), 1: n0 * n1 - lower, 2: lower}
    _read_triangle(t, kept.get(t.node.params[0], lower - min(n0, n1)))
    t.write()


def _solve_tri(t: _Touches) -> None:
    if t.has(0):
        _read_triangle(t, _lower_triangle(t.source(0)))
    t.read(1)
    t.write()


def _ssm_scan(t: _Touches) -> None:
    state, x, ids = 0, 1, 6
    t.read_selected(state, ids, ROWS, SEQUENCE)
    for i in range(1, len(t.node.sources)):
        t.read(i)
    if not (t.has(state) and t.has(x) and t.has(ids)):
        return t.write()
    one = footprint(t.source(state).one_part(SEQUENCE))
    t.write_with_snapshots(
        _elements(t.source(x)), one * _elements(t.source(ids)), t.source(x).ne[2]
    )


def _gated_delta_net(t: _Touches) -> None:
    v, state = 2, 5
    t.read_all()
    if not (t.has(v) and t.has(state)):
        return t.write()
    t.write_with_snapshots(_elements(t.source(v)), footprint(t.source(state)), t.source(v).ne[2])


def _hc_comb(t: _Touches) -> None:
    columns = t.output.ne[0] * t.output.ne[1]
    t.read_columns(0, columns)
    t.read_columns(1, 1)
    t.read_columns(2, columns)
    t.write()


_RULES: dict[str, Callable[[_Touches], None]] = {
    "ACC": _acc,
    "ADD_ID": _add_id,
    "CPY": _cpy,
    "DSV4_HC_COMB": _hc_comb,
    "FILL": _fill,
    "FLASH_ATTN_EXT": _flash_attn_ext,
    "GATED_DELTA_NET": _gated_delta_net,
    "GET_ROWS": _get_rows,
    "IM2COL": _im2col,
    "IM2COL_3D": _im2col,
    "MUL_MAT_ID": _mul_mat_id,
    "ROPE": _rope,
    "ROPE_BACK": _rope,
    "SET": _set,
    "SET_ROWS": _set_rows,
    "SOFT_MAX": _soft_max,
    "SOLVE_TRI": _solve_tri,
    "SSM_SCAN": _ssm_scan,
    "TRI": _tri,
}


def touches_of(graph: Template, node: Node) -> list[Touch]:
    """Reads in the order of the sources, then the write."""
    if not node.computed:
        return []
    touches = _Touches(graph, node)
    _RULES.get(node.op, _every_source_once)(touches)
    return touches.touches


def covers(graph: Template, outer: Touch, inner: Touch) -> bool:
    """Whether `outer` touches every byte that `inner` touches."""
    if (outer.write, outer.extent, outer.index) != (inner.write, inner.extent, inner.index):
        return False
    if outer.tensor == inner.tensor:
        return outer.unit >= inner.unit
    if graph.root(outer.tensor) != graph.root(inner.tensor):
        return False
    a, b = graph.tensors[outer.tensor], graph.tensors[inner.tensor]
    if b.view_offset < a.view_offset:
        return False
    begin = b.view_offset - a.view_offset
    if outer.extent == ALL and outer.unit == span_of(a):
        return begin + span_of(b) <= outer.unit
    # Rows of the same grid: each inner row is a range of the outer row.
    for d in range(1, 4):
        if a.ne[d] != b.ne[d] or (a.ne[d] > 1 and a.nb[d] != b.nb[d]):
            return False
    a_row, b_row = a.one_part(ROW), b.one_part(ROW)
    return (
        footprint(a_row) == span_of(a_row)
        and footprint(b_row) == span_of(b_row)
        and begin + span_of(b_row) <= span_of(a_row)
    )
