"""Matrices in the quantised formats of Hugging Face checkpoints, rounded to nearest, with numpy only.

A packer gets a matrix [rows, cols] in f32. It returns the tensors that a checkpoint stores for it, without the
module's name, and the numbers that these tensors represent, computed from the codes before packing. check_packers.py
compares the results with the formats' own packages.
"""
import numpy as np
import torch

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def grouped(w, group):
    """Returns [rows, groups, columns of a group]; with group 0, a group is a whole row."""
    rows, cols = w.shape
    return w.reshape(rows, -1, group or cols)


def integers(w, bits, group, symmetric, scale_type):
    """Returns codes [rows, cols] from 0, and zeros and scales [rows, groups]."""
    g = grouped(w, group)
    most = 2**bits - 1
    if symmetric:
        scales = np.abs(g).max(-1) / (most // 2)
        zeros = np.full(scales.shape, 2 ** (bits - 1))
    else:
        low, high = np.minimum(g.min(-1), 0), np.maximum(g.max(-1), 0)
        scales = (high - low) / most
        zeros = np.round(-low / scales)
    scales = torch.tensor(scales).to(scale_type).to(torch.float32).numpy()
    codes = np.clip(np.round(g / scales[..., None]) + zeros[..., None], 0, most)
    return codes.reshape(w.shape).astype(np.int64), zeros.astype(np.int64), scales


def numbers(codes, zeros, scales, columns):
    """Returns the numbers of the codes. columns: group of each column."""
    return scales[:, columns] * (codes - zeros[:, columns]).astype(np.float32)


def words(codes, bits, axis, order=None):
    """Packs 32 / bits codes into a word along the axis, the first one in the lowest bits, padded with zeros."""
    codes = np.moveaxis(codes, axis, -1)
    each = 32 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    codes = codes.reshape(*codes.shape[:-1], -1, each)[..., order or list(range(each))]
    packed = (codes.astype(np.uint64) << (bits * np.arange(each, dtype=np.uint64))).sum(-1).astype(np.uint32)
    return torch.tensor(np.ascontiguousarray(np.moveaxis(packed.view(np.int32), -1, axis)))


def gptq(w, bits, group, symmetric, version, act_order=False):
    rows, cols = w.shape
    group = group or cols
    columns = np.arange(cols) // group
    order = np.random.default_rng(1).permutation(cols) if act_order else np.arange(cols)
    codes, zeros, scales = integers(w[:, order], bits, group, symmetric, torch.float16)
    if not symmetric:  # in the first version, a stored 15 means a zero of 16
        zeros[0, 0] = 2**bits if version == 1 and bits == 4 else zeros[0, 0]
        zeros = np.maximum(zeros, version % 2)  # the first version cannot store 0
        g = grouped(w[:, order], group) / scales[..., None]
        codes = np.clip(np.round(g) + zeros[..., None], 0, 2**bits - 1).reshape(w.shape).astype(np.int64)
    back = np.argsort(order)
    codes, columns = codes[:, back], columns[back]
    tensors = {"qweight": words(codes.T, bits, 0), "qzeros": words(zeros.T - version % 2, bits, 1),
               "scales": torch.tensor(scales.T).to(torch.float16).contiguous(),
               "g_idx": torch.tensor(columns.astype(np.int32))}
    return tensors, numbers(codes, zeros, scales, columns)


def awq(w, group):
    codes, zeros, scales = integers(w, 4, group, False, torch.float16)
    tensors = {"qweight": words(codes.T, 4, 1, AWQ_ORDER), "qzeros": words(zeros.T, 4, 1, AWQ_ORDER),
               "scales": torch.tensor(scales.T).to(torch.float16).contiguous()}
    return tensors, numbers(codes, zeros, scales, np.arange(w.shape[1]) // (group or w.shape[1]))


def pack_quantized(w, bits, group, symmetric, scale_type=torch.bfloat16):
    codes, zeros, scales = integers(w, bits, group, symmetric, scale_type)
    tensors = {"weight_packed": words(codes, bits, 1), "weight_scale": torch.tensor(scales).to(scale_type),
               "weight_shape": torch.tensor(w.shape, dtype=torch.int64)}
    if not symmetric:
        tensors["weight_zero_point"] = words(zeros, bits, 0)
    return tensors, numbers(codes, zeros, scales, np.arange(w.shape[1]) // (group or w.shape[1]))


def int_quantized(w, symmetric=True, scale_type=torch.bfloat16):
    codes, zeros, scales = integers(w, 8, 0, symmetric, scale_type)
    tensors = {"weight": torch.tensor(codes - 128).to(torch.int8), "weight_scale": torch.tensor(scales).to(scale_type)}
    if not symmetric:
        tensors["weight_zero_point"] = torch.tensor(zeros - 128).to(torch.int8)
    return tensors, numbers(codes, zeros, scales, np.zeros(w.shape[1], int))


def powers_of_two(least):
    """Returns the least powers of two that are not below these numbers, as E8M0."""
    return torch.tensor(2.0 ** np.ceil(np.log2(least))).to(torch.float8_e8m0fnu)


def fp8(w, block=None, scale_type=torch.float32, name="weight_scale"):
    """block: (rows, columns) that share a scale, or None for the whole matrix."""
    rows, cols = w.shape
    height, width = block or w.shape
    scales = np.zeros((-(-rows // height), -(-cols // width)), np.float32)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            scales[i, j] = np.abs(w[i * height:(i + 1) * height, j * width:(j + 1) * width]).max() / 448
    stored = powers_of_two(scales) if scale_type == torch.float8_e8m0fnu else torch.tensor(scales).to(scale_type)
    full = stored.to(torch.float32).numpy()[np.arange(rows)[:, None] // height, np.arange(cols)[None] // width]
    codes = torch.tensor(w / full).clamp(-448, 448).to(torch.float8_e4m3fn)
    tensors = {"weight": codes, name: stored if block else stored.reshape(1)}
    return tensors, codes.to(torch.float32).numpy() * full


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def mxfp4(w):
    """Numbers in e2m1, two per byte (DeepSeek's dtype I8), with a power of two for each 32 columns."""
    g = grouped(w, 32)
    scales = powers_of_two(np.abs(g).max(-1) / 6)
    full = scales.to(torch.float32).numpy()[..., None]
    codes = np.abs(np.abs(g / full)[..., None] - E2M1).argmin(-1)
    made = np.where(g < 0, -1, 1) * E2M1[codes] * full
    codes = (codes + 8 * (g < 0)).reshape(w.shape).astype(np.uint8)
    return {"weight": torch.tensor(codes[:, ::2] | codes[:, 1::2] << 4).view(torch.int8), "scale": scales}, made.reshape(w.shape)


def nvfp4(w, modelopt=False):
    """Numbers in e2m1, with a scale in e4m3 for each 16 columns and one in f32 for the matrix. compressed-tensors
    stores the reciprocal of the latter."""
    g = grouped(w, 16)
    whole = np.float32(np.abs(w).max() / (448 * 6)) if modelopt else 1 / np.float32(448 * 6 / np.abs(w).max())
    scales = torch.tensor(np.abs(g).max(-1) / 6 / whole).to(torch.float8_e4m3fn)
    full = scales.to(torch.float32).numpy()[..., None] * whole
    codes = np.abs(np.abs(g / full)[..., None] - E2M1).argmin(-1)
    made = np.where(g < 0, -1, 1) * E2M1[codes] * full
    codes = (codes + 8 * (g < 0)).reshape(w.shape).astype(np.uint8)
    packed = torch.tensor(codes[:, ::2] | codes[:, 1::2] << 4)
    if modelopt:
        return {"weight": packed, "weight_scale": scales, "weight_scale_2": torch.tensor(whole), "input_scale": torch.tensor(1.0)}, made.reshape(w.shape)
    return {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": torch.tensor([1 / whole]),
            "input_global_scale": torch.tensor([1.0])}, made.reshape(w.shape)


def compressed(strategy, bits=4, kind="int", symmetric=True, group=None, activations=None, block=None,
               form="pack-quantized", ignore=("lm_head",)):
    """Returns quantization_config of a checkpoint of compressed-tensors."""
    weights = dict(num_bits=bits, type=kind, symmetric=symmetric, strategy=strategy, group_size=group, dynamic=False)
    if block:
        weights["block_structure"] = block
    return dict(quant_method="compressed-tensors", format=form, quantization_status="compressed",
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights, input_activations=activations)),
                ignore=list(ignore))


def rounded_fp8(x, scale):
    """Returns the nearest numbers scale * e4m3 of a tensor."""
    return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float32) * scale


def rounded_rows(x, group=None):
    """Returns rounded_fp8() with a scale for each row of a tensor and each `group` columns."""
    g = x.unflatten(-1, (-1, group or x.shape[-1]))
    return rounded_fp8(g, g.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 448).flatten(-2)


FP8_TOKENS = dict(num_bits=8, type="float", symmetric=True, strategy="token", dynamic=True)
INT8_TOKENS = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True)
GPTQ = dict(quant_method="gptq", desc_act=False, sym=True, lm_head=False)


def formats(group):
    """Returns name: (quantization_config, packer of a matrix). group: number of columns of a group, for formats with
    groups."""
    return {
        "gptq-4bit": (dict(GPTQ, bits=4, group_size=group), lambda w: gptq(w, 4, group, True, 1)),
        "gptq-4bit-asymmetric": (dict(GPTQ, bits=4, group_size=group, sym=False),
                                 lambda w: gptq(w, 4, group, False, 1)),
        "gptq-4bit-act-order": (dict(GPTQ, bits=4, group_size=group, desc_act=True, sym=False,
                                     checkpoint_format="gptq_v2"), lambda w: gptq(w, 4, group, False, 2, True)),
        "gptq-8bit": (dict(GPTQ, bits=8, group_size=-1), lambda w: gptq(w, 8, 0, True, 1)),
        "awq-4bit": (dict(quant_method="awq", bits=4, group_size=group, zero_point=True, version="gemm",
                          modules_to_not_convert=None), lambda w: awq(w, group)),
        "w4a16-channel": (compressed("channel"), lambda w: pack_quantized(w, 4, 0, True)),
        "w4a16-group": (compressed("group", group=group), lambda w: pack_quantized(w, 4, group, True)),
        "w4a16-group-asymmetric": (compressed("group", symmetric=False, group=group),
                                   lambda w: pack_quantized(w, 4, group, False)),
        "w8a16-group": (compressed("group", 8, group=group), lambda w: pack_quantized(w, 8, group, True)),
        "w8a8": (compressed("channel", 8, activations=INT8_TOKENS, form="int-quantized"), int_quantized),
        "fp8-block": (dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[group, group * 3 // 2]),
                      lambda w: fp8(w, (group, group * 3 // 2), name="weight_scale_inv")),
        "fp8-tensor": (dict(quant_method="fp8", activation_scheme="static"), fp8),
        "fp8-channel": (compressed("channel", 8, "float", form="float-quantized"),
                        lambda w: fp8(w, (1, w.shape[1]), torch.bfloat16)),
        "nvfp4": (compressed("tensor_group", 4, "float", group=16, form="nvfp4-pack-quantized"), nvfp4),
        "nvfp4-modelopt": (dict(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head"]), lambda w: nvfp4(w, True)),
    }
