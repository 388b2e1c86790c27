"""Checks the `protoc --decode` output of a Perfetto trace (stdin): no unknown fields,
tracks are described before use, each begin has an end, slices of a track do not overlap
(ops nest in the steps on the first track), interned names are defined. Prints counts as
JSON, and the sum of the durations of each category. timeline_check.h compares the contents with the session."""
import json
import re
import sys
from collections import defaultdict


def check(condition, *what):
    if not condition:
        sys.exit("wrong: " + " ".join(str(w) for w in what))


def packets(lines):
    """Yields packets as {path: [values]}; a path is the field names joined by dots."""
    packet, path = None, []
    for line in lines:
        line = line.strip()
        if not line:
            continue
        check(not re.match(r"\d", line), "unknown field", line)
        if line.endswith("{"):
            name = line[:-1].strip()
            if not path:
                check(name == "packet", name)
                packet = defaultdict(list)
            path.append(name)
            packet[".".join(path[1:])].append({})
        elif line == "}":
            path.pop()
            if not path:
                yield packet
        else:
            name, value = line.split(": ", 1)
            packet[".".join(path[1:] + [name])].append(value)


tracks, counters, parents = set(), set(), set()
names = set()
ordered, ranks = set(), defaultdict(int)
open_slices = defaultdict(list)
last = defaultdict(int)
flows = defaultdict(int)
counts = defaultdict(int)
durations = defaultdict(int)
steps = None
for packet in packets(sys.stdin):
    check(packet["trusted_packet_sequence_id"] == ["1"], "sequence")
    names.update(packet["interned_data.event_names.iid"])
    if packet["track_descriptor"]:
        uuid = packet["track_descriptor.uuid"][0]
        check(uuid not in tracks, "duplicate track", uuid)
        tracks.add(uuid)
        if packet["track_descriptor.counter"]:
            counters.add(uuid)
        for parent in packet["track_descriptor.parent_uuid"]:
            check(parent in tracks, "parent", parent)
            check(parent in ordered, "children without an order", parent)
            rank = int(packet["track_descriptor.sibling_order_rank"][0])
            check(rank > ranks[parent], "rank of", uuid)
            ranks[parent] = rank
        if packet["track_descriptor.child_ordering"] == ["EXPLICIT"]:
            ordered.add(uuid)
    if not packet["track_event"]:
        continue
    kind, uuid = packet["track_event.type"][0], packet["track_event.track_uuid"][0]
    at = int(packet["timestamp"][0])
    check(uuid in tracks, "no track", uuid)
    check(at >= last[uuid], "decreasing time on", uuid)
    last[uuid] = at
    counts[kind] += 1
    if kind == "TYPE_SLICE_BEGIN":
        check(uuid not in counters, "slice on a counter")
        name = packet["track_event.name_iid"]
        check(name[0] in names if name else packet["track_event.name"], "name")
        open_slices[uuid].append((at, packet["track_event.categories"][0].strip('"')))
        if open_slices[uuid][-1][1] == "step":
            steps = uuid
        check(len(open_slices[uuid]) <= (2 if uuid == steps else 1), "overlap on", uuid, at)
        for flow in packet["track_event.flow_ids"]:
            flows[flow] += 1
    elif kind == "TYPE_SLICE_END":
        check(open_slices[uuid], "end without begin on", uuid)
        begin, category = open_slices[uuid].pop()
        durations[category] += at - begin
    elif kind == "TYPE_INSTANT":
        check(packet["track_event.name_iid"][0] in names, "name")
    else:
        check(kind == "TYPE_COUNTER" and uuid in counters, kind, uuid)
        check(packet["track_event.double_counter_value"], "counter without a value")
check(not any(open_slices.values()), "slices without an end")
counts["tracks"], counts["flows"] = len(tracks), len(flows)
counts["durations"] = durations
print(json.dumps(counts))
