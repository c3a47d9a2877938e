#!/usr/bin/env python3
"""Reads the output of `model_test --gtest_filter=Families/ModelGolden*` from standard input, and prints the table of
docs/design/goldens.md."""
import re
import sys

diff, ours, theirs = {}, {}, {}
for line in sys.stdin:
    if m := re.match(r"max \|logit difference\| (\S+)\s+(.*\S)\s+(\S+)$", line):
        diff.setdefault(m[1], {})[m[2]] = m[3]
    elif m := re.match(r"bf16 KL to f32 (\S+)\s+(.*\S)\s+(\S+), transformers (\S+)$", line):
        ours.setdefault(m[1], {})[m[2]] = float(m[3])
        theirs[m[1]] = float(m[4])
backends = list(dict.fromkeys(b for row in diff.values() for b in row))
print("| case | " + " | ".join(backends) + " | bf16 KL, worst backend | divided by transformers' KL |")
print("|---|" + "---:|" * (len(backends) + 2))
for case, row in diff.items():
    kl = [f"{max(ours[case].values()):.1e}", f"{max(ours[case].values()) / theirs[case]:.2f}"] if case in ours else ["", ""]
    print(f"| {case} | " + " | ".join([row.get(b, "") for b in backends] + kl) + " |")
