"""A decoding step's time beside what it has to read, over batches, at one context, on a Llama-3-8B shape, as JSON.

    python decode.py OCTAVO OUT.json [--device cuda] [--context 1024] [--batches 1 16 64 256] [--shape llama-3-8b]

Prompts are cached after the first batch, so that two batches that differ in their tokens differ in decoding steps alone.
Batches that do not fit into the device's memory are left out, which their line says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))
import models  # noqa: E402

STEPS = (17, 81)  # generated tokens of the two batches


def seconds(octavo: str, model: Path, device: str, batch: int, context: int, tokens: int) -> float:
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [octavo, "bench", "latency", str(model), "--device", device, "--output-json", result.name]
        command += ["--batch-size", str(batch), "--input-len", str(context), "--output-len", str(tokens)]
        command += ["--num-iters-warmup", "2", "--num-iters", "3", "--max-num-seqs", str(batch)]
        command += ["--max-model-len", str(context + 128), "--max-num-batched-tokens", "8192"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.load(result)["percentiles"]["50"]


def bytes_of_step(config: dict, weights: int, batch: int, context: int) -> int:
    """All weights but the table of embeddings, and the keys and values of all sequences, 16 bits each."""
    table = 0 if config["tie_word_embeddings"] else 2 * config["vocab_size"] * config["hidden_size"]
    vector = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    return weights - table + 2 * vector * batch * (context + sum(STEPS) // 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 16, 64, 256])
    parser.add_argument("--shape", default="llama-3-8b")
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()) / "octavo_gpu_models")
    args = parser.parse_args()
    folder = args.models / args.shape
    if not (folder / "tokenizer.json").exists():  # written last
        models.make(args.shape, folder)
    config = json.loads((folder / "config.json").read_text())
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    found = []
    for batch in args.batches:
        try:
            few, many = (seconds(args.octavo, folder, args.device, batch, args.context, steps) for steps in STEPS)
        except subprocess.CalledProcessError as error:
            print(f"{batch} sequences of {args.context} tokens: {error}", flush=True)
            continue
        step = (many - few) / (STEPS[1] - STEPS[0])
        read = bytes_of_step(config, weights, batch, args.context)
        found.append({"batch": batch, "context": args.context, "seconds": step, "bytes": read})
        print(found[-1], flush=True)
        args.out.write_text(json.dumps(found))  # what is there when time runs out


if __name__ == "__main__":
    main()
