#!/usr/bin/env python3
"""Compares measured servers with their simulation: TTFT, ITL and throughput at several loads. Prints Markdown; see
docs/design/measurements.md.

    tools/fleet_report/fidelity.py [--replicas 4 --policy round_robin] [--timing FILE] [--rates 2,4,6]

Without --timing, a server computes the demo model, after `octavo simulate calibrate` has measured its steps. With
--timing, servers are stand-ins (--executor simulated=FILE). Several servers run with `octavo route`. `octavo bench
serve` makes the load. The simulation gets the same requests, at the times at which they were sent.
"""

import argparse
import json
import socket
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

SHAPE = ["--max-num-batched-tokens", "2048", "--max-num-seqs", "64", "--num-gpu-blocks-override", "8192"]
FIELDS = {"TTFT p50 (ms)": "median_ttft_ms", "TTFT p90 (ms)": "p90_ttft_ms", "ITL p50 (ms)": "median_itl_ms",
          "ITL p90 (ms)": "p90_itl_ms", "output tokens/s": "output_throughput"}
BLOCK = 16  # tokens


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def program(command, port, environment=None, flag="--port"):
    """Runs a server. Yields its process and URL once it is ready."""
    process = subprocess.Popen(list(map(str, command)) + [flag, str(port)], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit(f"{command[1]} ended")
                time.sleep(0.1)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def fleet(options):
    """Runs the servers, with a router if there are several. Yields a URL."""
    executor = ["--executor", f"simulated={options.timing}"] if options.timing else []
    serve = [options.octavo, "serve", options.model, *SHAPE, *executor]
    if options.replicas == 1:
        with program(serve, free_port()) as (_, url):
            yield url
        return
    with ExitStack() as servers:
        urls = [servers.enter_context(program(serve, free_port()))[1] for _ in range(options.replicas)]
        route = [options.octavo, "route", "--policy", options.policy, "--worker-urls", *urls]
        yield servers.enter_context(program(route, free_port()))[1]


def measure(options, url, rate, folder):
    """Returns the measurements of `octavo bench serve`, with the times of each request."""
    count = max(40, round(rate * options.seconds))
    seed = str(round(1000 * rate))  # no cache contains a prompt of another load
    subprocess.run([options.octavo, "bench", "serve", "--base-url", url, "--tokenizer", options.model, "--random-input-len",
                    options.input_len, "--random-output-len", options.output_len, "--random-range-ratio", "0.3",
                    "--num-prompts", str(count), "--request-rate", str(rate), "--ignore-eos", "--seed", seed,
                    "--metric-percentiles", "50,90", "--save-result", "--save-detailed", "--result-dir", folder,
                    "--result-filename", "measured.json"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads((folder / "measured.json").read_text())


def simulate(options, measured, timing, folder):
    """Simulates the same requests with the same number of replicas."""
    lines, block = [], 0
    for start, tokens, answer in sorted(zip(measured["start_times"], measured["input_lens"], measured["output_lens"])):
        blocks = -(-tokens // BLOCK)
        lines.append(json.dumps({"timestamp": round(start * 1000), "input_length": tokens, "output_length": answer,
                                 "hash_ids": list(range(block, block + blocks))}))
        block += blocks
    trace, result = folder / "trace.jsonl", folder / "simulated.json"
    trace.write_text("\n".join(lines) + "\n")
    subprocess.run([options.octavo, "simulate", "--trace", trace, "--trace-block-size", str(BLOCK), "--replicas",
                    str(options.replicas), "--policy", options.policy, "--timing", timing, *SHAPE, "--max-model-len", "2048",
                    "--metric-percentiles", "50,90", "--output-json", result], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return json.loads(result.read_text())[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--timing", help="JSON file with the coefficients of a step: servers are stand-ins")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--policy", default="round_robin")
    parser.add_argument("--rates", default="4,8,12", help="requests a second")
    parser.add_argument("--seconds", type=float, default=20, help="of each")
    parser.add_argument("--input-len", default="1024")
    parser.add_argument("--output-len", default="128")
    options = parser.parse_args()
    print("| requests/s | | measured | simulated | difference |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timing = options.timing
        if not timing:
            timing = folder / "timing.json"
            subprocess.run([options.octavo, "simulate", "calibrate", options.model, "--output-json", timing], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with fleet(options) as url:
            for rate in map(float, options.rates.split(",")):
                measured = measure(options, url, rate, folder)
                simulated = simulate(options, measured, timing, folder)
                for label, field in FIELDS.items():
                    real, model = measured[field], simulated[field]
                    print(f"| {rate:g} | {label} | {real:,.2f} | {model:,.2f} | {model / real - 1:+.1%} |", flush=True)


if __name__ == "__main__":
    main()
