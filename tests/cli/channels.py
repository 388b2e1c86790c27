#!/usr/bin/env python3
"""What tt analyze channels computes, with numpy: channels.py FILE.npy... (arrays of one output)."""
import json
import sys

import numpy as np

arrays = [np.load(path).astype(np.float64) for path in sys.argv[1:]]
x = np.concatenate([a.reshape(-1, a.shape[-1]) for a in arrays])
squares = (x**2).sum(axis=0)
top = np.argsort(-squares, kind="stable")[:8]
deviations = x - x.mean()
exponents, counts = np.unique(np.frexp(np.abs(x[x != 0]))[1] - 1, return_counts=True)
print(
    json.dumps(
        {
            "rows": x.shape[0],
            "channels": x.shape[1],
            "zeros": int((x == 0).sum()),
            "min": x.min(),
            "max": x.max(),
            "mean": x.mean(),
            "std": x.std(),
            "norm": np.sqrt((x**2).sum(axis=1)).mean(),
            "kurtosis": (deviations**4).mean() / (deviations**2).mean() ** 2,
            "top": [
                {
                    "channel": int(i),
                    "mean": np.abs(x[:, i]).mean(),
                    "max": np.abs(x[:, i]).max(),
                    "share": squares[i] / squares.sum(),
                }
                for i in top
            ],
            "magnitudes": [
                {"exponent": int(e), "values": int(n)} for e, n in zip(exponents, counts)
            ],
        }
    )
)
