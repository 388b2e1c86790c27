"""Runs the Python code of a document as one program in this folder, unchanged, and prints what the
examples computed as JSON."""
import contextlib
import io
import json
import os
import re
import sys

code = re.findall(r"^```python\n(.*?)^```$", open(sys.argv[1]).read(), re.DOTALL | re.MULTILINE)
names = {}
with contextlib.redirect_stdout(io.StringIO()):
    for number, block in enumerate(code):
        exec(compile(block, f"{sys.argv[1]}, example {number + 1}", "exec"), names)
df = names["df"]
print(
    json.dumps(
        {
            "examples": len(code),
            "rows": len(df),
            "bytes": float(df.size_bytes.sum()),
            "heat_rows": int(names["heat"].to_numpy().sum()),
            "heat_shape": names["heat"].shape,
            "hot": {name: int(count) for name, count in names["hot"].items()},
            "ops": {name: int(count) for name, count in names["ops"].items()},
            "qkv": {["", "Q", "K", "V", "QKV", "O"][kind]: int(n) for kind, n in names["qkv"].items()},
            "experts_per_token": sorted({int(n) for n in names["per_token"]}),
            "expert_rows": int(names["used"].sum()),
            "same_experts": bool((names["experts"].number == names["experts"].expert_id).all()),
            "pattern": json.load(open("access_pattern.json"))["per_token_pattern"],
            "pictures": [os.path.getsize(name) for name in ("heat_map.png", "timeline.png")],
        }
    )
)
