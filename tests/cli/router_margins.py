#!/usr/bin/env python3
"""What tt analyze expert-margins and expert-token-margins compute, with numpy, from the scores that
the routers sort: router_margins.py FILE.safetensors CHOSEN. Prints, by layer, one row for each
token in the order of the steps."""
import json
import re
import sys

import numpy as np

chosen = int(sys.argv[2])
data = open(sys.argv[1], "rb").read()
size = int.from_bytes(data[:8], "little")
arrays = {}
for name, of in json.loads(data[8 : 8 + size]).items():
    found = re.fullmatch(r"step(\d+)\.op\d+\.ffn_moe_(argsort|probs)-(\d+)(\.src0)?", name)
    begin, end = (8 + size + at for at in of["data_offsets"])
    array = np.frombuffer(data[begin:end], dtype="<f4").reshape(-1, of["shape"][-1])
    step, what, layer = int(found[1]), found[2], int(found[3])
    assert (what == "argsort") == (found[4] is not None), name
    arrays.setdefault(layer, {}).setdefault(step, {})[what] = array.astype(np.float64)

layers = {}
for layer, steps in sorted(arrays.items()):
    rows = layers[layer] = []
    for _, of in sorted(steps.items()):
        scores, probabilities = of["argsort"], of["probs"]
        assert scores.shape == probabilities.shape
        order = np.argsort(-scores, axis=1, kind="stable")
        for row in range(scores.shape[0]):
            best = order[row]
            p = probabilities[row]
            are = (p >= 0).all() and (p <= 1).all()
            share = p[p > 0] / p.sum()
            rows.append(
                {
                    "margin": scores[row, best[chosen - 1]] - scores[row, best[chosen]],
                    "entropy": float(-(share * np.log2(share)).sum()) if are else None,
                    "chosen": best[:chosen].tolist(),
                    "next": best[chosen : chosen + 4].tolist(),
                    "scores": scores[row, best[: chosen + 4]].tolist(),
                    "probabilities": p[best[: chosen + 4]].tolist() if are else None,
                }
            )
print(
    json.dumps(
        {
            str(layer): {
                "rows": rows,
                "margin": float(np.median([row["margin"] for row in rows])),
                "near": float(np.mean([row["margin"] < 0.05 for row in rows])),
            }
            for layer, rows in layers.items()
        }
    )
)
