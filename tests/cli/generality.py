"""What `tt generality --json` has in "pairs" and "leave_one_out", from SQL tables of a set (CSV).

Arguments: choices.csv (session, layer_id, expert_id, choices), reads.csv (the reads of weights, in
order) and the number of experts per layer that the cache holds. Written from docs/sets.md alone.
"""

import collections
import csv
import json
import sys

Read = collections.namedtuple("Read", "tensor fixed parts sizes")


def part_of(row):
    if row["extent"] == "experts":
        return int(row["expert_id"])
    if row["extent"] == "rows":
        before = int(row["file_offset"]) - int(row["tensor_file_offset"])
        return "row", before // int(row["unit_bytes"])
    return "all"


def read_tables(choices_path, reads_path):
    choices, reads = {}, {}
    with open(choices_path, newline="") as file:
        for row in csv.DictReader(file):
            of = choices.setdefault(row["session"], {}).setdefault(row["layer_id"], {})
            of[int(row["expert_id"])] = int(row["choices"])
    with open(reads_path, newline="") as file:
        for row in csv.DictReader(file):
            steps = reads.setdefault(row["session"], {})
            step = steps.setdefault(int(row["step"]), (row["phase"], {}))[1]
            key = int(row["op"]), int(row["access"])
            read = step.setdefault(key, Read(row["tensor_name"], row["extent"] == "all", [], []))
            read.parts.append(part_of(row))
            read.sizes.append(int(row["file_bytes"]))
    return choices, reads


def experts_served(learned, tried, slots):
    hits = 0
    for layer, requests in tried.items():
        counts = learned.get(layer, {})
        kept = sorted(counts, key=lambda e: (-counts[e], e))[:slots]
        hits += sum(requests.get(e, 0) for e in kept)
    return hits


def merged_choices(of):
    out = {}
    for layers in of:
        for layer, counts in layers.items():
            for expert, n in counts.items():
                at = out.setdefault(layer, {})
                at[expert] = at.get(expert, 0) + n
    return out


def count_reads(steps):
    """Per (tensor, part), in order of the first read: [reads, bytes]. Once per op."""
    out = {}
    for step in sorted(steps):
        seen = set()
        for (op, _), read in sorted(steps[step][1].items()):
            for part, size in zip(read.parts, read.sizes):
                if (op, read.tensor, part) in seen:
                    continue
                seen.add((op, read.tensor, part))
                of = out.setdefault((read.tensor, part), [0, size])
                of[0] += 1
    return out


def merged_reads(of):
    out = {}
    for counts in of:
        for part, (n, size) in counts.items():
            out.setdefault(part, [0, size])[0] += n
    return out


def bytes_saved(learned, tried, memory):
    saved = 0
    for part in sorted(learned, key=lambda p: -learned[p][0]):  # stable: then the first read
        if part in tried:
            reads, size = tried[part]
            held = min(size, memory)
            saved += held * (reads - 1)
            memory -= held
    return saved


def tokens_of(steps):
    return [steps[s][1] for s in sorted(steps) if steps[s][0] == "generate"]


def reads_predicted(pattern, steps):
    """The pattern: reads of a token. Returns (reads, right)."""
    tokens = tokens_of(steps)
    half = (len(tokens) + 1) // 2
    tensors = [read.tensor for read in pattern]
    last = [set(read.parts) if read.fixed else set() for read in pattern]
    total = right = 0
    for i, token in enumerate(tokens[half - 1 :]):
        at = 0
        for _, read in sorted(token.items()):
            expected = at < len(tensors) and tensors[at] == read.tensor
            if i > 0:
                total += len(read.parts)
                right += sum(expected and part in last[at] for part in read.parts)
            if read.tensor not in tensors[at:]:
                continue
            at = tensors.index(read.tensor, at)
            if not pattern[at].fixed:
                last[at] = set(read.parts)
            at += 1
    return total, right


def main(choices_path, reads_path, slots):
    choices, reads = read_tables(choices_path, reads_path)
    names = sorted(reads)
    counts = {name: count_reads(reads[name]) for name in names}
    learned = {}
    for name in names:
        tokens = tokens_of(reads[name])
        learned[name] = [r for _, r in sorted(tokens[(len(tokens) + 1) // 2 - 1].items())]
    pairs, left_out = [], []
    for tried in names:
        memory = sum(size for _, size in counts[tried].values()) // 2

        def trial(total, value, own):
            return {"total": total, "learned": value, "own": own}

        def trials(own_choices, own_reads, order):
            requests = sum(sum(of.values()) for of in choices[tried].values())
            read = sum(n * size for n, size in counts[tried].values())
            served = [experts_served(of, choices[tried], slots)
                      for of in (own_choices, choices[tried])]
            saved = [bytes_saved(of, counts[tried], memory) for of in (own_reads, counts[tried])]
            return {
                "experts": trial(requests, *served),
                "memory": trial(read, *saved),
                "order": order,
            }

        own = reads_predicted(learned[tried], reads[tried])
        orders = {}
        for name in names:
            total, right = reads_predicted(learned[name], reads[tried])
            orders[name] = trial(total, right, own[1])
            pairs.append({"learned_on": names.index(name), "tried_on": names.index(tried),
                          **trials(choices[name], counts[name], orders[name])})
        others = [name for name in names if name != tried]
        order = {key: sum(orders[n][key] for n in others) for key in ("total", "learned", "own")}
        left_out.append({"tried_on": names.index(tried), "learned_on": len(others),
                         **trials(merged_choices(choices[n] for n in others),
                                  merged_reads(counts[n] for n in others), order)})
    pairs.sort(key=lambda pair: (pair["learned_on"], pair["tried_on"]))
    print(json.dumps({"pairs": pairs, "leave_one_out": left_out}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
