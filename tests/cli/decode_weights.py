#!/usr/bin/env python3
"""Decodes the blocks of tensors with numpy, from the description of the formats, without ggml.

decode_weights.py FILE < tensors.json compares with what tt weights says. tensors.json:
[{"name", "type", "offset", "bytes", "columns", "blocks": output of tt weights --blocks, "details": of tt weights
--json}]. Prints {NAME: {"count", "min", "max", "mean", "std", "zeros", "outliers", "rows": the same of each row,
and how many figures differ: "histogram_errors", "scale_errors", "minimum_errors", "block_errors"}} as JSON.

decode_weights.py FILE OUTPUT < tensors.json writes the values of all tensors, as 32-bit floats.

decode_weights.py FILE --reference REFERENCE < tensors.json prints how far the tensors are from those
of REFERENCE. tensors.json: [{"name", "type", "offset", "bytes", "columns", "reference": {"type",
"offset", "bytes"}}]. Prints {NAME: {"rmse", "relative_error", "cosine", "max_error", "worst_rows",
"worst_block", and the sums that these are made of}} as JSON. Two more fields of a tensor weigh its errors:
"importance": {"file", "sums": offset, "counts": offset, "matrices"} in a file of llama-imatrix, and "reads":
[[offset, bytes, times]] in REFERENCE. null: the tensor was not read.
"""
import csv
import json
import sys

import numpy as np


def f16(block, at):
    return block[:, at : at + 2].copy().view(np.float16).astype(np.float32)[:, 0]


def nibbles(part):
    """Low nibbles of all bytes, then the high ones."""
    return np.concatenate([part & 15, part >> 4], axis=1).astype(np.int32)


def bits(part, count):
    """Bit i of a little-endian word is that of value i."""
    return np.unpackbits(part, axis=1, bitorder="little")[:, :count].astype(np.int32)


def whole(scale, q, minimum=None):
    """One sub-block per block."""
    return scale[:, None], None if minimum is None else minimum[:, None], q[:, None, :]


def q4_0(b):
    return whole(f16(b, 0), nibbles(b[:, 2:18]) - 8)


def q4_1(b):
    return whole(f16(b, 0), nibbles(b[:, 4:20]), -f16(b, 2))


def q5_0(b):
    return whole(f16(b, 0), (nibbles(b[:, 6:22]) | bits(b[:, 2:6], 32) << 4) - 16)


def q5_1(b):
    return whole(f16(b, 0), nibbles(b[:, 8:24]) | bits(b[:, 4:8], 32) << 4, -f16(b, 2))


def q8_0(b):
    return whole(f16(b, 0), b[:, 2:34].view(np.int8).astype(np.int32))


def two_bits(part):
    """Each 32 bytes hold 128 values: four planes of two bits."""
    planes = [(part[:, h : h + 32] >> s) & 3 for h in range(0, part.shape[1], 32) for s in (0, 2, 4, 6)]
    return np.concatenate(planes, axis=1).astype(np.int32)


def q2_k(b):
    scale, minimum = f16(b, 80)[:, None], f16(b, 82)[:, None]
    return scale * (b[:, :16] & 15), minimum * (b[:, :16] >> 4), two_bits(b[:, 16:80]).reshape(-1, 16, 16)


def q3_k(b):
    high = np.concatenate([(b[:, :32] >> i) & 1 for i in range(8)], axis=1).astype(np.int32)
    q = two_bits(b[:, 32:96]) - np.where(high == 1, 0, 4)
    return f16(b, 108)[:, None] * three_k_scales(b), None, q.reshape(-1, 16, 16)


def three_k_scales(b):
    s = b[:, 96:108].astype(np.int32)
    low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], axis=1)
    top = np.concatenate([(s[:, 8:12] >> i) & 3 for i in (0, 2, 4, 6)], axis=1)
    return (low | top << 4) - 32


def six_bits(s):
    s = s.astype(np.int32)
    scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6) << 4], axis=1)
    minimum = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6) << 4], axis=1)
    return scale, minimum


