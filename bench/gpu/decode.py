"""Measures the time of a decode step and the bytes that the step reads, for several batch sizes of a Llama-3-8B shape; writes JSON.

    python decode.py OCTAVO OUT.json [--device cuda] [--context 1024] [--prefix 0] [--batches 1 16 64 256] [--shape llama-3-8b]

The program creates random weights. After the first batch of a size, all prompts are cached, so a measured batch consists only of decode
steps. All prompts begin with the same --prefix tokens, before their --context tokens. The run ends at the first batch size that does not fit into the KV cache; OUT.json has the results of smaller batches.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))
import models  # noqa: E402

STEPS = 64  # number of steps per batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--prefix", type=int, default=0)
    parser.add_argument("--batches", nargs="*", default=["1", "16", "64", "256"])
    parser.add_argument("--shape", default="llama-3-8b")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models.describe(args.shape, Path(folder))
        command = [args.octavo, "bench", "step", folder, "--load-format", "dummy", "--device", args.device]
        command += ["--batch-size", *args.batches, "--input-len", str(args.context), "--output-len", str(STEPS + 1)]
        command += ["--prefix-len", str(args.prefix), "--max-num-batched-tokens", "8192"]
        command += ["--max-model-len", str(args.prefix + args.context + STEPS + 32)]
        sys.exit(subprocess.run([*command, "--rounds", "3", "--output-json", str(args.out)]).returncode)


if __name__ == "__main__":
    main()
