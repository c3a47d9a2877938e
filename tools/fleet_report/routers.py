#!/usr/bin/env python3
"""`octavo route` beside SGLang's router (PyPI: sglang-router): the latency that each adds, its processor time and its memory, over the
same stand-in replicas with the same requests. Prints Markdown; see docs/design/measurements.md.

    tools/fleet_report/routers.py --sglang PYTHON    # an interpreter that has sglang-router
    tools/fleet_report/routers.py --dynamo PYTHON    # one that has ai-dynamo and ai-dynamo-runtime

Dynamo's frontend speaks no HTTP with its workers: it stands before its own mockers, so that what it adds cannot be told from what they
take, and it makes tokens of prompts and text of tokens, too.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fidelity import free_port, program

REPLICAS = 8
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def load(options, url, rate, folder, seed, model):
    """Figures of one run of `octavo bench serve`. Prompts are text: SGLang's router refuses token ids."""
    count, draw = round(rate * options.seconds), random.Random(seed)
    prompts = folder / "prompts.jsonl"
    with prompts.open("w") as file:
        for _ in range(count):
            words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(100)]
            file.write(json.dumps({"prompt": " ".join(words)}) + "\n")
    subprocess.run([options.octavo, "bench", "serve", "--base-url", url, "--tokenizer", options.model, "--model", model,
                    "--dataset-name", "custom", "--dataset-path", prompts, "--custom-output-len", "16", "--num-prompts", str(count),
                    "--request-rate", str(rate), "--ignore-eos", "--percentile-metrics", "ttft,e2el", "--metric-percentiles",
                    "50,99", "--save-result", "--result-dir", folder, "--result-filename", "load.json"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads((folder / "load.json").read_text())


@contextmanager
def dynamo(python, model, folder):
    """Dynamo's frontend before eight of its mockers that do not wait; they find each other by files."""
    here = {**os.environ, "DYN_FILE_KV": str(folder / "dynamo"), "DYN_LOG": "warn"}
    planes = ["--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"]
    mockers = subprocess.Popen([python, "-m", "dynamo.mocker", "--model-path", model, "--num-workers", str(REPLICAS), "--block-size",
                                "16", "--speedup-ratio", "0", *planes], env=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with program([python, "-m", "dynamo.frontend", "--router-mode", "kv", *planes], free_port(), here, "--http-port") as (process, url):
            while True:
                with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as answer:
                    if models := json.load(answer)["data"]:
                        break
                if mockers.poll() is not None:
                    raise SystemExit("dynamo.mocker ended")
                time.sleep(0.1)
            yield process, url, models[0]["id"]
    finally:
        mockers.terminate()
        mockers.wait()


def measured(options, process, url, folder, number, model):
    """Figures of one run after another that warms, and requests per second of the process's processor time."""
    load(options, url, options.rate, folder, 1000 + number, model)
    before = processor_seconds(process.pid)
    figures = load(options, url, options.rate, folder, number, model)
    return figures, figures["completed"] / (processor_seconds(process.pid) - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--sglang", help="interpreter that has sglang-router")
    parser.add_argument("--dynamo", help="interpreter that has ai-dynamo")
    parser.add_argument("--policy", default="cache_aware")
    parser.add_argument("--rate", type=float, default=100, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    routers = {"no router": None, "octavo route": [options.octavo, "route"]}
    if options.sglang:
        routers["sglang-router"] = [options.sglang, "-m", "sglang_router.launch_router"]
    print("| | added TTFT p50, p99 (ms) | added E2E p50, p99 (ms) | requests per core second | memory (MiB) |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        timing = folder / "timing.json"
        timing.write_text('{"fixed_us": 2000}')
        first = free_port()
        stack.enter_context(program([options.octavo, "serve", options.model, "--executor", f"simulated={timing}", "--stand-ins",
                                     str(REPLICAS), "--disable-log-stats"], first))
        urls = [f"http://127.0.0.1:{first + i}" for i in range(REPLICAS)]
        direct = None
        for number, (router, command) in enumerate(routers.items()):
            if command is None:
                direct = load(options, urls[0], options.rate / REPLICAS, folder, number, options.model)  # its share
                continue
            with program([*command, "--policy", options.policy, "--worker-urls", *urls], free_port()) as (process, url):
                figures, rate = measured(options, process, url, folder, number, options.model)
                added = {field: figures[field] - direct[field] for field in ("p50_ttft_ms", "p99_ttft_ms", "p50_e2el_ms", "p99_e2el_ms")}
                print(f"| {router} | {added['p50_ttft_ms']:.2f}, {added['p99_ttft_ms']:.2f} | {added['p50_e2el_ms']:.2f}, "
                      f"{added['p99_e2el_ms']:.2f} | {rate:,.0f} | {memory(process.pid):.0f} |", flush=True)
        if options.dynamo:
            with dynamo(options.dynamo, options.model, folder) as (process, url, model):
                figures, rate = measured(options, process, url, folder, len(routers), model)
                print(f"| dynamo.frontend and mockers | {figures['p50_ttft_ms']:.2f}, {figures['p99_ttft_ms']:.2f} in all | "
                      f"{figures['p50_e2el_ms']:.2f}, {figures['p99_e2el_ms']:.2f} in all | {rate:,.0f} | {memory(process.pid):.0f} |")


main()
