#!/usr/bin/env python3
"""Compares packers.py with the formats' own code, bit by bit.

Needs the package compressed-tensors and, for GPTQ and AWQ, the unpacked sources of gptqmodel and autoawq:

    check_packers.py [--gptqmodel DIR] [--autoawq DIR]

From gptqmodel and autoawq, it extracts and runs only the packing functions, because importing the packages needs many more
dependencies.
"""
import argparse
import ast
import contextlib
import math
import types
from pathlib import Path

import numpy as np
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationScheme

import packers


def same(name, mine, theirs):
    for key in theirs:
        assert torch.equal(mine[key].view(torch.uint8), theirs[key].contiguous().view(torch.uint8)), (name, key)
    print(f"{name}: {', '.join(theirs)} are the same")


def check_compressed_tensors(w):
    for name, (config, packer) in packers.formats(32).items():
        if config["quant_method"] != "compressed-tensors":
            continue
        mine, numbers = packer(w)
        scheme = QuantizationScheme(**config["config_groups"]["group_0"])
        compressor = BaseCompressor.get_value_from_registry(config["format"])
        back = compressor.decompress({k: t.clone() for k, t in mine.items()}, scheme)["weight"]
        wanted = torch.tensor(numbers).to(back.dtype)
        assert torch.equal(back, wanted), (name, (back - wanted).abs().max())
        state = {"weight": torch.tensor(numbers), "weight_scale": mine["weight_scale"].to(torch.float32)}
        if "weight_zero_point" in mine:  # as before packing
            codes, zeros, scales = packers.integers(w, config["config_groups"]["group_0"]["weights"]["num_bits"],
                                                    32, False, torch.bfloat16)
            state["weight_zero_point"] = torch.tensor(zeros - 8).to(torch.int8)
        packed = compressor.compress(state, scheme)
        names = [key for key in packed if key not in ("weight_scale", "weight_shape")]
        same(name, mine, {key: packed[key] for key in names})


def function_of(file, name, scope):
    """Returns a function, or a method as a function, of a source file."""
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = []
            exec(compile(ast.Module([node], []), file, "exec"), scope)
            return scope[name]
    raise LookupError(f"{name} in {file}")


def check_gptq(w, source):
    limits = types.SimpleNamespace(threadpool_limits=lambda _: contextlib.nullcontext())
    transformers = types.SimpleNamespace(pytorch_utils=types.SimpleNamespace(Conv1D=type("Conv1D", (), {})))
    pack = function_of(source / "gptqmodel/nn_modules/qlinear/__init__.py", "pack_original",
                       dict(t=torch, nn=torch.nn, np=np, math=math, transformers=transformers, THREADPOOLCTL=limits,
                            _ConvNd=torch.nn.modules.conv._ConvNd, log=None))
    for bits, group, act_order in [(4, 32, False), (8, 32, False), (4, 32, True)]:
        mine, numbers = packers.gptq(w, bits, group, False, 2, act_order)
        scales = mine["scales"].to(torch.float32)
        order = np.random.default_rng(1).permutation(w.shape[1]) if act_order else np.arange(w.shape[1])
        _, zeros, _ = packers.integers(w[:, order], bits, group, False, torch.float16)
        layer = types.SimpleNamespace(bits=bits, pack_dtype_bits=32, pack_factor=32 // bits, maxq=2**bits - 1,
                                      pack_np_math_dtype=np.uint32, pack_np_dtype=np.int32, planar=False,
                                      g_idx=mine["g_idx"], bias=None)
        layer.register_buffer = lambda key, value: setattr(layer, key, value)
        linear = torch.nn.Linear(*w.shape[::-1], bias=False)
        linear.weight.data = torch.tensor(numbers)
        pack(layer, linear, scales.T.contiguous(), torch.tensor(zeros).to(torch.float32), mine["g_idx"])
        theirs = {key: getattr(layer, key) for key in ("qweight", "qzeros", "scales")}
        same(f"gptq {bits} bits{', act-order' if act_order else ''}", mine, theirs)


def check_awq(w, source):
    mine, numbers = packers.awq(w, 32)
    from_linear = function_of(source / "awq/modules/linear/gemm.py", "from_linear",
                              dict(torch=torch, get_best_device=lambda: "cpu"))
    linear = torch.nn.Linear(*w.shape[::-1], bias=False)
    linear.weight.data = torch.tensor(numbers)
    make = lambda bits, group, inputs, outputs, bias, device: types.SimpleNamespace(
        w_bit=bits, in_features=inputs, out_features=outputs)
    _, zeros, _ = packers.integers(w, 4, 32, False, torch.float16)
    made = from_linear(make, linear, 4, 32, scales=mine["scales"].to(torch.float32), zeros=torch.tensor(zeros.T))
    same("awq", mine, {key: getattr(made, key) for key in ("qweight", "qzeros", "scales")})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gptqmodel", type=Path)
    parser.add_argument("--autoawq", type=Path)
    arguments = parser.parse_args()
    matrix = np.random.default_rng(0).normal(0, 0.1, (64, 96)).astype(np.float32)
    check_compressed_tensors(matrix)
    if arguments.gptqmodel:
        check_gptq(matrix, arguments.gptqmodel)
    if arguments.autoawq:
        check_awq(matrix, arguments.autoawq)
