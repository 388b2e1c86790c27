"""Copies the weights of one GGUF file into a copy of another with the same tensors.

llama-finetune saves a metadata key for every architecture that it knows; this keeps only the
metadata of the original model. usage: weights.py FROM.gguf INTO.gguf OUT.gguf
"""

import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


def tensors(data):
    """name -> (shape and type, begin and end of its bytes, including padding)."""
    at = 8

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        length = take("Q")
        at += length
        return data[at - length : at]

    def skip(kind):
        nonlocal at
        if kind == STRING:
            text()
        elif kind == ARRAY:
            element, count = take("I"), take("Q")
            for _ in range(count):
                skip(element)
        else:
            at += SIZES[kind]

    n_tensors, n_keys = take("Q"), take("Q")
    for _ in range(n_keys):
        assert text() != b"general.alignment"
        skip(take("I"))
    found = {}
    for _ in range(n_tensors):
        name = text()
        shape = tuple(take("Q") for _ in range(take("I")))
        found[name] = (shape, take("I")), take("Q")
    start = (at + 31) // 32 * 32
    ends = sorted(offset for _, offset in found.values())[1:] + [len(data) - start]
    return {
        name: (what, start + offset, start + min(end for end in ends if end > offset))
        for name, (what, offset) in found.items()
    }


source, target = (open(path, "rb").read() for path in sys.argv[1:3])
out = bytearray(target)
new = tensors(source)
old = tensors(target)
assert new.keys() == old.keys()
for name, (what, begin, end) in old.items():
    new_what, new_begin, _ = new[name]
    assert what == new_what, name
    out[begin:end] = source[new_begin : new_begin + end - begin]
assert len(out) == len(target)
open(sys.argv[3], "wb").write(out)
