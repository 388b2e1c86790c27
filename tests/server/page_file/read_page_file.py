"""The answers in a file of `tt export -o s.html`, as JSON: [{"key", "status", "type", "body"}], in the
order of the file. Reads what a browser would: the elements that hold them."""

import base64
import gzip
import json
import re
import sys

html = open(sys.argv[1], encoding="utf-8").read()
elements = {
    name: gzip.decompress(base64.b64decode(text, validate=True)).decode("utf-8", "replace")
    for name, text in re.findall(
        r'<script type="application/octet-stream" id="(\w+)">([^<]*)</script>', html
    )
}
index = json.loads(elements["held"])
assert len(elements) == len(index["answers"]) + 1, "an element that is not listed"
answers = sorted(index["answers"].items(), key=lambda one: one[1][0])
print(
    json.dumps(
        {
            "session": index["session"],
            "same": index["same"],
            "around": re.sub(r"<script type=.application/octet.*</script>\n", "", html),
            "answers": [
                {"key": key, "status": status, "type": type, "body": elements[f"a{number}"]}
                for key, (number, status, type) in answers
            ],
        }
    )
)
