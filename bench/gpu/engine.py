"""Measures the seconds of each workload with Octavo's engine on a device; writes JSON.

    python engine.py OCTAVO OUT.json [--device cuda] [--shapes llama-3.2-1b ..]

Weights are random. The 1B shape is also measured without CUDA graphs, and without overlap of steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from workloads import SHAPES, WORKLOADS

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))
import models  # noqa: E402

VARIANTS = {
    "eager": (["--enforce-eager"], ["first token", "one sequence"]),
    "one step after the other": (["--no-async-scheduling"], ["first tokens of 64", "64 sequences"]),
}


def seconds(octavo: str, model: str, device: str, workload: str, flags: list[str]) -> float:
    """Returns the median time of a batch. There are two warm-up batches, because a CUDA graph is captured when a step size repeats."""
    batch, prompt, tokens = WORKLOADS[workload]
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [octavo, "bench", "latency", model, "--load-format", "dummy", "--device", device, "--output-json", result.name]
        command += ["--batch-size", str(batch), "--input-len", str(prompt), "--output-len", str(tokens)]
        command += ["--num-iters-warmup", "2", "--num-iters", "3", "--max-num-seqs", "256", "--max-model-len", "4096"]
        command += ["--max-num-batched-tokens", "4096", "--no-enable-prefix-caching", *flags]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.load(result)["percentiles"]["50"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS))
    args = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for shape in args.shapes:
        runs = [(shape, [], SHAPES.get(shape, WORKLOADS))]
        if shape == "llama-3.2-1b":
            runs += [(f"{shape}, {name}", flags, loads) for name, (flags, loads) in VARIANTS.items()]
        with tempfile.TemporaryDirectory() as folder:
            models.describe(shape, Path(folder))
            for name, flags, loads in runs:
                found[name] = {}
                for workload in loads:
                    if workload not in args.workloads:
                        continue
                    found[name][workload] = seconds(args.octavo, folder, args.device, workload, flags)
                    print(name, workload, found[name][workload], flush=True)
                    args.out.write_text(json.dumps(found))  # saves results before the time limit ends the run


if __name__ == "__main__":
    main()
