"""Writes tests/data/quant/blocks.txt: blocks of GGUF's quantised formats, with the numbers that the gguf package reads
from them.

A line has a format's name, the bytes of a row in hexadecimal, and its f32 numbers, each as eight hexadecimal digits.

    python tools/goldens/make_quant_goldens.py
"""

import pathlib

import gguf
import numpy as np
from gguf_blocks import SCALES_AT, random_blocks, set_scales


def main():
    random = np.random.default_rng(7)
    lines = []
    for name in SCALES_AT:
        blocks = random_blocks(random, name, 512)
        set_scales(blocks, name, lambda count: random.normal(0, 0.1, count).astype(np.float16))
        row = blocks.reshape(1, -1)
        read = gguf.quants.dequantize(row, gguf.GGMLQuantizationType[name]).astype(">f4")
        lines.append(f"{name} {row.tobytes().hex()} {read.tobytes().hex()}\n")
    out = pathlib.Path(__file__).parents[2] / "tests/data/quant/blocks.txt"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines))


main()
