"""Checks a Chrome trace against the Trace Event Format: each event has its fields, slices
of a track nest and never overlap, flows begin before they end and are bound to slices.
Prints counts, and the sum of the durations of each category in nanoseconds, as JSON; exits with a message on errors."""
import gzip
import json
import sys
from collections import defaultdict
from decimal import Decimal

REQUIRED = {
    "X": ("name", "cat", "pid", "tid", "ts", "dur"),
    "C": ("name", "pid", "tid", "ts", "args"),
    "M": ("name", "pid", "tid", "args"),
    "s": ("id", "name", "cat", "pid", "tid", "ts"),
    "f": ("id", "name", "cat", "pid", "tid", "ts", "bp"),
}


def check(condition, *what):
    if not condition:
        sys.exit("wrong: " + " ".join(str(w) for w in what))


with gzip.open(sys.argv[1], "rt", encoding="utf-8") as file:
    trace = json.load(file, parse_float=Decimal)
check(isinstance(trace.get("traceEvents"), list), "no traceEvents")
check(trace.get("displayTimeUnit") in ("ms", "ns"), "displayTimeUnit")

tracks = defaultdict(list)
named = set()
flows = defaultdict(list)
counts = defaultdict(int)
durations = defaultdict(int)
for event in trace["traceEvents"]:
    phase = event.get("ph")
    check(phase in REQUIRED, "unknown phase", event)
    for field in REQUIRED[phase]:
        check(field in event, field, "missing in", event)
    check(isinstance(event["pid"], int) and isinstance(event["tid"], int), "pid, tid", event)
    counts[phase] += 1
    if phase == "M":
        check(event["name"] in ("process_name", "thread_name"), event)
        named.add((event["pid"], event["tid"]) if event["name"] == "thread_name" else event["pid"])
    if phase == "X":
        check(event["dur"] >= 0 and event["ts"] >= 0, "times of", event)
        durations[event["cat"]] += int(1000 * event["dur"])
        counts[event["cat"]] += 1
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    if phase == "C":
        check(all(isinstance(v, (int, Decimal)) for v in event["args"].values()), event)
    if phase in "sf":
        flows[event["name"], event["id"]].append((phase, event["ts"], event["pid"], event["tid"]))

for track, slices in tracks.items():
    check(track in named and track[0] in named, "track without a name", track)
    open_ends = []
    # By begin; at equal begins the longer slice first.
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        check(not open_ends or end <= open_ends[-1], "overlap on", track, begin, end)
        open_ends.append(end)

for flow, events in flows.items():
    check(events[0][0] == "s" and events[-1][0] == "f", "flow", flow, events)
    check(len(events) == 2, "flow", flow, events)
    check([e[1] for e in events] == sorted(e[1] for e in events), "order of flow", flow)
    for _, at, pid, tid in events:
        check(any(begin <= at <= end for begin, end in tracks[pid, tid]), "flow off slices", flow)

counts["tracks"] = len(named)
counts["durations"] = durations
print(json.dumps(counts))
