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
    "Q1_0": [0],
}
FLOAT4_SCALES = {"MXFP4": 1, "NVFP4": 4}  # number of bytes at the start of a block that are scales
NVFP4_MAX = 6 * 448  # largest number in NVFP4 without a scale of the tensor


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


def quantize_q1_0(data):
    """Rounds numbers to their sign times the mean magnitude of 128 numbers."""
    blocks = data.reshape(-1, 128)
    scales = np.abs(blocks).mean(-1, keepdims=True).astype(np.float16)
    return np.hstack([scales.view(np.uint8), np.packbits(blocks >= 0, axis=-1, bitorder="little")])


def quantize_nvfp4(data):
    """Rounds numbers to the nearest e2m1 numbers, with e4m3 scales that map the largest of 16 to 6."""
    form, parts = gguf.quants.NVFP4, data.reshape(-1, 4, 16)
    scales = form.fp32_to_ue4m3(np.abs(parts).max(-1) / 6)
    values = form.ue4m3_to_fp32(scales)[..., None] * np.array(form.kvalues, np.float32)
    codes = np.abs(parts[..., None] - values[:, :, None]).argmin(-1).astype(np.uint8)
    return np.hstack([scales, (codes[..., :8] | codes[..., 8:] << 4).reshape(-1, 32)])


def quantize(data, kind):
    """Returns the rows' blocks. They are random for formats that have no quantisation here or in the gguf package."""
    if kind.name.startswith(("IQ", "TQ")):
        return blocks_like(data, kind.name)
    own = {"Q1_0": quantize_q1_0, "NVFP4": quantize_nvfp4}.get(kind.name)
    return own(data).reshape(*data.shape[:-1], -1) if own else gguf.quants.quantize(data, kind)


def dequantize(rows, kind):
    """Reads blocks as the gguf package does, and Q1_0, which it lacks, by its definition: a set bit is +scale."""
    if kind.name != "Q1_0":
        return gguf.quants.dequantize(rows, kind)
    blocks = rows.reshape(-1, 18)
    signs = np.unpackbits(blocks[:, 2:], axis=-1, bitorder="little").astype(np.float32) * 2 - 1
    return (blocks[:, :2].copy().view(np.float16).astype(np.float32) * signs).reshape(*rows.shape[:-1], -1)
