"""Compares Octavo with other engines on this machine. Each workload alternates between the engines. Prints medians and spread.

    python compare.py --octavo build/release/octavo=DIR --llama.cpp FILE.gguf --vllm DIR --transformers DIR
                      [--threads 4] [--rounds 5] [--only prefill_512,..] [--json OUT.json]

Each engine is one process that stays loaded, and only one engine works at a time. Flags of Octavo come after its model:
--octavo "build/release/octavo=DIR --quantization int8". --vllm-python is the Python interpreter that has vLLM.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
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


class Engine:
    def __init__(self, name: str, python: str, model: list[str], threads: int) -> None:
        self.name = name
        worker = Path(__file__).with_name("engines.py")
        self.process = subprocess.Popen(
            [python, str(worker), name, model[0], str(threads), *model[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.ready = self.read()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended")
        return json.loads(line)

    def run(self, workload: Workload, rng: random.Random) -> dict:
        asked = {"prompts": workload.prompts(rng), "tokens": workload.tokens, "shared": workload.shared}
        for _ in range(workload.times):
            time.sleep(REST)
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            reply = self.read()
        return reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octavo", required=True, help="BINARY=MODEL [flags]")
    for name in ("llama.cpp", "vllm", "transformers"):
        parser.add_argument("--" + name, dest=name)
    parser.add_argument("--vllm-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    binary, model = args.octavo.split("=", 1)
    folder, *flags = model.split()
    engines = [Engine("octavo", sys.executable, [folder, binary, *flags], args.threads)]
    for name in ("llama.cpp", "vllm", "transformers"):
        if path := getattr(args, name):
            python = args.vllm_python if name == "vllm" else sys.executable
            engines.append(Engine(name, python, [path], args.threads))

    rng, results = random.Random(1), {}
    for workload in WORKLOADS:
        if args.only and workload.name not in args.only.split(","):
            continue
        figures: dict[str, list[float]] = {engine.name: [] for engine in engines}
        for round in range(args.rounds + 1):
            for engine in engines:
                reply = engine.run(workload, rng)
                if round > 0:  # the first round warms up
                    figures[engine.name].append(workload.tokens_per_second(reply))
                results.setdefault("peak_bytes", {})[engine.name] = reply["bytes"]
        results[workload.name] = figures
        medians = {name: statistics.median(values) for name, values in figures.items()}
        best = max((value for name, value in medians.items() if name != "octavo"), default=float("nan"))
        shown = "  ".join(f"{n} {medians[n]:.1f} ({min(v):.1f} to {max(v):.1f})" for n, v in figures.items())
        print(f"{workload.name:14} {shown}  octavo/best {medians['octavo'] / best:.2f}", flush=True)
    results["ready_seconds"] = {engine.name: engine.ready["ready"] for engine in engines}
    for name in ("ready_seconds", "peak_bytes"):
        print(f"{name:14}", "  ".join(f"{engine} {value:.3g}" for engine, value in results[name].items()))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
