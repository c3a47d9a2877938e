#!/usr/bin/env python3
"""Makes tests/data/gguf/: tiny random models as GGUF files, and what transformers computes with the numbers in them.

A case is a directory with model.gguf (or its parts) and golden.safetensors as make_model_goldens.py describes it.
Usage: make_gguf_goldens.py OUT_DIR [CASE ...]
"""
import os
import pathlib
import sys

import gguf
import torch
import transformers
from safetensors.torch import save_file

import gguf_files

VOCAB = 48
TOKENS = 12
BASE = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WIDE = dict(BASE, hidden_size=256, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, tie_word_embeddings=True)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=2.5,
              original_max_position_embeddings=64, rope_theta=10000.0)
LONGROPE = dict(rope_type="longrope", short_factor=[1.0, 1.1, 1.3], long_factor=[1.5, 2.0, 2.5], rope_theta=10000.0,
                original_max_position_embeddings=64, partial_rotary_factor=0.75)
GEMMA3 = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
              sliding_attention=dict(rope_type="default", rope_theta=10000.0))
GPT2 = dict(vocab_size=VOCAB, n_embd=32, n_inner=32, n_layer=2, n_head=4, n_positions=128)
NEOX = {k: v for k, v in BASE.items() if k not in ("num_key_value_heads", "head_dim")}
FALCON = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)

# name: (class, configuration, format of the matrices)
CASES = {
    "llama-q8_0": ("Llama", dict(BASE, tie_word_embeddings=True, rope_parameters=LLAMA3), "Q8_0"),
    "llama-q4_k_m": ("Llama", WIDE, "Q4_K_M"),
    "llama-mixed": ("Llama", dict(BASE, num_hidden_layers=1, attention_bias=True), "mixed"),
    "mistral-split": ("Mistral", dict(BASE, sliding_window=8), "Q4_0"),
    "qwen2": ("Qwen2", BASE, "Q5_1"),
    "qwen3": ("Qwen3", dict(BASE, tie_word_embeddings=True), "Q4_0"),
    "gemma": ("Gemma", dict(BASE, num_hidden_layers=1), "BF16"),
    "gemma2": ("Gemma2", dict(BASE, sliding_window=8, query_pre_attn_scalar=8), "Q4_1"),
    "gemma3": ("Gemma3Text", dict(BASE, num_hidden_layers=3, sliding_window=8, query_pre_attn_scalar=8,
                                  rope_parameters=GEMMA3, layer_types=["sliding_attention", "full_attention",
                                                                       "sliding_attention"]), "Q4_0"),
    "phi3": ("Phi3", dict(BASE, rope_parameters=LONGROPE, sliding_window=None,
                          original_max_position_embeddings=64), "Q5_0"),
    "olmo2": ("Olmo2", BASE, "Q4_0"),
    "granite": ("Granite", dict(BASE, attention_multiplier=0.2, embedding_multiplier=12.0, logits_scaling=8.0,
                                residual_multiplier=0.22, tie_word_embeddings=True), "Q4_0"),
    "glm": ("Glm", dict(BASE, partial_rotary_factor=0.5, attention_bias=True), "Q4_0"),
    "glm4": ("Glm4", dict(BASE, partial_rotary_factor=0.5), "Q4_0"),
    "stablelm": ("StableLm", dict(NEOX, num_key_value_heads=2, use_qkv_bias=True), "Q4_0"),
    "gpt_neox": ("GPTNeoX", NEOX, "Q4_0"),
    "lfm2": ("Lfm2", dict(NEOX, num_key_value_heads=2, num_hidden_layers=3, block_auto_adjust_ff_dim=False,
                          layer_types=["conv", "full_attention", "conv"]), "Q4_0"),
    "gpt2": ("GPT2", GPT2, "Q4_0"),
    "smollm3": ("SmolLM3", dict(BASE, num_hidden_layers=4), "Q4_0"),
    "arcee": ("Arcee", BASE, "Q4_0"),
    "command-r": ("Cohere", dict(NEOX, num_key_value_heads=2, logit_scale=0.5, use_qk_norm=True), "Q4_0"),
    "cohere2": ("Cohere2", dict(NEOX, num_hidden_layers=4, logit_scale=0.5, sliding_window=6), "Q4_0"),
    "olmo": ("Olmo", dict(NEOX, num_key_value_heads=2), "Q4_0"),
    "exaone4": ("Exaone4", dict(BASE, num_hidden_layers=4, sliding_window=6), "Q4_0"),
    "ernie4_5": ("Ernie4_5", BASE, "Q4_0"),
    "hunyuan": ("HunYuanDenseV1", BASE, "Q4_0"),
    "seed_oss": ("SeedOss", BASE, "Q4_0"),
    "phi2": ("Phi", dict(NEOX, num_key_value_heads=4, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), "Q4_0"),
    "starcoder": ("GPTBigCode", GPT2, "Q4_0"),
    "starcoder2": ("Starcoder2", dict(NEOX, num_key_value_heads=2), "Q4_0"),
    "falcon": ("Falcon", FALCON, "Q4_0"),
    "falcon-new": ("Falcon", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2), "Q4_0"),
    "bloom": ("Bloom", dict(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4), "Q4_0"),
    "mpt": ("Mpt", dict(vocab_size=VOCAB, d_model=32, n_layers=2, n_heads=4, max_seq_len=128), "Q4_0"),
    "nemotron": ("Nemotron", BASE, "Q4_0"),
}
MODEL_CLASSES = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}
SPLIT_NAMES = ("model-00001-of-00002.gguf", "model-00002-of-00002.gguf")


