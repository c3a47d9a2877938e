"""Measures the start of servers with a GGUF file: seconds until ready, seconds until the first token, and peak memory.

    python bench/start.py MODEL.gguf --octavo build/release/octavo [--octavo OTHER] [--llama-python PYTHON] [--rounds 5] [--cold]

Engines alternate. The clock starts when Octavo is executed; for llama.cpp (the wheel cyllama, called without a server) it starts
after the imports of Python. The first token is that of a prompt of 16 tokens, sent once the engine is ready. Peak memory is the maximum of
the resident memory of all processes of the engine, sampled every 5 ms, relative to the size of the file. --cold removes the file from
the page cache before each start.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import statistics
import subprocess
import threading
import time
import urllib.request

PROMPT = list(range(100, 116))
CONTEXT = 2048
# After eight requests, Octavo has converted all matrices (src/kernels/cpu/late_panels.h).
LATER_REQUESTS = 8

LLAMA_CPP = f"""
import sys
from cyllama.llama import llama_cpp as l
print("imported", flush=True)
model = l.LlamaModel(sys.argv[1], l.LlamaModelParams())
options = l.LlamaContextParams()
options.n_ctx, options.n_threads, options.n_threads_batch = {CONTEXT}, int(sys.argv[2]), int(sys.argv[2])
context = l.LlamaContext(model, options)
print("ready", flush=True)
assert context.decode(l.llama_batch_get_one({PROMPT})) == 0
print("token", flush=True)
"""


def tree(pid: int) -> list[int]:
    """Returns the ids of a process and of its descendants, which any of its threads may have started."""
    pids = [pid]
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as file:
                pids += [p for child in file.read().split() for p in tree(int(child))]
        except OSError:
            pass
    return pids


class Memory(threading.Thread):
    """Samples the resident memory of a process and its children until stop()."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid, self.peak, self.stopping = pid, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.wait(0.005):
            pages = 0
            for pid in tree(self.pid):
                try:
                    with open(f"/proc/{pid}/statm") as file:
                        pages += int(file.read().split()[1])
                except OSError:
                    pass
            self.peak = max(self.peak, pages * os.sysconf("SC_PAGESIZE"))

    def stop(self) -> int:
        self.stopping.set()
        self.join()
        return self.peak


def octavo(binary: str, model: str, threads: int) -> tuple[float, float, int]:
    port = 20000 + os.getpid() % 20000
    url = f"http://127.0.0.1:{port}"
    began = time.perf_counter()
    command = [binary, "serve", model, "--port", str(port), "--cpu-threads", str(threads), "--max-model-len", str(CONTEXT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    memory = Memory(process.pid)
    while process.poll() is None:
        try:
            urllib.request.urlopen(url + "/health").close()
            break
        except OSError:
            time.sleep(0.005)
    ready = time.perf_counter() - began
    body = json.dumps({"prompt": PROMPT, "max_tokens": 1, "temperature": 0, "ignore_eos": True})
    request = urllib.request.Request(url + "/v1/completions", body.encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()
    first = time.perf_counter() - began
    for _ in range(LATER_REQUESTS):
        urllib.request.urlopen(request).close()
    peak = memory.stop()
    process.terminate()
    process.wait()
    return ready, first, peak


def llama_cpp(python: str, model: str, threads: int) -> tuple[float, float, int]:
    process = subprocess.Popen(
        [python, "-c", LLAMA_CPP, model, str(threads)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    memory = Memory(process.pid)
    times = {}
    for line in process.stdout:
        times[line.strip()] = time.perf_counter()
    peak = memory.stop()
    if process.wait() != 0:
        raise RuntimeError(f"{python} ended with {process.returncode}: has it the package cyllama?")
    return times["ready"] - times["imported"], times["token"] - times["imported"], peak


def drop(path: str) -> None:
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--octavo", action="append", required=True)
    parser.add_argument("--llama-python")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    engines = [(binary, octavo) for binary in args.octavo]
    if args.llama_python:
        engines.append((args.llama_python, llama_cpp))
    size = os.path.getsize(args.model)
    figures: dict[str, list[tuple[float, float, int]]] = {name: [] for name, _ in engines}
    for _ in range(args.rounds):
        for name, measure in engines:
            if args.cold:
                drop(args.model)
            figures[name].append(measure(name, args.model, args.threads))
    for name, rows in figures.items():
        columns = [(statistics.median(column), min(column), max(column)) for column in zip(*rows)]
        (ready, first, peak) = columns
        print(
            f"{name}: ready {ready[0]:.2f} s ({ready[1]:.2f} to {ready[2]:.2f}), first token {first[0]:.2f} s "
            f"({first[1]:.2f} to {first[2]:.2f}), peak memory {peak[0] / size:.3f} of the file"
        )


if __name__ == "__main__":
    main()
