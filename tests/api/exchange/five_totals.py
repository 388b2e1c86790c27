"""Five totals of a session, computed by Python's sqlite3 with the tt extension and by
pyarrow from the Parquet file. Prints JSON.

five_totals.py SESSION EXTENSION SQL PARQUET"""
import json
import sqlite3
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq

session, extension, sql, parquet = sys.argv[1:]
db = sqlite3.connect(f"file:{session}?mode=ro", uri=True)
db.enable_load_extension(True)
db.load_extension(extension)

table = pq.read_table(parquet)
size, write = table["size_bytes"], table["write"]
weights = table.filter(pc.equal(table["tensor_kind"], "weight"))
totals = [
    table.num_rows,
    pc.sum(size.filter(pc.invert(write))).as_py(),
    pc.sum(size.filter(write)).as_py(),
    pc.sum(size.filter(pc.is_valid(table["expert_id"]))).as_py(),
    pc.count_distinct(weights["tensor_name"]).as_py(),
]
print(json.dumps({"sqlite3": list(db.execute(sql).fetchone()), "pyarrow": totals}))
