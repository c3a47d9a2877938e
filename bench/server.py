"""Starts servers for benchmarks, and sends requests to them."""

import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).parents[1]
PROGRAM = ROOT / "build/release/octavo"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def process_seconds(pid):
    """Returns the processor time of a process in seconds, from the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


class Server:
    """Runs `octavo serve` or another command of `octavo` with these arguments until the end of a `with` block. With command=None, `program` is
    another server with --port and /health. The constructor returns when the program is ready. `processors` is the set of processors that the program may use; None: all."""

    def __init__(self, program, *arguments, command="serve", processors=None):
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([program, *([command] if command else []), *map(str, arguments), "--port", str(self.port)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=lambda: processors and os.sched_setaffinity(0, processors))
        while not self.ready():
            if self.process.poll() is not None:
                sys.exit(f"{program} {command or ''} ended before it was ready")
            time.sleep(0.1)

    def ready(self):
        try:
            return urllib.request.urlopen(self.base + "/health", timeout=10).status == 200
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def timed_completion(self, prompt, tokens, **fields):
        """Streams a greedy answer to a prompt of token ids. Returns (seconds to the first token, token ids, cached tokens)."""
        body = dict(prompt=prompt, max_tokens=tokens, temperature=0, ignore_eos=True, stream=True, return_token_ids=True,
                    stream_options={"include_usage": True}, **fields)
        began, first, ids, cached = time.perf_counter(), None, [], 0
        with self.post("/v1/completions", body) as response:
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                assert "error" not in event, event
                if event["choices"] and event["choices"][0]["token_ids"]:
                    first = first or time.perf_counter() - began
                    ids += event["choices"][0]["token_ids"]
                if event.get("usage"):
                    cached = (event["usage"]["prompt_tokens_details"] or {"cached_tokens": 0})["cached_tokens"]
        return first, ids, cached

    def processes(self):
        """Returns the ids of the server's process and of its engine's process."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [self.process.pid, *(int(pid) for task in tasks for pid in task.read_text().split())]

    def processor_seconds(self):
        return sum(map(process_seconds, self.processes()))

    def engine_seconds(self):
        """Returns the processor time of the engine's process only."""
        return sum(map(process_seconds, self.processes()[1:]))

    def megabytes(self):
        return sum(int(line.split()[1]) for pid in self.processes() for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")) / 1e3

    def post(self, path, body):
        """Returns the open response. Raises urllib.error.HTTPError for an error status."""
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=900)

    def ask(self, path, body):
        with self.post(path, body) as response:
            return json.load(response)

    def metric(self, name):
        """Returns the sum of a metric over all labels."""
        with urllib.request.urlopen(self.base + "/metrics", timeout=60) as response:
            return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", response.read().decode(), re.MULTILINE))

    def stream(self, **body):
        """Yields the arrival time of each of the max_tokens tokens of one streamed completion."""
        with self.post("/v1/completions", dict(ignore_eos=True, stream=True) | body) as response:
            for line in response:
                if line.startswith(b"data: {"):
                    yield time.perf_counter()


class Streams:
    """Sends requests for answers of 256 tokens on `count` connections, one after the other on each connection, until stop() is called."""

    def __init__(self, server, count):
        self.server, self.gaps, self.stopped = server, [], False
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, seed):
        while not self.stopped:
            times = self.server.stream(prompt=f"{seed} once upon a time", max_tokens=256, temperature=1, seed=seed)
            self.gaps.extend(after - before for before, after in itertools.pairwise(times))

    def stop(self):
        """Stops the requests. Returns the times between two tokens of a stream, in seconds."""
        self.stopped = True
        for thread in self.threads:
            thread.join()
        return self.gaps


def report(name, gaps):
    """Prints percentiles of times between tokens. Returns the 99th percentile in milliseconds."""
    gaps = sorted(gaps)
    at = {q: gaps[min(len(gaps) - 1, int(len(gaps) * q))] * 1e3 for q in (0.5, 0.9, 0.99)}
    print(f"{name:<12} {len(gaps):6} gaps, p50 {at[0.5]:.1f}, p90 {at[0.9]:.1f}, p99 {at[0.99]:.1f}, longest {gaps[-1] * 1e3:.1f} ms", flush=True)
    return at[0.99]
