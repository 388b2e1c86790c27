#!/usr/bin/env python3
"""Learns the pieces of the bundled model's vocabulary from a corpus.

usage: vocabulary.py CORPUS COUNT > pieces.txt

Byte pair encoding over words, with U+2581 for spaces: all printable characters, then
merges, most frequent first, up to COUNT pieces. libllama's llama tokenizer applies them in
the same order (scores decrease with the line number).
"""
import re
import sys
from collections import Counter


def main(path, count):
    text = open(path, encoding="utf-8").read()
    words = Counter()
    for part in re.split(r"<user>|<reply>|<stop>", text):
        # A piece may begin with a space but not contain one elsewhere.
        words.update(re.findall("\u2581?[^\u2581]+", "\u2581" + part.replace(" ", "\u2581")))
    # Punctuation is not merged with words.
    split = Counter()
    for word, times in words.items():
        for token in re.findall("\u2581?[A-Za-z]+|\u2581?[^A-Za-z]", word):
            split[tuple(token)] += times

    # Every printable character, so that ASCII text is never tokenized as bytes.
    pieces = ["\u2581"] + [chr(c) for c in range(ord("!"), ord("~") + 1)] + ["\\n"]
    while len(pieces) < count:
        pairs = Counter()
        for word, times in split.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        (a, b), _ = max(pairs.items(), key=lambda item: (item[1], item[0]))
        pieces.append(a + b)
        merged = Counter()
        for word, times in split.items():
            out, i = [], 0
            while i < len(word):
                if word[i:i + 2] == (a, b):
                    out.append(a + b)
                    i += 2
                else:
                    out.append(word[i])
                    i += 1
            merged[tuple(out)] += times
        split = merged
    sys.stdout.write("".join(piece + "\n" for piece in pieces))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
