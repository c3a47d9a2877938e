#!/usr/bin/env python3
"""Cases of make_encoder_goldens.py as GGUF files beside their checkpoints, with the same numbers in BF16, as llama.cpp's own conversion
writes them: names, metadata, positions that begin at 0, norms by 1 + w as such.

Usage: gguf_encoders.py DIRECTORY ...
"""
import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors.torch import load_file

ARCHITECTURES = {"BertModel": "bert", "RobertaModel": "bert", "NomicBertModel": "nomic-bert", "ModernBertModel": "modern-bert", "Gemma3TextModel": "gemma-embedding",
                 "JinaEmbeddingsV3Model": "jina-bert-v3", "Qwen3Model": "qwen3"}
POOLING = {"bert": gguf.PoolingType.CLS, "modern-bert": gguf.PoolingType.CLS, "qwen3": gguf.PoolingType.LAST}  # of others: the mean


def add_metadata(writer, arch, config, offset):
    first = lambda *names: next((config[name] for name in names if config.get(name) is not None), None)
    heads = config["num_attention_heads"]
    writer.add_tokenizer_model("no_vocab")
    writer.add_context_length(config["max_position_embeddings"] - offset)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(first("num_key_value_heads") or heads)
    writer.add_causal_attention(arch == "qwen3")
    writer.add_pooling_type(POOLING.get(arch, gguf.PoolingType.MEAN))
    if first("rms_norm_eps"):
        writer.add_layer_norm_rms_eps(first("rms_norm_eps"))
    if first("layer_norm_eps", "norm_eps"):
        writer.add_layer_norm_eps(first("layer_norm_eps", "norm_eps"))
    if first("head_dim"):
        writer.add_key_length(first("head_dim"))
        writer.add_value_length(first("head_dim"))
    rope = config.get("rope_parameters") or {}
    if rope:
        writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if "sliding_attention" in rope:
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    if arch == "modern-bert":
        writer.add_sliding_window(config["local_attention"])
        writer.add_sliding_window_pattern(config.get("global_attn_every_n_layers", 3))
    if arch == "gemma-embedding":
        writer.add_sliding_window(config["sliding_window"])
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])


def write(directory):
    config = json.loads((directory / "config.json").read_text())
    arch = ARCHITECTURES[config["architectures"][0]]
    offset = config["pad_token_id"] + 1 if config["architectures"][0] == "RobertaModel" else 0
    writer = gguf.GGUFWriter(str(directory / "model.gguf"), arch)
    add_metadata(writer, arch, config, offset)
    enum = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    names = gguf.get_tensor_name_map(enum, config["num_hidden_layers"])
    for name, tensor in load_file(directory / "model.safetensors").items():
        name = name.removeprefix("roberta.")
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue
        data = tensor.float().numpy()
        if name == "embeddings.position_embeddings.weight":
            data = data[offset:]
        if arch == "gemma-embedding" and name.endswith("norm.weight"):
            data = data + 1
        new = names.get_name(name, try_suffixes=(".weight", ".bias")) or names.get_name("model." + name, try_suffixes=(".weight", ".bias"))
        plain = data.ndim == 1 or new.startswith(("position_embd", "token_types"))
        kind = gguf.GGMLQuantizationType.F32 if plain else gguf.GGMLQuantizationType.BF16
        writer.add_tensor(new, gguf.quants.quantize(np.ascontiguousarray(data), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        write(pathlib.Path(each))
