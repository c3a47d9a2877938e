#!/usr/bin/env python3
"""Writes the demo model in every quantised format that Octavo loads, for measurements and tests.

    write_formats.py OUT [--model models/demo] [--only w8a8,gptq-4bit]

It writes safetensors folders in the formats of packers.py, rounded to nearest, and GGUF files quantised by llama.cpp.
Needs torch, transformers, safetensors, gguf and llama-cpp-python.
"""
import argparse
import json
import shutil
import sys
from pathlib import Path

from packers import formats
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "goldens"))

GROUP = 128
GGUF_FORMATS = ["BF16", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_1", "Q5_0", "Q4_K_M", "Q4_1", "Q4_0", "IQ4_NL", "Q3_K_M", "Q2_K"]
# Formats that goldens/gguf_blocks.py quantises. As in llama.cpp, the embedding is in Q8_0.
OWN_GGUF_FORMATS = ["NVFP4", "Q1_0"]


def write_checkpoints(model: Path, folder: Path, only: list[str] | None = None) -> dict[str, Path]:
    """Writes a folder for each format of packers.py, or for the named ones. Returns the folders by name."""
    written = {}
    for name, (quantization, packer) in formats(GROUP).items():
        if only and name not in only:
            continue
        out = written[name] = folder / name
        shutil.copytree(model, out)
        tensors = load_file(out / "model.safetensors")
        for projection in [n for n in tensors if n.endswith("_proj.weight")]:
            packed, _ = packer(tensors.pop(projection).float().numpy())
            tensors |= {projection.removesuffix("weight") + part: t.contiguous() for part, t in packed.items()}
        save_file(tensors, out / "model.safetensors")
        config = json.loads((out / "config.json").read_text())
        (out / "config.json").write_text(json.dumps(config | {"quantization_config": quantization}))
    return written


def write_gguf(model: Path, folder: Path) -> dict[str, Path]:
    """Writes a file for F32 and each of GGUF_FORMATS and OWN_GGUF_FORMATS. Returns the files by name."""
    import gguf
    import gguf_files
    import torch
    from transformers import AutoModelForCausalLM

    written = {name: folder / f"{name}.gguf" for name in ["F32", *GGUF_FORMATS, *OWN_GGUF_FORMATS]}
    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    for name in ["F32", *OWN_GGUF_FORMATS]:
        table = gguf.GGMLQuantizationType["F32" if name == "F32" else "Q8_0"]
        matrices = gguf.GGMLQuantizationType[name]
        gguf_files.write(plain, written[name], lambda tensor, _: table if tensor.startswith("token_embd") else matrices,
                         (model, "gpt2", "gpt-2"))
    for name in GGUF_FORMATS:
        gguf_files.requantize(written["F32"], written[name], name)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=ROOT / "models/demo")
    parser.add_argument("--only", type=lambda names: names.split(","), help="these formats of packers.py, no GGUF")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    written = write_checkpoints(arguments.model, arguments.out, arguments.only)
    if not arguments.only:
        written |= write_gguf(arguments.model, arguments.out)
    for path in written.values():
        print(path)


if __name__ == "__main__":
    main()
