#!/usr/bin/env python3
"""first_difference.py LEFT RIGHT TOLERANCE: what tt compare --values says, from two files of
tt values --safetensors. Prints {"compared", "different", "first": {"step", "op", "tensor_name",
"relative_error", "max_error"} or null} as JSON."""
import json
import re
import sys
from collections import defaultdict

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16}


def arrays(path):
    """(step, op, tensor, values), in the order of the ops."""
    raw = open(path, "rb").read()
    size = int.from_bytes(raw[:8], "little")
    out = []
    for name, one in json.loads(raw[8 : 8 + size]).items():
        found = re.fullmatch(r"step(\d+)\.op(\d+)\.(.*)", name)
        if not found:
            continue
        begin, end = one["data_offsets"]
        values = np.frombuffer(raw[8 + size + begin : 8 + size + end], TYPES[one["dtype"]])
        out.append((int(found[1]), int(found[2]), found[3], values.reshape(one["shape"])))
    return sorted(out, key=lambda one: one[:2])


def errors(left, right):
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        error[np.isnan(error)] = np.inf
        norm = np.sqrt((a[np.isfinite(a)] ** 2).sum())
        most, whole = error.max(), np.sqrt((error**2).sum())
        return float(most), float(whole / norm) if whole > 0 else 0.0


left, right, tolerance = arrays(sys.argv[1]), arrays(sys.argv[2]), float(sys.argv[3])
others = defaultdict(list)  # equal names of a step stay in order
for step, _, tensor, values in right:
    others[step, tensor].append(values)
compared = different = 0
first = None
for step, op, tensor, values in left:
    if not others[step, tensor]:
        continue
    other = others[step, tensor].pop(0)
    compared += 1
    most, relative = errors(values, other) if values.shape == other.shape else (0, np.inf)
    different += most > 0 or relative > 0
    if first is None and relative > tolerance:
        first = {"step": step, "op": op, "tensor_name": tensor, "relative_error": relative, "max_error": most}
print(json.dumps({"compared": compared, "different": different, "first": first}))
