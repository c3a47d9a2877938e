#!/usr/bin/env python3
"""Makes tests/data/torch/: files of torch.save, and the same tensors as safetensors.

Needs torch and safetensors (made with torch 2.13). Usage: make_torch_files.py DATA_DIR

    formats.bin, formats-old.bin   a tensor of each format; the second file is in the format before PyTorch 1.6
    formats.safetensors            the same tensors
    *.bin in refused/              files that are not a dictionary of dense tensors
    opt/                           tests/data/models/opt in two shards of pytorch_model
    adapter/                       tests/data/adapters/llama-f32 as adapter_model.bin
"""
import collections
import json
import os
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file

FORMATS = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32,
    "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}


class Calls:
    """Code that must not run."""

    def __reduce__(self):
        return os.system, ("false",)


def write_formats(into):
    tensors = {name: torch.arange(12).reshape(3, 4).to(dtype) for name, dtype in FORMATS.items()}
    tensors["rows"] = torch.arange(40, dtype=torch.float32).reshape(10, 4)[2:5]  # begins inside its storage
    tensors["scalar"] = torch.tensor(1.5)
    tensors["empty"] = torch.zeros(0, 3)
    # a stride without an effect
    tensors["one_column"] = torch.arange(6, dtype=torch.float32).reshape(3, 2)[:, :1][:1]
    save_file({name: t.clone().contiguous() for name, t in tensors.items()}, into / "formats.safetensors")
    state = collections.OrderedDict(tensors)
    state["rows"] = torch.nn.Parameter(state["rows"], requires_grad=True)
    state._metadata = {"": {"version": 1}}  # as in Module.state_dict
    torch.save(state, into / "formats.bin")
    torch.save(tensors, into / "formats-old.bin", _use_new_zipfile_serialization=False)


def write_refused(into):
    into.mkdir()
    square = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    for name, value in {
        "transposed": {"w": square.T},
        "sparse": {"w": square.to_sparse()},
        "nested": {"epoch": 3, "model": {"w": square}},
        "tensor": square,
        "call": {"w": Calls()},
        "complex": {"w": square.to(torch.complex64)},
    }.items():
        torch.save(value, into / f"{name}.bin")


def write_opt(source, into):
    into.mkdir()
    shutil.copy(source / "config.json", into)
    tensors = sorted(load_file(source / "model.safetensors").items())
    shards = {"pytorch_model-00001-of-00002.bin": tensors[: len(tensors) // 2], "pytorch_model-00002-of-00002.bin": tensors[len(tensors) // 2 :]}
    for file, part in shards.items():
        torch.save(collections.OrderedDict(part), into / file)
    index = {"metadata": {}, "weight_map": {name: file for file, part in shards.items() for name, _ in part}}
    (into / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=1) + "\n")


def write_adapter(source, into):
    into.mkdir()
    shutil.copy(source / "adapter_config.json", into)
    torch.save(load_file(source / "adapter_model.safetensors"), into / "adapter_model.bin")


def main():
    data = pathlib.Path(sys.argv[1])
    into = data / "torch"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    write_formats(into)
    write_refused(into / "refused")
    write_opt(data / "models/opt", into / "opt")
    write_adapter(data / "adapters/llama-f32", into / "adapter")


if __name__ == "__main__":
    main()
