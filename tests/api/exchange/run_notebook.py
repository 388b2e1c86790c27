"""Executes analysis/notebook/session.ipynb on a Parquet file: run_notebook.py NOTEBOOK
PARQUET. Each code cell must succeed and produce output. Prints the findings of the
notebook as JSON."""
import ast
import json
import os
import sys

import nbformat
from nbclient import NotebookClient

os.environ["TT_PARQUET"] = os.path.abspath(sys.argv[2])
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
images = 0
for cell in notebook.cells:
    if cell.cell_type != "code":
        continue
    assert cell.outputs, cell.source[:200]
    images += sum("image/png" in output.get("data", {}) for output in cell.outputs)
findings = notebook.cells[-1].outputs[0]["data"]["text/plain"]
print(json.dumps({"findings": ast.literal_eval(findings.replace("nan", "None")), "images": images}))