def by_64(part):
    """32 bytes: 32 low nibbles, then 32 high ones."""
    return np.concatenate([nibbles(part[:, at : at + 32]) for at in range(0, 128, 32)], axis=1)


def q4_k(b):
    scale, minimum = six_bits(b[:, 4:16])
    return f16(b, 0)[:, None] * scale, f16(b, 2)[:, None] * minimum, by_64(b[:, 16:144]).reshape(-1, 8, 32)


def q5_k(b):
    scale, minimum = six_bits(b[:, 4:16])
    high = np.concatenate([(b[:, 16:48] >> i) & 1 for i in range(8)], axis=1).astype(np.int32)
    q = by_64(b[:, 48:176]) | high << 4
    return f16(b, 0)[:, None] * scale, f16(b, 2)[:, None] * minimum, q.reshape(-1, 8, 32)


def q6_k(b):
    halves = []
    for half in range(2):
        low, high = b[:, 64 * half : 64 * half + 64], b[:, 128 + 32 * half : 160 + 32 * half]
        four = [low[:, :32] & 15, low[:, 32:] & 15, low[:, :32] >> 4, low[:, 32:] >> 4]
        halves += [(f | ((high >> 2 * i) & 3) << 4).astype(np.int32) - 32 for i, f in enumerate(four)]
    q = np.concatenate(halves, axis=1).reshape(-1, 16, 16)
    return f16(b, 208)[:, None] * b[:, 192:208].view(np.int8).astype(np.int32), None, q


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


def iq4_nl(b):
    return whole(f16(b, 0), IQ4[nibbles(b[:, 2:18])])


