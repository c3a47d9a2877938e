#!/usr/bin/env python3
"""Compares `octavo route` with SGLang's and vLLM's routers (PyPI: sglang-router, vllm-router): the latency that each
adds, its processor time and its memory, with the same workers and requests. Prints Markdown; see
docs/design/measurements.md.

    tools/fleet_report/routers.py --sglang PYTHON --vllm PYTHON --endpoints 8 100 --tokens 1000 100000
    tools/fleet_report/routers.py --dynamo PYTHON    # an interpreter that has ai-dynamo and ai-dynamo-runtime

The workers are canned_workers.py. They answer immediately, so that their time does not hide the router's. All routers
run at the same time, and the measurements alternate, so that each router runs on the same machine state.

Dynamo's frontend does not use HTTP for its workers. It runs with its own mockers, and also tokenizes prompts and
detokenizes answers.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fidelity import free_port, program

TICKS = os.sysconf("SC_CLK_TCK")
SHARED_PROMPTS = 16  # number of texts with which prompts begin; each text is half of a prompt
DISTINCT_BODIES = 64


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def free_ports(count):
    """Returns the first of `count` free ports, below those of outgoing connections."""
    while True:
        first, probes = random.randrange(10_000, 30_000), []
        try:
            for i in range(count):
                probes.append(socket.create_server(("127.0.0.1", first + i)))
            return first
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()


def bodies(tokens, model):
    """Returns requests of about this number of tokens, with 4 letters each."""
    def words(seed, count):
        draw = random.Random(seed)
        return " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=3)) for _ in range(count))
    shared = [words(f"shared {i}", tokens // 2) for i in range(SHARED_PROMPTS)]
    return [json.dumps({"model": model, "prompt": f"{shared[i % SHARED_PROMPTS]} {words(i, tokens - tokens // 2)}", "max_tokens": 1,
                        "stream": True}).encode() for i in range(DISTINCT_BODIES)]


class Load:
    """Sends requests at fixed times over persistent connections. The time of a request starts when it is due."""

    def __init__(self, port, requests):
        self.port, self.idle, self.ms = port, [], []
        self.requests = [b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
                         b"%d\r\n\r\n" % len(body) + body for body in requests]

    async def send(self, number, due):
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        writer.write(self.requests[number % len(self.requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise SystemExit(f"refused: {head.decode(errors='replace')}")
        await reader.readuntil(b"data: ")
        self.ms.append(1e3 * (time.perf_counter() - due))
        await reader.readuntil(b"[DONE]")
        await reader.readuntil(b"0\r\n\r\n")
        self.idle.append((reader, writer))

    async def run(self, rate, count, first):
        began, tasks = time.perf_counter() + 0.05, []
        for i in range(count):
            due = began + i / rate
            await asyncio.sleep(due - time.perf_counter())
            tasks.append(asyncio.create_task(self.send(first + i, due)))
        await asyncio.gather(*tasks)
        for _, writer in self.idle:
            writer.close()

    def measure(self, rate, count, first=0):
        asyncio.run(self.run(rate, count, first))
        self.idle = []


class Contender:
    def __init__(self, name, pid, port, requests):
        self.name, self.pid, self.load, self.cores = name, pid, Load(port, requests), []

    def turn(self, rate, count, first):
        before, began = processor_seconds(self.pid), time.perf_counter()
        self.load.measure(rate, count, first)
        self.cores.append((processor_seconds(self.pid) - before) / (time.perf_counter() - began))

    def warm(self, rate):
        self.load.measure(rate, DISTINCT_BODIES)
        self.load.ms.clear()

    def row(self, direct):
        p50, p99 = percentiles(self.load.ms)
        return (f"{self.name} | {p50 - direct[0]:.2f}, {p99 - direct[1]:.2f} | {statistics.mean(self.cores):.3f} | "
                f"{memory(self.pid):.0f} |")


def percentiles(ms):
    ordered = sorted(ms)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


@contextmanager
def dynamo(python, options, folder, endpoints):
    """Runs Dynamo's frontend with mockers that do not wait. They find each other through files."""
    here = {**os.environ, "DYN_FILE_KV": str(folder / "dynamo"), "DYN_LOG": "warn"}
    planes = ["--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"]
    mockers = subprocess.Popen([python, "-m", "dynamo.mocker", "--model-path", options.model, "--num-workers", str(endpoints),
                                "--block-size", "16", "--speedup-ratio", "0", *planes], env=here, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        with program([python, "-m", "dynamo.frontend", "--router-mode", "kv", *planes], free_port(), here, "--http-port") as (process, url):
            while True:
                with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as answer:
                    if json.load(answer)["data"]:
                        break
                if mockers.poll() is not None:
                    raise SystemExit("dynamo.mocker ended")
                time.sleep(0.1)
            yield process, url
    finally:
        mockers.terminate()
        mockers.wait()


def routers(options):
    """Returns names and commands. The workers follow --worker-urls."""
    found = {f"octavo route, {policy}": [options.octavo, "route", "--policy", policy] for policy in options.policies}
    if options.sglang:
        found["sglang-router"] = [options.sglang, "-m", "sglang_router.launch_router", "--policy", "cache_aware", "--prometheus-port",
                                  str(free_port())]
    if options.vllm:
        found["vllm-router"] = [options.vllm, "-m", "vllm_router.launch_router", "--policy", "cache_aware", "--prometheus-port",
                                str(free_port())]
    return found


def compare(options, endpoints, tokens, folder):
    requests = bodies(tokens, "canned")
    with ExitStack() as stack:
        first = free_ports(endpoints)
        workers, url = stack.enter_context(program([sys.executable, Path(__file__).parent / "canned_workers.py", str(endpoints)], first))
        urls = [f"http://127.0.0.1:{first + i}" for i in range(endpoints)]
        contenders = [Contender("no router", workers.pid, first, requests)]
        for name, command in routers(options).items():
            process, url = stack.enter_context(program([*command, "--host", "127.0.0.1", "--worker-urls", *urls], free_port()))
            contenders.append(Contender(name, process.pid, int(url.rsplit(":", 1)[1]), requests))
        if options.dynamo:
            process, url = stack.enter_context(dynamo(options.dynamo, options, folder, endpoints))
            contenders.append(Contender("dynamo.frontend and mockers", process.pid, int(url.rsplit(":", 1)[1]),
                                        bodies(tokens, options.model)))
        time.sleep(options.settle)
        for contender in contenders:
            contender.warm(options.rate)
        for number in range(options.turns):
            for contender in contenders:
                contender.turn(options.rate, round(options.rate * options.seconds / options.turns), number * 1000)
        direct = percentiles(contenders[0].load.ms)
        for contender in contenders[1:]:
            print(f"| {endpoints} | {tokens:,} | {contender.row(direct)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--policies", nargs="+", default=["kv_aware", "cache_aware"], help="of octavo route")
    parser.add_argument("--model", default="models/demo", help="for Dynamo's mockers")
    parser.add_argument("--sglang", help="interpreter that has sglang-router")
    parser.add_argument("--vllm", help="interpreter that has vllm-router")
    parser.add_argument("--dynamo", help="interpreter that has ai-dynamo")
    parser.add_argument("--endpoints", type=int, nargs="+", default=[8, 100])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000, 100_000], help="of a prompt")
    parser.add_argument("--rate", type=float, default=100, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20, help="load of each router, divided into turns")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--settle", type=float, default=3, help="seconds for the routers to find their workers")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {options.rate:g} requests/s\n")
    print("| endpoints | prompt tokens | router | added TTFT p50, p99 (ms) | cores | memory (MiB) |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for endpoints in options.endpoints:
            for tokens in options.tokens:
                compare(options, endpoints, tokens, Path(name))


if __name__ == "__main__":
    main()
