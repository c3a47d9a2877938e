#!/usr/bin/env python3
"""Makes tests/data/adapters/: random LoRA adapters of models in tests/data/models and vision, and PEFT's results with
them.

Needs torch, transformers, peft and gguf (made with 2.13, 5.23, 0.21 and 0.19). Usage: make_adapter_goldens.py DATA_DIR [CASE ...]

A case has the name of its base model. It is a directory with adapter_config.json, adapter_model.safetensors and
golden.safetensors:

    ids     I32 [n]         the prompt
    logits  F32 [n, vocab]  of every position, computed in f32

llama-gguf is the case llama-f32 with both as GGUF files, as llama.cpp converts them: model.gguf and adapter.gguf.

For vision models (tests/data/vision/NAME/adapter), the logits are those of the last 60 tokens of the conversation in
the model's golden file.
"""
import json
import os
import shutil
import sys

import gguf
import peft
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

import gguf_files

VOCAB = 128
TOKENS = 40

CASES = {
    "llama-f32": dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj", "up_proj"]),
    "qwen3": dict(r=8, lora_alpha=16, use_rslora=True, target_modules="all-linear"),
    "phi3": dict(r=3, lora_alpha=4, target_modules=["qkv_proj", "gate_up_proj"]),
    "gpt2": dict(r=5, lora_alpha=10, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True),
    "gpt_neox": dict(r=4, lora_alpha=4, target_modules=["query_key_value", "dense"]),
    "qwen3_next": dict(r=3, lora_alpha=6, target_modules=["in_proj_qkvz", "in_proj_ba", "out_proj", "q_proj", "k_proj"]),
    "mistral": dict(r=4, lora_alpha=12, target_modules=["embed_tokens", "lm_head", "o_proj"]),
    "gemma2": dict(r=3, lora_alpha=6, target_modules=["embed_tokens", "gate_proj"]),
    "cohere": dict(r=2, lora_alpha=3, target_modules=["lm_head", "q_proj"]),
    "qwen2_moe": dict(r=2, lora_alpha=6, target_modules=r".*(self_attn\.(q|o)_proj|shared_expert\.(gate|down)_proj)"),
    "granite": dict(r=3, lora_alpha=6, target_modules=["embed_tokens", "v_proj"], ensure_weight_tying=True),
    "qwen3_moe": dict(r=2, lora_alpha=6, target_modules=["q_proj"], target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
    "olmo2": dict(r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "o_proj", "down_proj"], use_rslora=True,
                  rank_pattern={"v_proj": 5, "^model.layers.0.self_attn.q_proj": 1}, alpha_pattern={"layers.1.mlp.down_proj": 2, "q_proj": 9}),
    "gpt_oss": dict(r=3, lora_alpha=6, target_modules=["o_proj"], target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
}
# The layout that PEFT wrote when each expert was a module. Current transformers and PEFT still read such
# folders.
EACH_EXPERT = {"mixtral": dict(r=2, lora_alpha=6, target_modules=["q_proj", "w1", "w2", "w3"])}
# Adapts only the language model.
SEEING = {"qwen2_vl": dict(r=4, lora_alpha=8, target_modules=r".*language_model.*\.(q_proj|v_proj|gate_proj|down_proj)")}


def random_numbers(shape, generator):
    return torch.randn(shape, generator=generator) * (0.7 / shape[-1] ** 0.5)


def write_each_expert(directory, model, config, generator):
    """Writes the shapes of Mixtral's layers: w1 and w3 [hidden, dim], w2 [dim, hidden]."""
    c = model.config
    shapes = {"w1": (c.intermediate_size, c.hidden_size), "w2": (c.hidden_size, c.intermediate_size), "w3": (c.intermediate_size, c.hidden_size)}
    modules = {}
    for layer in range(c.num_hidden_layers):
        modules[f"model.layers.{layer}.self_attn.q_proj"] = (c.num_attention_heads * (c.hidden_size // c.num_attention_heads), c.hidden_size)
        for expert in range(c.num_local_experts):
            modules |= {f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{name}": shape for name, shape in shapes.items()}
    tensors = {}
    for module, (rows, cols) in modules.items():
        tensors[f"base_model.model.{module}.lora_A.weight"] = random_numbers((config["r"], cols), generator)
        tensors[f"base_model.model.{module}.lora_B.weight"] = random_numbers((rows, config["r"]), generator)
    os.makedirs(directory)
    save_file(tensors, os.path.join(directory, "adapter_model.safetensors"))
    peft.LoraConfig(task_type="CAUSAL_LM", inference_mode=True, **config).save_pretrained(directory)


def write_random(directory, model, config, generator):
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for parameter, p in adapted.named_parameters():
            if "lora_" in parameter:
                p.copy_(random_numbers(p.shape, generator))
    adapted.save_pretrained(directory)
    os.remove(os.path.join(directory, "README.md"))
    return adapted


def conversation(base):
    """Returns the inputs of the model's golden file."""
    ids = load_file(os.path.join(base, "golden.safetensors"))["ids"].long()[None]
    pictures = [Image.open(os.path.join(base, name)).convert("RGB") for name in ("rgb.png", "photo.jpg")]
    inputs = transformers.Qwen2VLImageProcessorPil.from_pretrained(base)(pictures, return_tensors="pt")
    with open(os.path.join(base, "config.json")) as f:
        image_token = json.load(f)["image_token_id"]
    return dict(input_ids=ids, mm_token_type_ids=(ids == image_token).int(), **inputs)


def make(name, data):
    sees = name in SEEING
    base = os.path.join(data, "vision" if sees else "models", name)
    directory = os.path.join(base, "adapter") if sees else os.path.join(data, "adapters", name)
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")
    shutil.rmtree(directory, ignore_errors=True)
    if name in EACH_EXPERT:
        write_each_expert(directory, model, EACH_EXPERT[name], generator)
        adapted = peft.PeftModel.from_pretrained(model, directory).eval()
    else:
        adapted = write_random(directory, model, (CASES | SEEING)[name], generator).eval()
    path = os.path.join(directory, "adapter_config.json")
    with open(path) as f:
        config = json.load(f)
    config["base_model_name_or_path"] = name
    with open(path, "w") as f:
        json.dump(config, f, indent=1, sort_keys=True)
        f.write("\n")

    inputs = conversation(base) if sees else dict(input_ids=torch.randint(3, VOCAB, (1, TOKENS), generator=generator))
    with torch.no_grad():
        logits = adapted(**inputs, use_cache=False).logits[0]
    logits = logits[-60:].clone() if sees else logits
    save_file(dict(ids=inputs["input_ids"][0].to(torch.int32), logits=logits), os.path.join(directory, "golden.safetensors"))
    print(f"{name}: logits std {logits.std():.2f}")


def make_gguf(name, data):
    base, adapter = (os.path.join(data, folder, "llama-f32") for folder in ("models", "adapters"))
    directory = os.path.join(data, "adapters", name)
    os.makedirs(directory, exist_ok=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    gguf_files.write(model, os.path.join(directory, "model.gguf"), lambda *_: gguf.GGMLQuantizationType.F32)
    arch = gguf_files.arch_of(model)
    names = gguf_files.TensorNames(arch, model.config.num_hidden_layers)
    writer = gguf.GGUFWriter(os.path.join(directory, "adapter.gguf"), arch)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", CASES["llama-f32"]["lora_alpha"])
    for name, tensor in load_file(os.path.join(adapter, "adapter_model.safetensors")).items():
        module, part = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".lora_", 1)
        there, _ = gguf_files.transform(module + ".weight", model.config, arch)
        numbers = tensor.float().numpy()
        writer.add_tensor(f"{gguf_files.stored_name(names, module + '.weight', model.config)}.lora_{part.lower()}",
                          there(numbers) if part == "B" else numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    shutil.copy(os.path.join(adapter, "golden.safetensors"), directory)


def main():
    for name in sys.argv[2:] or [*CASES, *EACH_EXPERT, *SEEING, "llama-gguf"]:
        (make_gguf if name == "llama-gguf" else make)(name, sys.argv[1])


if __name__ == "__main__":
    main()
