"""Compares engines on this machine. Each workload alternates between the engines. Prints medians and spread.

    python compare.py octavo="DIR build/release/octavo" llama.cpp="FILE.gguf llama-server" openvino=DIR vllm=DIR ..
                      [--threads 4] [--rounds 5] [--only prefill_512,..] [--environments DIR] [--json OUT.json]

Each engine is one process that stays loaded, and only one engine works at a time. engines/ has the engines; the model comes first, and then the
engine's flags. octavo:int8="DIR build/release/octavo --quantization int8" adds a second entry of an engine. With --environments, an engine runs with
DIR/ENGINE/bin/python if this file exists.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VOCABULARY = 40_000  # every model of models.py has at least this number of tokens
REST = 1.5  # seconds before each run, because the threads of some engines spin for a while after their last work


class Workload:
    def __init__(self, name: str, count: int, prompt: int, tokens: int, figure: str, shared: int = 0, times: int = 1) -> None:
        self.name, self.count, self.prompt, self.tokens = name, count, prompt, tokens
        self.figure = figure  # which tokens per second: prefill, decode (one request, without its first token) or output
        self.shared = shared
        self.times = times  # number of times that the prompts are sent; the last time counts

    def prompts(self, rng: random.Random) -> list[list[int]]:
        common = [rng.randrange(2, VOCABULARY) for _ in range(self.shared)]
        return [
            common + [rng.randrange(2, VOCABULARY) for _ in range(self.prompt - self.shared)] for _ in range(self.count)
        ]

    def tokens_per_second(self, reply: dict) -> float:
        if self.figure == "prefill":
            return self.prompt / reply["first"]
        if self.figure == "decode":
            return (self.tokens - 1) / (reply["end"] - reply["first"])
        return self.count * self.tokens / reply["end"]


WORKLOADS = [
    Workload("prefill_512", 1, 512, 1, "prefill"),
    Workload("prefill_4096", 1, 4096, 1, "prefill"),
    Workload("cached_4096", 1, 4096, 1, "prefill", times=2),  # only Octavo and vLLM, because the other engines have no prefix cache here
    Workload("decode_32", 1, 32, 48, "decode"),
    Workload("decode_4096", 1, 4096, 32, "decode"),
    Workload("concurrent_16", 16, 128, 64, "output"),
    Workload("concurrent_64", 64, 128, 64, "output"),
    Workload("shared_prefix", 16, 2032, 32, "output", shared=2000),
]


class Entry:
    """One engine with one model. `name` is ENGINE or ENGINE:VARIANT. `error` says why an engine cannot run; such an engine is left out."""

    def __init__(self, name: str, model: list[str], threads: int, environments: Path | None) -> None:
        self.name, self.error = name, None
        engine = name.split(":")[0]
        python = environments / engine / "bin/python" if environments else None
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        worker = Path(__file__).with_name("worker.py")
        self.process = subprocess.Popen(
            [python if python and python.exists() else sys.executable, worker, engine, model[0], str(threads), *model[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        self.ready = self.read()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.log.seek(0)
        lines = self.log.read().strip().splitlines()
        self.error = lines[-1] if lines else "ended without a message"
        return {}

    def run(self, workload: Workload, rng: random.Random) -> dict:
        """Returns the times of the last run, {} if the engine ended."""
        asked = {"prompts": workload.prompts(rng), "tokens": workload.tokens, "shared": workload.shared}
        reply = {}
        for _ in range(workload.times):
            time.sleep(REST)
            try:
                self.process.stdin.write(json.dumps(asked) + "\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                pass  # read() says why the engine ended
            reply = self.read()
        return reply

    def stop(self) -> None:
        """Ends the engine. Octavo's server ends with its worker, which therefore gets time."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def compare(models: dict[str, list[str]], workloads: list[Workload], rounds: int, threads: int, environments: Path | None) -> dict:
    """Returns {"engines": {name: ready seconds, peak bytes, about or error}, "workloads": {name: {engine: tokens per second of each round}}}."""
    entries = [Entry(name, model, threads, environments) for name, model in models.items()]
    rng, figures = random.Random(1), {}
    engines = {entry.name: {"error": entry.error} if entry.error else dict(entry.ready) for entry in entries}
    for workload in workloads:
        rates = figures[workload.name] = {}
        for round in range(rounds + 1):
            for entry in entries:
                if entry.error:
                    continue
                reply = entry.run(workload, rng)
                if entry.error:
                    engines[entry.name]["error"] = entry.error
                    continue
                engines[entry.name]["bytes"] = reply["bytes"]
                if round > 0:  # the first round warms up
                    rates.setdefault(entry.name, []).append(workload.tokens_per_second(reply))
        print_rates(workload.name, rates)
    for entry in entries:
        entry.stop()
    return {"engines": engines, "workloads": figures}


def print_rates(workload: str, rates: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max((value for name, value in medians.items() if not name.startswith("octavo")), default=float("nan"))
    shown = "  ".join(f"{n} {medians[n]:.1f} ({min(v):.1f} to {max(v):.1f})" for n, v in rates.items())
    ours = max((value for name, value in medians.items() if name.startswith("octavo")), default=float("nan"))
    print(f"{workload:14} {shown}  octavo/best {ours / best:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="+", metavar="ENGINE=MODEL [flags]")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    models = {name: model.split() for name, model in (engine.split("=", 1) for engine in args.engines)}
    workloads = [w for w in WORKLOADS if not args.only or w.name in args.only.split(",")]
    results = compare(models, workloads, args.rounds, args.threads, args.environments)
    for name, about in results["engines"].items():
        print(f"{name:14}", about.get("error") or f"ready {about['ready']:.1f} s, peak {about['bytes'] / 1e9:.1f} GB, {about['about']}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
