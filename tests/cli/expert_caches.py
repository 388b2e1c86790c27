"""Caches of experts, simulated from a routing log: token,layer,expert,rank,score (CSV).

Prints what `tt moe --json` has in "caches": for each number of slots, the requests of the second
half of the tokens that each policy serves. Written from the documentation alone, with plain lists.
"""

import csv
import json
import sys

MASK = (1 << 64) - 1


def read(path):
    """Per token, in order: its (layer, expert) requests by layer and rank."""
    tokens = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = (int(row["layer"]), int(row["rank"]), int(row["expert"]))
            tokens.setdefault(int(row["token"]), []).append(key)
    return [[(layer, expert) for layer, _, expert in sorted(tokens[t])] for t in sorted(tokens)]


def shuffle(tokens):
    tokens = list(tokens)
    state = 1
    for i in range(len(tokens) - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        j = (z ^ (z >> 31)) % (i + 1)
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return tokens


def most_hits(requests, slots):
    """Keeps what is requested soonest."""

    def wait(expert, since):
        rest = requests[since:]
        return rest.index(expert) if expert in rest else len(rest)

    cache = sorted(set(requests), key=lambda e: wait(e, 0))[:slots]
    hits = 0
    for i, request in enumerate(requests):
        hits += request in cache
        cache = sorted({*cache, request}, key=lambda e: wait(e, i + 1))[:slots]
    return hits


def simulate(requests, half, slots, policy):
    """Hits among requests[half:]."""
    if policy == "pinned":
        counts = {}
        for request in requests[:half]:
            counts[request] = counts.get(request, 0) + 1
        pinned = sorted(counts, key=lambda e: (-counts[e], e))[:slots]
        return sum(request in pinned for request in requests[half:])
    if policy == "belady":
        return most_hits(requests[half:], slots)
    cache, count, last, hits = [], {}, {}, 0
    for i, request in enumerate(requests):
        count[request] = count.get(request, 0) + 1
        if request in cache:
            hits += i >= half
        else:
            if len(cache) == slots:
                if policy == "lru":
                    victim = min(cache, key=lambda e: last[e])
                else:
                    victim = min(cache, key=lambda e: (count[e], last[e]))
                cache.remove(victim)
            cache.append(request)
        last[request] = i
    return hits


def layouts(tokens, layers, slots):
    out = {"layers": {}, "pool": {}}
    first = tokens[: len(tokens) // 2]
    for policy in ("lru", "lfu", "pinned", "belady"):
        hits = 0
        for layer in layers:
            half = sum(e[0] == layer for token in first for e in token)
            hits += simulate([e for t in tokens for e in t if e[0] == layer], half, slots, policy)
        out["layers"][policy] = hits
        half = sum(len(token) for token in first)
        out["pool"][policy] = simulate(
            [e for t in tokens for e in t], half, slots * len(layers), policy
        )
    return out


def main(path, sizes):
    tokens = read(path)
    control = shuffle(tokens)
    layers = sorted({e[0] for token in tokens for e in token})
    counted = [sum(len(t) for t in order[len(order) // 2 :]) for order in (tokens, control)]
    print(
        json.dumps(
            {
                "routers": len(layers),
                "tokens": len(tokens),
                "counted_tokens": len(tokens) - len(tokens) // 2,
                "requests": sum(len(t) for t in tokens),
                "counted": counted[0],
                "counted_control": counted[1],
                "rows": [
                    {
                        "slots": n,
                        "recorded": layouts(tokens, layers, n),
                        "control": layouts(control, layers, n),
                    }
                    for n in sizes
                ],
            }
        )
    )


main(sys.argv[1], [int(n) for n in sys.argv[2:]])
