#!/usr/bin/env python3
"""Prints the error of each weight format for the demo model: KL divergence to f32, and perplexity on held-out text.

    error_table.py [--program build/release/format_error] [--model models/demo] [--rows 24]

Weights are rounded to nearest, so the figures are those of the formats: GPTQ's and AWQ's searches for better codes
are not done. The text is of the demo model's held-out kind (tools/demo_model/corpus.py). Only the prediction of
answers counts, which the model was trained for. Needs numpy, torch, tokenizers and safetensors.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from write_formats import write_checkpoints

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "demo_model"))
from corpus import SHORT_ROW, build_rows  # noqa: E402


def held_out(model: Path, rows: int):
    """Returns token rows of held-out text [rows, SHORT_ROW], and which tokens are answers, whose prediction
    counts."""
    tokens, taught = build_rows((str(model / "tokenizer.json"), "format-errors", "heldout", SHORT_ROW, rows))
    taught = taught[:, :SHORT_ROW].astype(bool)
    taught[:, 0] = False
    return tokens[:, :SHORT_ROW], taught


def measure(program: Path, tokens, taught, models: list[str]) -> dict[str, tuple[float, float, float, int]]:
    """Returns format_error's results for each model: KL to the first model in f32, share of equal first choices,
    perplexity, bytes of weights."""
    with tempfile.NamedTemporaryFile("w") as ids:
        ids.write("\n".join(
            " ".join(f"{'+' if counts else ''}{token}" for token, counts in zip(row, marks))
            for row, marks in zip(tokens, taught)))
        ids.flush()
        lines = subprocess.run([program, ids.name, *models], check=True, capture_output=True, text=True).stdout
    figures = {}
    for line in lines.splitlines():
        path, kl, same, perplexity, size = line.split("\t")
        figures[path] = float(kl), float(same), float(perplexity), int(size)
    return figures


def argument_parser(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/format_error")
    parser.add_argument("--model", type=Path, default=ROOT / "models/demo")
    parser.add_argument("--rows", type=int, default=24)
    return parser


def main() -> None:
    arguments = argument_parser(__doc__).parse_args()
    model = arguments.model
    tokens, taught = held_out(model, arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        names = {str(model): "f32", f"{model}/": "bf16", f"{model}+int8": "`--quantization int8`",
                 f"{model}+int4": "`--quantization int4`"}
        names |= {str(path): name for name, path in write_checkpoints(model, Path(folder)).items()}
        figures = measure(arguments.program, tokens, taught, list(names))
    print(f"{taught.sum()} predictions in {len(tokens)} rows of {SHORT_ROW} tokens\n")
    print("| format | KL to f32 | same most likely token | perplexity | weights, MB |\n|---|---|---|---|---|")
    for path, (kl, same, perplexity, size) in figures.items():
        print(f"| {names[path]} | {kl:.1e} | {same:.2%} | {perplexity:.3f} | {size / 1e6:.2f} |")


if __name__ == "__main__":
    main()
