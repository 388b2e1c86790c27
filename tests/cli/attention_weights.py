#!/usr/bin/env python3
"""Attention weights with numpy, from captured queries and keys, and how far those of tt differ:
attention_weights.py FILE.safetensors WINDOW. The mask is made here: cell i of the cache holds token
i, and with a window (0: none) every other layer, from the first one, sees only so many tokens.
Prints, by layer, the largest difference, and the largest weight outside the window."""
import json
import re
import sys

import numpy as np

window = int(sys.argv[2])
data = open(sys.argv[1], "rb").read()
size = int.from_bytes(data[:8], "little")
ops = {}
for name, of in json.loads(data[8 : 8 + size]).items():
    found = re.fullmatch(r"step(\d+)\.op(\d+)\.(attention)?[^.]*?-?(\d+)(\.src(\d))?", name)
    begin, end = (8 + size + at for at in of["data_offsets"])
    array = np.frombuffer(data[begin:end], dtype="<f4").reshape(of["shape"]).astype(np.float64)
    op = ops.setdefault((int(found[1]), int(found[2])), {})
    if found[3]:
        op["layer"], op["attention"] = int(found[4]), array
    else:
        op[f"src{found[6]}"] = array

first, layers = 0, {}
for step in sorted({step for step, _ in ops}):
    for (_, _), op in sorted((key, op) for key, op in ops.items() if key[0] == step):
        if "attention" not in op:
            continue
        queries, keys, layer = op["src0"], op["src1"], op["layer"]
        heads, tokens, width = queries.shape
        keys = keys.repeat(heads // keys.shape[0], axis=0)  # heads that share keys
        scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(width)
        token = first + np.arange(tokens)[:, None]
        cell = np.arange(keys.shape[1])[None, :]
        seen = cell <= token
        if window and layer % 2 == 0:
            seen &= token - cell < window
        scores[:, ~seen] = -np.inf
        if "src4" in op:  # sinks: one more key for each head, whose weight is dropped
            sinks = np.broadcast_to(op["src4"].reshape(heads, 1, 1), (heads, tokens, 1))
            scores = np.concatenate([scores, sinks], axis=2)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights = (weights / weights.sum(axis=2, keepdims=True))[:, :, : keys.shape[1]]
        ours = op["attention"].reshape(weights.shape)
        of = layers.setdefault(layer, {"rows": 0, "difference": 0.0, "unseen": 0.0, "far": 0.0})
        of["rows"] += heads * tokens
        of["difference"] = max(of["difference"], np.abs(weights - ours).max())
        of["unseen"] = max(of["unseen"], ours[:, ~seen].max())
        far = (token - cell >= window) & (cell <= token)
        of["far"] = max(of["far"], (ours * far).max())
        count = tokens
    first += count
print(json.dumps({str(layer): of for layer, of in layers.items()}))
