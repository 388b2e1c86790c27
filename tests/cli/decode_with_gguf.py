#!/usr/bin/env python3
"""decode_with_gguf.py FILE VALUES: decodes all tensors of a GGUF file with llama.cpp's own Python package
gguf, and compares them with VALUES, which has 32-bit floats of all of them. Prints {TYPE: number of values
that differ, or null: the package does not decode the type} as JSON."""
import json
import sys

import numpy as np
from gguf import GGUFReader, quants

values = np.fromfile(sys.argv[2], np.float32)
out, at = {}, 0
for tensor in GGUFReader(sys.argv[1]).tensors:
    ours = values[at : at + tensor.n_elements]
    at += tensor.n_elements
    name = tensor.tensor_type.name
    try:
        with np.errstate(all="ignore"):
            theirs = quants.dequantize(tensor.data, tensor.tensor_type).reshape(-1)
    except NotImplementedError:
        out[name] = None
        continue
    # Both round products and differences, in other orders. Each row of the list is a block or a part of one.
    size = np.abs(theirs.reshape(-1, 16)).max(1).repeat(16)
    same = np.isclose(ours, theirs, rtol=1e-5, atol=0, equal_nan=True) | (np.abs(ours - theirs) <= 1e-5 * size)
    out[name] = int(np.count_nonzero(~same))
assert at == values.size
print(json.dumps(out))
