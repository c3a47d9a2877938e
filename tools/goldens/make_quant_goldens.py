"""Blocks of GGUF's quantised formats with the numbers that the gguf package reads from them.

Writes tests/data/quant/blocks.txt: a line for each format, its name, the bytes of a row in hexadecimal, and its f32
numbers, each as eight hexadecimal digits.

    python tools/goldens/make_quant_goldens.py
"""

import pathlib

import gguf
import numpy as np

FORMATS = {  # numbers in a block, bytes of a block, where its f16 scales are
    "Q8_0": (32, 34, [0]),
    "Q4_0": (32, 18, [0]),
    "Q4_1": (32, 20, [0, 2]),
    "Q5_0": (32, 22, [0]),
    "Q5_1": (32, 24, [0, 2]),
    "Q2_K": (256, 84, [80, 82]),
    "Q3_K": (256, 110, [108]),
    "Q4_K": (256, 144, [0, 2]),
    "Q5_K": (256, 176, [0, 2]),
    "Q6_K": (256, 210, [208]),
    "IQ4_NL": (32, 18, [0]),
}


def main():
    random = np.random.default_rng(7)
    lines = []
    for name, (numbers, size, scales) in FORMATS.items():
        blocks = random.integers(0, 256, (512 // numbers, size), dtype=np.uint8)
        for at in scales:
            values = random.normal(0, 0.1, len(blocks)).astype(np.float16)
            blocks[:, at : at + 2] = values.view(np.uint8).reshape(-1, 2)
        row = blocks.reshape(1, -1)
        read = gguf.quants.dequantize(row, gguf.GGMLQuantizationType[name]).astype(">f4")
        lines.append(f"{name} {row.tobytes().hex()} {read.tobytes().hex()}\n")
    out = pathlib.Path(__file__).parents[2] / "tests/data/quant/blocks.txt"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines))


main()
