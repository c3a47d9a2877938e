"""Measures the start of servers with a GGUF file: seconds until ready, seconds until the first token, and peak memory.

    python bench/start.py MODEL.gguf --octavo build/release/octavo [--octavo OTHER] [--llama-server PROGRAM] [--rounds 5] [--cold]

Engines alternate. The clock starts when the server is executed. The first token is that of a prompt of 16 tokens, sent once the server is
ready. Peak memory is the maximum of the resident memory of all processes of the server, sampled every 20 ms, relative to the size of the
file. Pages that several processes share count once. --cold removes the file from the page cache before each start.
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


def own_bytes(pid: int) -> int:
    """Returns the resident memory of a process, with its part of the pages that it shares. Returns 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


class Memory(threading.Thread):
    """Samples the resident memory of a process and its children until stop()."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid, self.peak, self.stopping = pid, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.wait(0.02):
            self.peak = max(self.peak, sum(map(own_bytes, tree(self.pid))))

    def stop(self) -> int:
        self.stopping.set()
        self.join()
        return self.peak


def octavo(binary: str, model: str, threads: int, port: int) -> list[str]:
    return [binary, "serve", model, "--port", str(port), "--cpu-threads", str(threads), "--max-model-len", str(CONTEXT)]


def llama_server(binary: str, model: str, threads: int, port: int) -> list[str]:
    return [binary, "-m", model, "--port", str(port), "--threads", str(threads), "--ctx-size", str(CONTEXT), "--parallel", "1"]


def measure(command: list[str], port: int) -> tuple[float, float, int]:
    url = f"http://127.0.0.1:{port}"
    began = time.perf_counter()
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


def drop(path: str) -> None:
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--octavo", action="append", required=True)
    parser.add_argument("--llama-server", action="append", default=[])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    port = 20000 + os.getpid() % 20000
    engines = {
        binary: command(binary, args.model, args.threads, port)
        for command, binaries in ((octavo, args.octavo), (llama_server, args.llama_server))
        for binary in binaries
    }
    size = os.path.getsize(args.model)
    figures: dict[str, list[tuple[float, float, int]]] = {name: [] for name in engines}
    for _ in range(args.rounds):
        for name, command in engines.items():
            if args.cold:
                drop(args.model)
            figures[name].append(measure(command, port))
    for name, rows in figures.items():
        columns = [(statistics.median(column), min(column), max(column)) for column in zip(*rows)]
        (ready, first, peak) = columns
        print(
            f"{name}: ready {ready[0]:.2f} s ({ready[1]:.2f} to {ready[2]:.2f}), first token {first[0]:.2f} s "
            f"({first[1]:.2f} to {first[2]:.2f}), peak memory {peak[0] / size:.3f} of the file"
        )


if __name__ == "__main__":
    main()
