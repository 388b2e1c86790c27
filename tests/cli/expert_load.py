"""Entropy and Gini coefficient of the load of experts with their intervals, from a routing log.

Reads token,layer,expert,rank,score (CSV) and prints a row per layer. Written from docs/experts.md
with numpy.
"""

import csv
import json
import sys

import numpy as np

MASK = (1 << 64) - 1
SAMPLES, BLOCKS = 200, 256


def splitmix(count):
    state = 1
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def entropy(counts):
    """Of the rows, in bits."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return -np.sum(shares * np.log2(np.where(shares > 0, shares, 1)), axis=1)


def gini(counts):
    """Mean absolute difference of the rows' pairs, divided by twice the mean."""
    differences = np.abs(counts[:, :, None] - counts[:, None, :]).mean(axis=(1, 2))
    return differences / (2 * counts.mean(axis=1))


def interval(samples, measured, most):
    low, high = np.quantile(samples, [0.025, 0.975], method="inverted_cdf")
    return [float(np.clip(2 * measured - end, 0, most)) for end in (high, low)]


def main():
    path, experts = sys.argv[1], int(sys.argv[2])
    layers = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            of = layers.setdefault(int(row["layer"]), {})
            of.setdefault(int(row["token"]), []).append(int(row["expert"]))
    out = []
    for layer in sorted(layers):
        tokens = [layers[layer][token] for token in sorted(layers[layer])]
        length = 1
        while -(-len(tokens) // length) > BLOCKS:
            length *= 2
        blocks = np.array([
            np.bincount(np.concatenate(tokens[i:i + length]), minlength=experts)
            for i in range(0, len(tokens), length)
        ])
        drawn = np.fromiter(splitmix(SAMPLES * len(blocks)), np.uint64) % np.uint64(len(blocks))
        samples = blocks[drawn.astype(int).reshape(SAMPLES, len(blocks))].sum(axis=1)
        whole = blocks.sum(axis=0, keepdims=True)
        out.append({
            "layer": layer,
            "entropy_bits": float(entropy(whole)[0]),
            "entropy_interval": interval(entropy(samples), entropy(whole)[0], np.log2(experts)),
            "gini": float(gini(whole)[0]),
            "gini_interval": interval(gini(samples), gini(whole)[0], 1 - 1 / experts),
        })
    json.dump(out, sys.stdout)


main()
