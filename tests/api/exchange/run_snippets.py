"""Runs the 17 pandas snippets of tests/data/pandas, unchanged and in order, on one export, and prints
what they computed as JSON.

    run_snippets.py SNIPPETS parquet|csv|folder

The current folder has trace.parquet, trace.csv or run/, and always run/. The snippets read Parquet:
other exports are loaded as docs/exports.md describes, and written as Parquet. The two plotting
packages that the environment lacks are replaced by ones that keep the data they are given.
"""
import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import types

import matplotlib

matplotlib.use("Agg")
import numpy
import pandas

plotted = []


def keep(data, *args, **options):
    plotted.append(data)
    return types.SimpleNamespace(write_html=lambda name: None)


for name, functions in (("seaborn", ["heatmap"]), ("plotly", []),
                        ("plotly.express", ["scatter", "density_heatmap"]),
                        ("plotly.graph_objects", [])):
    if name.split(".")[0] in sys.modules or importlib.util.find_spec(name.split(".")[0]) is None:
        module = types.ModuleType(name)
        for function in functions:
            setattr(module, function, keep)
        sys.modules[name] = module
        if "." in name:
            setattr(sys.modules[name.split(".")[0]], name.split(".")[1], module)

snippets, source = sys.argv[1:]
metadata = json.load(open("run/trace_metadata.json"))
session = metadata["session"]


def rows_of_folder():
    records = pandas.DataFrame(numpy.fromfile("run/tensor_access.bin", dtype=[
        ("timestamp_ns", "<i8"), ("size_bytes", "<u8"), ("file_offset", "<u8"),
        ("tensor_ptr", "<u8"), ("step", "<u4"), ("token_id", "<u4"), ("access", "<u4"),
        ("tensor", "<u4"), ("routing_score", "<f4"), ("expert_id", "<i2"), ("expert_rank", "<i2"),
        ("attention_head", "<i2"), ("layer_id", "<i2"), ("operation_type", "<u2"),
        ("flags", "<u2")]))
    records["expert_id"] = records["expert_id"].where(records["flags"] & 256 != 0)
    records["attention_head"] = records["attention_head"].where(records["flags"] & 512 != 0)
    records["layer_id"] = records["layer_id"].where(records["layer_id"] >= 0)
    records["file_offset"] = records["file_offset"].where(records["file_offset"] != 2**64 - 1)
    names = [line.split("\t", 1)[1] for line in open("run/tensor_names.txt").read().splitlines()]
    records["tensor_name"] = records["tensor"].map(lambda number: names[number])
    records["operation_type"] = records["operation_type"].map(
        lambda number: metadata["operation_types"][number])
    constants = pandas.read_csv("run/accesses.csv")
    records["qkv_type"] = records["access"].map(constants["qkv_type"])
    return records


if source == "csv":
    pandas.read_csv("trace.csv").to_parquet("trace.parquet")
elif source == "folder":
    rows_of_folder().to_parquet("trace.parquet")
shutil.copy("trace.parquet", "tensor_access.parquet")
shutil.copy("run/gguf_structure.csv", "gguf_structure.csv")

rows = pandas.read_parquet("trace.parquet")
last = rows.token_id.max()
names = {
    "num_layers": session["n_layers"],
    "num_tokens": int(last) + 1,
    # Of a layer and token, from the last token.
    "ops_per_layer": (rows.token_id == last).sum() / session["n_layers"],
    "model_path": session["model_files"][0]["path"],
    "get_file_size": os.path.getsize,
}
files = sorted(name for name in os.listdir(snippets) if name.endswith(".py"))
found = {"blocks": len(files), "deterministic": True}
with contextlib.redirect_stdout(io.StringIO()):
    for file in files:
        code = open(os.path.join(snippets, file), encoding="utf-8").read()
        try:
            exec(compile(code, file, "exec"), names)
        except AssertionError as failed:
            # It asserts that all tokens read the same tensors, which is not so with routed experts.
            if file != "block_14.py":
                raise
            found["deterministic"] = str(failed)
        if file == "block_07.py":
            found["qkv"] = [int(names["qkv_counts"].get(kind, 0)) for kind in (1, 2, 3)]
            found["heads"] = {int(k): int(v) for k, v in names["head_counts"].items()}
found["layers"] = {int(k): int(v) for k, v in names["layer_stats"]["total_bytes"].items()}
found["rows_of_layers"] = int(names["layer_stats"]["access_count"].sum())
found["hot"] = {name: int(n) for name, n in names["hot_tensors"].items() if n > 0}
found["experts"] = {int(k): int(v) for k, v in names["expert_totals"].items()}
per_token = names["experts_per_token"]
found["experts_per_token"] = sorted({int(n) for n in per_token})
found["heat"] = int(names["heatmap_data"].to_numpy().sum())
found["activations"] = int(names["expert_usage"]["access_count"].sum())
found["pattern"] = json.load(open("access_pattern.json"))["per_token_pattern"]
print(json.dumps(found))
