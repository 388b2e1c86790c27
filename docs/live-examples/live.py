#!/usr/bin/env python3
"""Tells a session while it runs, or again: live.py ws://127.0.0.1:8080/api/v1/live SESSION"""
import asyncio, json, struct, sys
import websockets

async def main(url, session):
    received = acked = ops = 0
    async with websockets.connect(url, max_size=None) as socket:
        await socket.send(json.dumps({"type": "subscribe", "session": session,
                                      "kinds": ["token", "step", "op"], "from": {}}))
        async for message in socket:
            received += len(message if isinstance(message, bytes) else message.encode())
            if received - acked >= 131072:
                acked = received
                await socket.send(json.dumps({"type": "ack", "bytes": acked}))
            if isinstance(message, bytes):  # a frame; kind 1: ops, flag 1: the step is complete
                kind, flags, number, step, first, rows = struct.unpack_from("<HHIIII", message, 4)
                ops += first + rows if kind == 1 and flags & 1 else 0
                continue
            event = json.loads(message)
            if event["type"] in ("token", "text"):
                print(event["text"], end="", flush=True)
            elif event["type"] == "error" or event.get("state") in ("done", "cancelled", "failed", "recovered"):
                print(f"\n{event.get('state', event.get('detail'))}: {ops} ops")
                return

asyncio.run(main(*sys.argv[1:]))
