"""How many bytes the elements of a view occupy (docs/byte-rules.md, "Views")."""

from __future__ import annotations

from itertools import product

from .graph import Tensor

_MAX_BLOCKS = 1 << 14


def _layout(view: Tensor) -> list[tuple[int, int]] | None:
    """The repetitions (count, stride) of a block, smallest stride first; None: an empty view."""
    if min(view.ne) <= 0:
        return None
    counts = list(view.ne)
    if view.block_elements > 1:
        counts[0] = -(-counts[0] // view.block_elements)
    repeats = [(count, stride) for count, stride in zip(counts, view.nb) if count > 1 and stride]
    return sorted(repeats, key=lambda repeat: repeat[1])


def span_of(view: Tensor) -> int:
    """The bytes from the first to the last one, with gaps."""
    repeats = _layout(view)
    if repeats is None:
        return 0
    return view.block_bytes + sum((count - 1) * stride for count, stride in repeats)


def footprint(view: Tensor) -> int:
    """The distinct bytes, without gaps."""
    repeats = _layout(view)
    if repeats is None:
        return 0
    size = span = view.block_bytes
    for count, stride in repeats:
        if size == span and stride <= span:  # extends a contiguous range
            size += (count - 1) * stride
        elif stride >= span:
            size *= count
        else:
            return _merged(view.block_bytes, repeats)
        span += (count - 1) * stride
    return size


def _merged(block: int, repeats: list[tuple[int, int]]) -> int:
    """Windows that overlap and have gaps: their blocks are counted one by one."""
    blocks = 1
    for count, _ in repeats:
        blocks *= count
    if blocks > _MAX_BLOCKS:
        return block + sum((count - 1) * stride for count, stride in repeats)
    starts = sorted(
        sum(step)
        for step in product(*(range(0, count * stride, stride) for count, stride in repeats))
    )
    size = end = 0
    for start in starts:
        size += max(0, start + block - max(start, end))
        end = start + block
    return size
