"""Checks analysis/ of a run folder against its records: the sums of statistics.json and
every pixel of the two images. Op ends and files, which the records lack, come from the
Parquet file of the same session. Prints JSON."""
import json
import sys

import matplotlib.image
import numpy
import pandas

run, parquet = sys.argv[1:3]
metadata = json.load(open(f"{run}/trace_metadata.json"))
statistics = json.load(open(f"{run}/analysis/statistics.json"))
records = pandas.DataFrame(
    numpy.fromfile(
        f"{run}/tensor_access.bin",
        dtype=[
            ("timestamp_ns", "<i8"), ("size_bytes", "<u8"), ("file_offset", "<u8"),
            ("tensor_ptr", "<u8"), ("step", "<u4"), ("token_id", "<u4"), ("access", "<u4"),
            ("tensor", "<u4"), ("routing_score", "<f4"), ("expert_id", "<i2"),
            ("expert_rank", "<i2"), ("attention_head", "<i2"), ("layer_id", "<i2"),
            ("operation_type", "<u2"), ("flags", "<u2"),
        ],
    )
)  # fmt: skip
accesses = pandas.read_csv(f"{run}/accesses.csv", keep_default_na=False)
records = records.join(
    accesses[["op_layer_id", "component", "tensor_kind", "tensor_name"]], on="access"
)
names = pandas.read_csv(
    f"{run}/tensor_names.txt", sep="\t", header=None, names=["index", "name"], quoting=3
)
assert (names["index"] == numpy.arange(len(names))).all()
assert (names["name"].to_numpy()[records["tensor"]] == records["tensor_name"]).all()
structure = pandas.read_csv(f"{run}/gguf_structure.csv")
assert list(structure.columns[:5]) == [
    "tensor_name", "file_offset", "size_bytes", "layer_id", "component_type",
]  # fmt: skip
assert set(structure["heat"]) <= {"hot", "warm", "cold"}
read = set(records.loc[records["tensor_kind"] == "weight", "tensor_name"])
assert read <= set(structure["tensor_name"]), read - set(structure["tensor_name"])
flags = records["flags"].to_numpy()
for column, bit in {"expert_id": 256, "attention_head": 512}.items():
    none = flags & bit == 0
    assert (records.loc[none, column] == 255).all()
    records[column] = records[column].where(~none).astype("Int16")
records["write"] = flags & 1 == 1
records["phase"] = numpy.array(["prompt", "generate", "encode", "embed", "other"])[
    (flags >> 1) & 7
]
records["source"] = numpy.array(
    ["disk", "repacked", "kv", "compute", "input", "device", "buffer"]
)[(flags >> 4) & 15]
records["kind"] = numpy.array(metadata["operation_types"])[records["operation_type"]]
records["layer"] = records["layer_id"].map(lambda n: "none" if n < 0 else str(n))


def sums(frame):
    return {
        "accesses": len(frame),
        "bytes_read": int(frame.loc[~frame["write"], "size_bytes"].sum()),
        "bytes_written": int(frame.loc[frame["write"], "size_bytes"].sum()),
    }


def by(column, frame=records):
    return {str(name): sums(rows) for name, rows in frame.groupby(column)}


assert {k: statistics[k] for k in sums(records)} == sums(records)
for name, column in {
    "phases": "phase", "layers": "layer", "operation_types": "kind",
    "components": "component", "memory_sources": "source",
}.items():  # fmt: skip
    assert statistics[name] == by(column), (name, statistics[name], by(column))
weights = by("tensor_name", records[records["tensor_kind"] == "weight"])
top = statistics["weights_with_most_bytes"]
assert len(top) == min(50, len(weights)) and all(weights[n] == s for n, s in top.items())
least = min(s["bytes_read"] + s["bytes_written"] for s in top.values())
assert all(
    s["bytes_read"] + s["bytes_written"] <= least for n, s in weights.items() if n not in top
)
assert statistics["steps"] == len(metadata["steps"])
assert statistics["tokens_evaluated"] == sum(s["token_count"] for s in metadata["steps"])