def four_xs_scales(b):
    low = np.stack([(b[:, 4 + i // 2] >> 4 * (i % 2)) & 15 for i in range(8)], axis=1).astype(np.int32)
    word = b[:, 2:4].copy().view(np.uint16)[:, 0].astype(np.int32)
    top = np.stack([(word >> 2 * i) & 3 for i in range(8)], axis=1)
    return (low | top << 4) - 32


def iq4_xs(b):
    q = np.concatenate([nibbles(b[:, 8 + 16 * i : 24 + 16 * i]) for i in range(8)], axis=1)
    return f16(b, 0)[:, None] * four_xs_scales(b), None, IQ4[q].reshape(-1, 8, 32)


def mxfp4(b):
    scale = np.ldexp(np.float32(1), b[:, 0].astype(np.int32) - 128)
    return whole(scale, E2M1[nibbles(b[:, 1:17])])


SIZES = {"q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "q8_0": 34, "q2_K": 84, "q3_K": 110,
         "q4_K": 144, "q5_K": 176, "q6_K": 210, "iq4_nl": 18, "iq4_xs": 136, "mxfp4": 17}


def errors(expected, told):
    return int(np.count_nonzero(~np.isclose(expected.reshape(-1), told, rtol=1e-5, atol=1e-12)))


def decoded(path, tensor):
    kind = tensor["type"]
    raw = np.fromfile(path, np.uint8, tensor["bytes"], offset=tensor["offset"])
    scale, minimum, q = globals()[kind.lower()](raw.reshape(-1, SIZES[kind]))
    values = scale[:, :, None].astype(np.float32) * q
    if minimum is not None:
        values = values - minimum[:, :, None]
    return scale, minimum, values.astype(np.float32)


def outliers_of(values, columns):
    of_rows = values.reshape(-1, columns).astype(np.float64)
    return np.abs(of_rows) > 6 * np.sqrt((of_rows**2).mean(1, keepdims=True))


def at_most(values, end):
    """How many values are at most `end`, if they are known to 1/16: from, to."""
    ordered = np.sort(values)
    slack = np.abs(end) / 16
    return np.searchsorted(ordered, end - slack, "left"), np.searchsorted(ordered, end + slack, "right")


def histogram_errors(values, tensor):
    """How many bins and quantiles of tt weights are wrong by more than their resolution."""
    bins = tensor["details"]["histogram"]
    edges = np.linspace(values.min(), values.max(), len(bins) + 1)
    wrong = errors(edges[:-1], column(bins, "from")) + errors(edges[1:], column(bins, "to"))
    counts = np.cumsum(column(bins, "count"))
    least, most = at_most(values, edges[1:])
    wrong += int(np.count_nonzero((counts < least - 0.5) | (counts > most + 0.5)))
    wrong += int(abs(counts[-1] - values.size) > 0.5)
    quantiles = tensor["details"]["quantiles"]
    least, most = at_most(values, column(quantiles, "value"))
    rank = column(quantiles, "share") * values.size
    return wrong + int(np.count_nonzero((rank < least - 1) | (rank > most + 1))) + (len(quantiles) < 5)


def statistics(values, tensor):
    """Of all values and of each row."""
    columns = tensor["columns"]
    rows = values.reshape(-1, columns).astype(np.float64)
    outliers = outliers_of(values, columns)
    return {
        "outliers": int(outliers.sum()),
        "histogram_errors": histogram_errors(values.reshape(-1).astype(np.float64), tensor),
        "rows": {
            "min": rows.min(1).tolist(),
            "max": rows.max(1).tolist(),
            "mean": rows.mean(1).tolist(),
            "std": rows.std(1).tolist(),
            "rms": np.sqrt((rows**2).mean(1)).tolist(),
            "zeros": (rows == 0).sum(1).tolist(),
            "outliers": outliers.sum(1).tolist(),
        },
    }


def super_block(kind, raw):
    """Scale of the super-block, the factors of its sub-blocks, and the same of the minima."""
    if kind == "q2_K":
        return f16(raw, 80), raw[:, :16] & 15, f16(raw, 82), raw[:, :16] >> 4
    if kind in ("q4_K", "q5_K"):
        scale, minimum = six_bits(raw[:, 4:16])
        return f16(raw, 0), scale, f16(raw, 2), minimum
    if kind == "q3_K":
        return f16(raw, 108), three_k_scales(raw), None, None
    if kind == "q6_K":
        return f16(raw, 208), raw[:, 192:208].view(np.int8), None, None
    if kind == "iq4_xs":
        return f16(raw, 0), four_xs_scales(raw), None, None
    return None


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


def block_errors(tensor, raw, values, rows):
    """How many figures of the blocks of tt weights --blocks differ."""
    wrong = 0
    found = super_block(tensor["type"], raw)
    for scale, factor, at in ("super_scale", "scale_factor", 0), ("super_minimum", "minimum_factor", 2):
        if found is None or found[at] is None:
            wrong += sum(row[scale] != "" or row[factor] != "" for row in rows)
            continue
        per = found[at + 1].shape[1]
        wrong += errors(np.repeat(found[at], per), column(rows, scale))
        wrong += errors(found[at + 1].astype(np.float64), column(rows, factor))
    blocks = values.reshape(len(rows), -1).astype(np.float64)
    for name, expected in [
        ("min", blocks.min(1)),
        ("max", blocks.max(1)),
        ("zeros", (blocks == 0).sum(1)),
        ("outliers", outliers_of(values, tensor["columns"]).reshape(blocks.shape).sum(1)),
    ]:
        wrong += errors(expected, column(rows, name))
    for name, expected in ("mean", blocks.mean(1)), ("std", blocks.std(1)):
        wrong += int(np.count_nonzero(np.abs(expected - column(rows, name)) > 1e-6))
    return wrong


def compared(path, tensor):
    scale, minimum, values = decoded(path, tensor)
    raw = np.fromfile(path, np.uint8, tensor["bytes"], offset=tensor["offset"])
    raw = raw.reshape(-1, SIZES[tensor["type"]])
    rows = list(csv.DictReader(tensor["blocks"].splitlines()))
    minima = [row["minimum"] for row in rows]
    return {
        "count": values.size,
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": float(values.mean(dtype=np.float64)),
        "std": float(values.std(dtype=np.float64)),
        "zeros": int(np.count_nonzero(values == 0)),
        **statistics(values, tensor),
        "scale_errors": errors(scale, np.array([float(row["scale"]) for row in rows])),
        "minimum_errors": sum(m != "" for m in minima)
        if minimum is None
        else errors(minimum, np.array([float(m) for m in minima])),
        "block_errors": block_errors(tensor, raw, values, rows),
    }


def values_of(path, tensor):
    if tensor["type"] == "f32":
        return np.fromfile(path, np.float32, tensor["bytes"] // 4, offset=tensor["offset"])
    return decoded(path, tensor)[2].reshape(-1)


def importance_of(of, columns, rows):
    """Of each value: the mean of the squares of the inputs that it was multiplied with."""
    sums = np.fromfile(of["file"], np.float32, of["matrices"] * columns, offset=of["sums"])
    counts = np.fromfile(of["file"], np.float32, of["matrices"], offset=of["counts"])
    mean = sums.reshape(-1, columns).astype(np.float64) / np.where(counts > 0, counts, 1)[:, None]
    mean[counts == 0] = 1
    return np.repeat(mean, rows // of["matrices"], axis=0)


def reads_of(tensor, rows):
    """How often each row was read."""
    row_bytes = tensor["reference"]["bytes"] // rows
    reads = np.zeros(rows)
    for offset, size, times in tensor["reads"]:
        first = (offset - tensor["reference"]["offset"]) // row_bytes
        reads[first : first + -(-size // row_bytes)] += times
    return reads


def compared_with(path, reference, tensor):
    a = values_of(reference, tensor["reference"]).astype(np.float64).reshape(-1, tensor["columns"])
    b = values_of(path, tensor).astype(np.float64).reshape(a.shape)
    d = b - a
    columns = np.ones(a.shape)
    if tensor.get("importance"):
        columns = importance_of(tensor["importance"], a.shape[1], a.shape[0])
    reads = reads_of(tensor, a.shape[0]) if "reads" in tensor else np.ones(a.shape[0])
    if not reads.any():
        return None
    w = columns * reads[:, None]
    of_rows = np.sqrt((columns * d**2).sum(1) / (columns * a**2).sum(1))
    of_rows[reads == 0] = -1
    read = np.where(reads[:, None] > 0, d, 0)
    block = 32 if tensor["type"] in ("q8_0", "q5_0", "q4_0") else 256
    of_blocks = np.sqrt((read.reshape(-1, block) ** 2).mean(1)) if d.size % block == 0 else None
    sums = {
        "weights": w.sum(),
        "error": (w * d**2).sum(),
        "reference": (w * a**2).sum(),
        "value": (w * b**2).sum(),
        "product": (w * a * b).sum(),
    }
    return {
        "rmse": np.sqrt(sums["error"] / sums["weights"]),
        "relative_error": np.sqrt(sums["error"] / sums["reference"]),
        "cosine": sums["product"] / np.sqrt(sums["reference"] * sums["value"]),
        "max_error": np.abs(read).max(),
        "worst_rows": np.argsort(-of_rows, kind="stable")[:3].tolist(),
        "worst_block": None if of_blocks is None else divmod(int(of_blocks.argmax()) * block, a.shape[1]),
        "reads": reads.mean(),
        "values_read": reads.sum() * a.shape[1],
        "values": int(np.count_nonzero(reads) * a.shape[1]),
        "sums": sums,
    }


tensors = json.load(sys.stdin)
if "--reference" in sys.argv:
    print(json.dumps({one["name"]: compared_with(sys.argv[1], sys.argv[3], one) for one in tensors}))
elif len(sys.argv) > 2:
    np.concatenate([decoded(sys.argv[1], one)[2].reshape(-1) for one in tensors]).tofile(sys.argv[2])
else:
    print(json.dumps({one["name"]: compared(sys.argv[1], one) for one in tensors}))
