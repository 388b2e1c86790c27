"""What `tt trend --json` has of some figures, from SQL tables of a set (CSV).

Arguments: starts.csv (session, start_utc_ns), sums.csv (session, phase, bytes_read, disk_bytes,
token_count) and "day" or "session". Written from docs/sets.md alone; the probability is counted
over all orders of the values.
"""

import csv
import datetime
import itertools
import json
import statistics
import sys


def rises(values):
    return sum((b > a) - (b < a) for a, b in itertools.combinations(values, 2))


def trend(x, y):
    slopes = [
        (y2 - y1) / (x2 - x1)
        for (x1, y1), (x2, y2) in itertools.combinations(list(zip(x, y)), 2)
    ]
    seen = rises(y)
    orders = [abs(rises(order)) >= abs(seen) for order in itertools.permutations(y)]
    return {
        "points": len(y),
        "rises": seen,
        "p": sum(orders) / len(orders),
        "slope": statistics.median(slopes),
    }


def rows_of(path):
    with open(path, newline="") as file:
        yield from csv.DictReader(file)


def main():
    starts_path, sums_path, by = sys.argv[1:]
    starts = {row["session"]: int(row["start_utc_ns"]) for row in rows_of(starts_path)}
    epoch = datetime.datetime(1970, 1, 1)
    days = {
        session: (epoch + datetime.timedelta(microseconds=ns // 1000)).date()
        for session, ns in starts.items()
    }
    figures = {}
    for row in rows_of(sums_path):
        token = {"generate": "generated token", "prompt": "prompt token"}[row["phase"]]
        read, disk = int(row["bytes_read"]), int(row["disk_bytes"])
        of = figures.setdefault(f"bytes read per {token}", {})
        of[row["session"]] = read / int(row["token_count"])
        of = figures.setdefault(f"DISK share of the bytes of a {token}", {})
        of[row["session"]] = disk / read
    out = {}
    for name, values in figures.items():
        points = {}
        for session, value in values.items():
            key = days[session] if by == "day" else starts[session]
            points.setdefault(key, []).append(value)
        keys = sorted(points)
        x = [key.toordinal() for key in keys] if by == "day" else range(len(keys))
        medians = [statistics.median(points[key]) for key in keys]
        out[name] = {
            "at": [str(key) for key in keys] if by == "day" else None,
            "sessions": [len(points[key]) for key in keys],
            "medians": medians,
            "trend": trend(x, medians),
        }
    json.dump(out, sys.stdout)


main()
