#!/usr/bin/env python3
"""Prints the error of each KV cache format: KL divergence to f32, and perplexity.

    cache_error_table.py [--program build/release/format_error] [--model models/demo] [--rows 24]
    cache_error_table.py --model FILE.gguf --text TEXT [--rows 6]

Without --text, the text and the predictions are those of error_table.py. With --text, rows of 512 tokens of this file
are evaluated, and all predictions count. Needs the packages of error_table.py, and transformers and gguf for --text.
"""
from pathlib import Path

import numpy as np

from error_table import argument_parser, held_out, measure

ROW = 512
FORMATS = {"bf16": "bfloat16", "f8_e4m3": "fp8", "i8": "int8_per_token_head", "i4": "int4_per_token_head"}


def rows_of(model: Path, text: Path, rows: int):
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name)
    tokens = tokenizer(text.read_text())["input_ids"][:rows * ROW]
    tokens = np.array(tokens[:len(tokens) // ROW * ROW]).reshape(-1, ROW)
    counts = np.ones(tokens.shape, dtype=bool)
    counts[:, 0] = False
    return tokens, counts


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--text", type=Path)
    arguments = parser.parse_args()
    model = arguments.model
    tokens, counts = (rows_of(model, arguments.text, arguments.rows) if arguments.text
                      else held_out(model, arguments.rows))
    figures = measure(arguments.program, tokens, counts, [str(model)] + [f"{model}@{name}" for name in FORMATS])
    print(f"{counts.sum()} predictions in {len(tokens)} rows of {tokens.shape[1]} tokens\n")
    print("| `--kv-cache-dtype` | KL to f32 | same most likely token | perplexity |\n|---|---|---|---|")
    for name, flag in FORMATS.items():
        kl, same, perplexity, _ = figures[f"{model}@{name}"]
        print(f"| `{flag}` | {kl:.1e} | {same:.2%} | {perplexity:.3f} |")


if __name__ == "__main__":
    main()
