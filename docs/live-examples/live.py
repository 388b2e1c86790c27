"""Tells a session while it runs, or again: live.py ws://127.0.0.1:8080/api/v1/live SESSION"""
import json, struct, sys
from websockets.sync.client import connect
received = acked = ops = 0
with connect(sys.argv[1], max_size=None) as socket:
    socket.send(json.dumps({"type": "subscribe", "session": sys.argv[2],
                            "kinds": ["token", "step", "op"], "from": {}}))
    for message in socket:
        received += len(message if isinstance(message, bytes) else message.encode())
        if received - acked >= 131072:
            acked = received
            socket.send(json.dumps({"type": "ack", "bytes": acked}))
        if isinstance(message, bytes):  # a frame; kind 1: ops, flag 1: the step is complete
            kind, flags, number, step, first, rows = struct.unpack_from("<HHIIII", message, 4)
            ops += first + rows if kind == 1 and flags & 1 else 0
        elif (event := json.loads(message))["type"] in ("token", "text"):
            print(event["text"], end="", flush=True)
        elif event["type"] == "error" or event.get("state", "running") not in ("queued", "running"):
            print(f"\n{event.get('state', event.get('detail'))}: {ops} ops")
            break