X, Y, WIDTH, HEIGHT = 100, 40, 1280, 640  # the plot, docs/exports.md


def check(name, grid):
    """Grid rows start at the bottom. The colour of a cell is its share of the maximum."""
    image = matplotlib.image.imread(f"{run}/analysis/{name}.png")
    assert image.shape == (720, 1400, 3), image.shape
    plot = image[Y : Y + HEIGHT, X : X + WIDTH] * 255
    rows = numpy.arange(HEIGHT)[::-1] * grid.shape[0] // HEIGHT
    columns = numpy.arange(WIDTH) * grid.shape[1] // WIDTH
    cells = grid[rows][:, columns][:, :, None]
    expected = numpy.array([222, 235, 247]) + cells / grid.max() * numpy.array([-214, -187, -140])
    expected = numpy.where(cells > 0, expected, 255)
    # Rounding decides the colour of cells that are almost zero.
    sure = (cells == 0) | (cells > 1e-9 * grid.max())
    wrong = (numpy.abs(plot - expected) > 0.6) & sure
    assert not wrong.any(), (name, numpy.argwhere(wrong)[:5], wrong.sum())
    assert (image[:Y] < 0.5).any() and (image[Y + HEIGHT :] < 0.5).any(), "labels"
    return int((grid > 0).sum())


def of_pixels(begin, end, from_, to, pixels):
    """The share of [begin, end) in each pixel of [from_, to), with integer pixel edges."""
    edges = from_ + (to - from_) * numpy.arange(pixels + 1) // pixels
    if begin == end:
        return ((edges[:-1] <= begin) & (begin < edges[1:])).astype(float)
    overlap = numpy.minimum(end, edges[1:]) - numpy.maximum(begin, edges[:-1])
    return numpy.maximum(overlap, 0) / (end - begin)


steps = {s["step"]: s for s in metadata["steps"]}
first = min(s["token_id"] for s in steps.values())
last = max(s["token_id"] + max(1, s["token_count"]) for s in steps.values())
layers = sorted(
    set(accesses["op_layer_id"]), key=lambda n: (n == "", int(n) if n != "" else 0)
)
heat = numpy.zeros((len(layers), last - first))
for (step, layer), rows in records.groupby(["step", "op_layer_id"]):
    tokens = max(1, steps[step]["token_count"])
    at = steps[step]["token_id"] - first
    heat[layers.index(layer), at : at + tokens] += float(rows["size_bytes"].sum()) / tokens
heat_cells = check("heatmap_token_layer", heat)

frame = pandas.read_parquet(parquet)
frame = frame[frame["step"].isin(steps.keys())].copy()
assert (frame["expert_id"].astype("Int32").fillna(-1).to_numpy()
        == records["expert_id"].astype("Int32").fillna(-1).to_numpy()).all()  # fmt: skip
assert frame["self_ns"].notna().all()
# The parts of the time of an op add up to it.
frame["op_ns"] = frame.groupby(["step", "op"])["self_ns"].transform("sum")
begin = min(s["timestamp_ns"] for s in steps.values())
end = max(s["end_ns"] for s in steps.values())
sizes = [f["size"] for f in metadata["session"]["model_files"]]
starts = [sum(sizes[:i]) for i in range(len(sizes))]
time = numpy.zeros((min(HEIGHT, sum(sizes)), min(WIDTH, end - begin)))
for row in frame[frame["file_offset"].notna()].itertuples():
    at = starts[int(row.model_file)] + int(row.file_offset)
    ys = of_pixels(at, at + int(row.file_bytes), 0, sum(sizes), time.shape[0])
    xs = of_pixels(
        row.timestamp_ns, row.timestamp_ns + int(row.op_ns), begin, end, time.shape[1]
    )
    y, x = numpy.nonzero(ys)[0], numpy.nonzero(xs)[0]
    time[numpy.ix_(y, x)] += float(row.size_bytes) * numpy.outer(ys[y], xs[x])
time_cells = check("timeline_offset", time)
print(json.dumps({**sums(records), "heat_cells": heat_cells, "time_cells": time_cells}))
