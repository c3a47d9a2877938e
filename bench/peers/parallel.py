"""Compares the servers of Octavo and of vLLM's CPU build: the gain of tensor and data parallelism over one process.

    python parallel.py MODEL --vllm PROGRAM [--octavo PROGRAM] [--layouts one tp dp] [--dtype float32] [--streams 16] [--rounds 3]

One server runs at a time, on processors 0 and 1. If it has two processes, each process has one of the processors. For each layout,
prints the median time between two tokens of a single stream, and the tokens per second of `streams` simultaneous requests with prompts
of 128 tokens and answers of 64 tokens (median of the rounds; the first round does not count). MODEL is a folder that models.py wrote.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from server import PROGRAM, Server

PROMPT, ANSWER, NAME = 128, 64, "measured"
MEMORY = ["--gpu-memory-utilization", 0.3]  # fraction of the machine's memory per process; the default, 0.92, is seldom free
LAYOUTS = {"one": [], "tp": ["--tensor-parallel-size", 2], "dp": ["--data-parallel-size", 2]}


def prompts(vocabulary: int):
    """Returns new prompts at each call, so that no prompt is in a cache."""
    draws = random.Random(0)
    while True:
        yield [draws.randrange(300, vocabulary) for _ in range(PROMPT)]


def measure(server: Server, asked, streams: int, rounds: int) -> tuple[float, float]:
    """Returns the milliseconds between two tokens of one stream, and the tokens per second of all streams."""

    def answer(prompt):
        return list(server.stream(model=NAME, prompt=prompt, max_tokens=ANSWER, temperature=0))

    gaps, rates = [], []
    for turn in range(rounds + 1):
        times = answer(next(asked))
        began = time.perf_counter()
        with ThreadPoolExecutor(streams) as pool:
            list(pool.map(answer, itertools.islice(asked, streams)))
        if turn > 0:
            gaps.append((times[-1] - times[0]) / (ANSWER - 1) * 1e3)
            rates.append(streams * ANSWER / (time.perf_counter() - began))
    return statistics.median(gaps), statistics.median(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--vllm", required=True, help="vLLM's program")
    parser.add_argument("--octavo", default=PROGRAM)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    asked = prompts(args.vocabulary)
    flags = [args.model, "--served-model-name", NAME, "--dtype", args.dtype, "--max-model-len", 1024, "--max-num-seqs", args.streams]
    for layout in args.layouts:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "0|1" if LAYOUTS[layout] else "0-1"  # Octavo also reads this variable
        for name, program, more in (("octavo", args.octavo, ["--device", "cpu"]), ("vllm", args.vllm, ["--enforce-eager", *MEMORY])):
            began = time.perf_counter()
            with Server(program, *flags, *LAYOUTS[layout], *more) as server:
                ready = time.perf_counter() - began
                gap, rate = measure(server, asked, args.streams, args.rounds)
            print(f"{layout:3}  {name:6}  ready in {ready:5.1f} s, {gap:6.2f} ms between tokens of one stream, {rate:7.1f} tokens a second of {args.streams}", flush=True)


if __name__ == "__main__":
    main()
