"""Compares the speed of two servers, in turns: what a feature costs.

    .venv/bin/python tests/soak/overhead.py "OLD/octavo serve --port {port} --device cpu" "build/release/octavo serve --port {port} --device cpu"

Each round starts both servers one after the other, in alternating order, sends each the same completions, and compares
requests per second and processor time per request. Prints the median of the rounds' ratios (second / first), and the
quartiles."""

import argparse
import concurrent.futures
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from conftest import http_client, running  # noqa: E402


def processor_seconds(pid):
    """Returns the time that a process and its children have used."""
    ticks = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, children))


def measure(command, requests, tokens, clients):
    folder = tempfile.mkdtemp()
    with running(command.replace("{folder}", folder)) as (process, base):
        def send(number):
            body = {"model": "demo", "prompt": f"Number {number} of a long list of stories:", "max_tokens": tokens, "ignore_eos": True}
            assert http_client.post(base + "/v1/completions", json=body).status_code == 200

        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            list(pool.map(send, range(clients * 4)))
            before, began = processor_seconds(process.pid), time.monotonic()
            list(pool.map(send, range(requests)))
            figures = requests / (time.monotonic() - began), (processor_seconds(process.pid) - before) / requests
    shutil.rmtree(folder)
    return figures


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("first", help="{folder} is replaced by a new folder")
    arguments.add_argument("second")
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--requests", type=int, default=600)
    arguments.add_argument("--tokens", type=int, default=64)
    arguments.add_argument("--clients", type=int, default=16)
    options = arguments.parse_args()
    commands = [command + " --served-model-name demo" for command in (options.first, options.second)]
    ratios = {"requests per second": [], "processor time per request": []}
    for number in range(options.rounds):
        figures = {}
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            figures[which] = measure(commands[which], options.requests, options.tokens, options.clients)
        for name, old, new in zip(ratios, figures[0], figures[1]):
            ratios[name].append(new / old)
        print(figures, flush=True)
    for name, values in ratios.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name}: second / first {middle:.4f} (quartiles {low:.4f} to {high:.4f}, {len(values)} rounds)")


if __name__ == "__main__":
    main()
