#!/usr/bin/env python3
"""What tt analyze file-order computes, with numpy: file_order.py ACCESSES.csv TENSORS.csv GAP.

Written from docs/analyses.md. ACCESSES.csv: the reads of weights by generated tokens, in order, with
step, op, access, file_offset, file_bytes, expert_id and memory_source. TENSORS.csv: file_offset,
file_bytes, ne2 of the weights. Of one model file.
"""

import csv
import json
import sys

import numpy as np


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def column(rows, name):
    return np.array([int(row[name]) if row[name] else -1 for row in rows], dtype=np.int64)


def ranks(counts):
    """Of the most used first; of equally used ones the lower number first."""
    order = np.lexsort((np.arange(len(counts)), -counts))
    places = np.empty(len(counts), dtype=np.int64)
    places[order] = np.arange(len(counts))
    return places


def unneeded(begin, end, step, unit):
    """Bytes in blocks of `unit` that a step touches, without the bytes that it needs."""
    blocks = needed = 0
    for one in np.unique(step):
        of = step == one
        edges = np.unique(np.concatenate([begin[of], end[of]]))
        # Parts of the file between neighbouring ends of reads are needed or not as a whole.
        middle = (edges[:-1] + edges[1:]) / 2
        inside = ((middle[:, None] >= begin[of]) & (middle[:, None] < end[of])).any(axis=1)
        needed += int(np.diff(edges)[inside].sum())
        touched = [np.arange(b // unit, (e - 1) // unit + 1) for b, e in zip(begin[of], end[of])]
        blocks += len(np.unique(np.concatenate(touched)))
    return blocks * unit - needed, needed


def main():
    accesses, tensors, gap = rows_of(sys.argv[1]), rows_of(sys.argv[2]), int(sys.argv[3])
    starts, sizes, thick = (column(tensors, n) for n in ("file_offset", "file_bytes", "ne2"))
    by_start = np.argsort(starts)
    begin, length = column(accesses, "file_offset"), column(accesses, "file_bytes")
    owner = by_start[np.searchsorted(starts[by_start], begin, side="right") - 1]
    expert = column(accesses, "expert_id")

    _, first = np.unique(owner, return_index=True)
    order = owner[np.sort(first)]
    padded = -(-sizes[order] // 32) * 32
    moved = np.full(len(starts), -1, dtype=np.int64)
    moved[order] = starts[order].min() + np.concatenate([[0], np.cumsum(padded)[:-1]])

    place = expert.copy()
    for tensor in np.unique(owner[expert >= 0]):
        of = (owner == tensor) & (expert >= 0)
        place[of] = ranks(np.bincount(expert[of], minlength=thick[tensor]))[expert[of]]
    slice_bytes = sizes[owner] // np.maximum(thick[owner], 1)
    layouts = {"stored": begin, "tensors-by-use": begin - starts[owner] + moved[owner]}
    if (expert >= 0).any():
        layouts["experts-by-use"] = layouts["tensors-by-use"] + np.where(
            expert >= 0, (place - expert) * slice_bytes, 0)

    disk = np.array([row["memory_source"] == "disk" for row in accesses])
    keys = [column(accesses, n) for n in ("step", "op", "access")]
    out = []
    for name, offsets in layouts.items():
        # One access reads its parts in the order of the file.
        sort = np.lexsort((offsets, keys[2], keys[1], keys[0]))
        sort = sort[disk[sort]]
        b, e, step = offsets[sort], offsets[sort] + length[sort], keys[0][sort]
        distance = b[1:] - e[:-1]
        follows = (distance >= 0) & (distance <= gap)
        jumps = np.abs(distance[~follows])
        page, needed = unneeded(b, e, step, 4096)
        out.append({
            "layout": name,
            "reads": len(b),
            "sequential": int(follows.sum()),
            "bytes": int((e - b).sum()),
            "sequential_bytes": int((e - b)[1:][follows].sum()),
            "jumps": len(jumps),
            "jump_bytes": int(jumps.sum()),
            "longest_jump": int(jumps.max(initial=0)),
            "needed": needed,
            "page_unneeded": page,
            "readahead_unneeded": unneeded(b, e, step, 128 << 10)[0],
        })
    json.dump({"layouts": out, "order": [tensors[i]["tensor_name"] for i in order],
               "offsets": [int(n) for n in moved[order]]}, sys.stdout)


main()
