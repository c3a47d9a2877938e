"""Runs one engine that reads JSON lines from a pipe and writes JSON lines. compare.py starts one such process for each engine.

    python worker.py ENGINE MODEL THREADS [FLAGS]

Prints {"ready": seconds since the start, "about": version and flags} once. Then it answers each line
{"prompts": [[ids]], "tokens": n, "shared": k} with {"first": s, "end": s} (engines/__init__.py). Prompts are new each time, so that no engine
has them in its prefix cache, except in workloads that measure this cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import engines


def peak_bytes(pid: int) -> int:
    """Returns the sum of the peak memory of a process and of the processes that it started."""
    with open(f"/proc/{pid}/status") as status:
        own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    children = {int(child) for tasks in Path(f"/proc/{pid}/task").glob("*/children") for child in tasks.read_text().split()}
    return own + sum(peak_bytes(child) for child in children)


def main() -> None:
    began = time.perf_counter()
    name, model, threads, *rest = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # sends the output of libraries to stderr, because stdout has the answers
    engine = engines.load(name)(model, int(threads), *rest)
    ready = {"ready": time.perf_counter() - began, "about": engine.about, "bytes": peak_bytes(engine.pid())}
    print(json.dumps(ready), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        first, end = engine.run(asked["prompts"], asked["tokens"], asked["shared"])
        print(json.dumps({"first": first, "end": end, "bytes": peak_bytes(engine.pid())}), file=out, flush=True)


if __name__ == "__main__":
    main()
