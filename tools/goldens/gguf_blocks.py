"""Random blocks of GGUF's quantised formats."""

import gguf
import numpy as np

SCALES_AT = {  # offsets of the f16 numbers in a block
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "IQ3_S": [0],
    "IQ3_XXS": [0],
    "IQ2_S": [0],
    "IQ2_XS": [0],
    "IQ2_XXS": [0],
    "IQ1_S": [0],
    "IQ1_M": [],  # the upper halves of the last bytes with odd offsets form the number
    "TQ1_0": [52],
    "TQ2_0": [64],
}


def set_scales(blocks, name, numbers):
    """Sets the scales. numbers(count): returns f16 numbers, one for each block."""
    if name == "IQ1_M":
        bits = numbers(len(blocks)).view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (bits >> 4 * i & 15).astype(np.uint8) << 4
    for at in SCALES_AT[name]:
        blocks[:, at : at + 2] = numbers(len(blocks)).view(np.uint8).reshape(-1, 2)


def random_blocks(random, name, numbers):
    """Returns u8 [blocks, bytes of a block] for `numbers` numbers. The scales are random bits as well."""
    per_block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    return random.integers(0, 256, (numbers // per_block, size), dtype=np.uint8)


def blocks_like(data, name):
    """Returns random blocks with the shape and spread of `data`, for formats that the gguf package can only read."""
    blocks = random_blocks(np.random.default_rng(data.size), name, data.size)
    set_scales(blocks, name, lambda count: np.ones(count, np.float16))
    rows = blocks.reshape(len(data), -1)
    spread = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[name]).std()
    set_scales(blocks, name, lambda count: np.full(count, data.std() / spread, np.float16))
    return rows
