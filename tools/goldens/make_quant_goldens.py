"""Writes tests/data/quant/blocks.txt: blocks of GGUF's quantised formats, with the numbers that the gguf package reads
from them. float4_blocks.txt has the formats whose scales are bytes.

A line has a format's name, the bytes of a row in hexadecimal, and its f32 numbers, each as eight hexadecimal digits.

    python tools/goldens/make_quant_goldens.py
"""

import pathlib

import gguf
import numpy as np
from gguf_blocks import FLOAT4_SCALES, SCALES_AT, dequantize, random_blocks, set_scales


def line(name, blocks):
    row = blocks.reshape(1, -1)
    read = dequantize(row, gguf.GGMLQuantizationType[name]).astype(">f4")
    return f"{name} {row.tobytes().hex()} {read.tobytes().hex()}\n"


def main():
    random = np.random.default_rng(7)
    lines, float4_lines = [], []
    for name in SCALES_AT:
        blocks = random_blocks(random, name, 512)
        set_scales(blocks, name, lambda count: random.normal(0, 0.1, count).astype(np.float16))
        lines.append(line(name, blocks))
    for name, scales in FLOAT4_SCALES.items():
        blocks = random_blocks(random, name, 512)
        blocks[:, :scales] &= 0x7F
        blocks[:, :scales] -= blocks[:, :scales] == 0x7F  # in e4m3 this is NaN
        float4_lines.append(line(name, blocks))
    out = pathlib.Path(__file__).parents[2] / "tests/data/quant"
    out.mkdir(parents=True, exist_ok=True)
    (out / "blocks.txt").write_text("".join(lines))
    (out / "float4_blocks.txt").write_text("".join(float4_lines))


main()
