"""Computes the five totals of a Parquet file or folder with pandas and with pyarrow, and
runs typical one-line queries. Prints JSON."""
import json
import sys

import pandas
import pyarrow.compute as pc
import pyarrow.parquet as pq

path = sys.argv[1]
table = pq.read_table(path)
size, write = table["size_bytes"], table["write"]


def total(mask):
    return pc.sum(size.filter(mask)).as_py() or 0


arrow = [
    table.num_rows,
    total(pc.invert(write)),
    total(write),
    total(pc.is_valid(table["file_offset"])),
    pc.sum(pc.is_valid(table["expert_id"])).as_py() or 0,
]

frame = pandas.read_parquet(path)
panda = [
    len(frame),
    int(frame.loc[~frame["write"], "size_bytes"].sum()),
    int(frame.loc[frame["write"], "size_bytes"].sum()),
    int(frame.loc[frame["file_offset"].notna(), "size_bytes"].sum()),
    int(frame["expert_id"].notna().sum()),
]

# Typical queries.
by_layer = frame.groupby("layer_id")["size_bytes"].sum()
by_op = frame.groupby("operation_type", observed=True)["self_ns"].sum()
hot = frame.groupby("tensor_name", observed=True).size().sort_values(ascending=False).head(10)
heat = frame.pivot_table(index="token_id", columns="layer_id", values="size_bytes", aggfunc="sum")
assert len(hot) > 0 and len(by_op) > 0 and by_layer.sum() > 0 and heat.size > 0
print(json.dumps({"pyarrow": arrow, "pandas": panda, "columns": list(frame.columns)}))