def random_model(name, fields):
    torch.manual_seed(sum(map(ord, name)) + len(fields))
    config = getattr(transformers, name + "Config")(**fields)
    model = getattr(transformers, MODEL_CLASSES.get(name, name + "ForCausalLM"))._from_config(config)
    with torch.no_grad():
        for parameter_name, p in model.named_parameters():
            norm = parameter_name.endswith("norm.weight") or "layernorm" in parameter_name
            p.copy_(torch.randn(p.shape) * (3 / max(p.shape)) ** 0.5 + (1 if norm and "gemma" not in config.model_type and p.ndim == 1 else 0))
    return model.eval()


def mixed(name, tensor):
    """Every part of a fused projection in a format of its own, one of them plain."""
    return gguf.GGMLQuantizationType[{"attn_q": "Q8_0", "attn_k": "Q4_0", "attn_v": "F16", "ffn_gate": "Q5_0",
                                      "ffn_up": "Q8_0"}.get(name.split(".")[-2], "F16")]


def split(path):
    """The file in two, metadata in the first."""
    reader = gguf.GGUFReader(str(path))
    middle = len(reader.tensors) // 2
    for number, tensors in enumerate((reader.tensors[:middle], reader.tensors[middle:])):
        writer = gguf.GGUFWriter(str(path.parent / SPLIT_NAMES[number]), "llama")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for field in reader.fields.values() if number == 0 else ():
            if not field.name.startswith(("GGUF.", "general.architecture")):
                writer.add_key_value(field.name, field.contents(), field.types[0])
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    path.unlink()


def make(out, name):
    family, fields, kind = CASES[name]
    directory = out / name
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "model.gguf"
    model = random_model(family, fields)
    if kind.endswith("_K_M"):
        gguf_files.write(model, directory / "plain.gguf", lambda *_: gguf.GGMLQuantizationType.F32)
        gguf_files.requantize(directory / "plain.gguf", path, kind)
        os.unlink(directory / "plain.gguf")
    else:
        format_of = mixed if kind == "mixed" else lambda *_: gguf.GGMLQuantizationType[kind]
        gguf_files.write(model, path, format_of)
    gguf_files.load_back(model, path)
    ids = torch.randint(3, VOCAB, (1, TOKENS))
    with torch.no_grad():
        logits = model(ids).logits[0].float().contiguous()
    golden = {"ids": ids[0].to(torch.int32), "logits": logits}
    if family == "Phi3":
        golden["max_model_len"] = torch.tensor([64], dtype=torch.int32)
    save_file(golden, directory / "golden.safetensors")
    if name.endswith("split"):
        split(path)


if __name__ == "__main__":
    for case in sys.argv[2:] or CASES:
        make(pathlib.Path(sys.argv[1]), case)
