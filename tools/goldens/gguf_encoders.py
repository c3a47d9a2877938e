#!/usr/bin/env python3
"""Writes cases of make_encoder_goldens.py, and T5's of make_source_goldens.py, as GGUF files in the folders of their
checkpoints. The numbers are the same, in BF16. Names and metadata are those of llama.cpp's conversion; positions
begin at 0, and norms by 1 + w are stored as such. T5's files contain their tokenizer.

Usage: gguf_encoders.py DIRECTORY ...
"""
import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors.torch import load_file

ARCHITECTURES = {"BertModel": "bert", "RobertaModel": "bert", "NomicBertModel": "nomic-bert", "ModernBertModel": "modern-bert", "Gemma3TextModel": "gemma-embedding",
                 "JinaEmbeddingsV3Model": "jina-bert-v3", "Qwen3Model": "qwen3", "XLMRobertaForSequenceClassification": "bert", "ModernBertForSequenceClassification": "modern-bert",
                 # Qwen3ForCausalLM: a reranker whose score is computed from the logits of two words
                 "Qwen3ForCausalLM": "qwen3", "T5ForConditionalGeneration": "t5", "T5EncoderModel": "t5encoder", "EuroBertModel": "eurobert"}
WORDS = (7, 11)  # tokens for yes and for no
# others use the mean
POOLING = {"bert": gguf.PoolingType.CLS, "modern-bert": gguf.PoolingType.CLS, "qwen3": gguf.PoolingType.LAST}


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
    family = config["architectures"][0]
    if family.endswith(("ForSequenceClassification", "ForCausalLM")):
        writer.add_pooling_type(gguf.PoolingType.RANK)
        writer.add_classifier_output_labels(list(config["id2label"].values()) if "Classification" in family else ["yes", "no"])
    else:
        writer.add_pooling_type(POOLING.get(arch, gguf.PoolingType.MEAN))
    if first("rms_norm_eps"):
        writer.add_layer_norm_rms_eps(first("rms_norm_eps"))
    if first("layer_norm_eps", "norm_eps"):
        writer.add_layer_norm_eps(first("layer_norm_eps", "norm_eps"))
    if first("head_dim"):
        writer.add_key_length(first("head_dim"))
        writer.add_value_length(first("head_dim"))
    rope = config.get("rope_parameters") or {}
    if first("moe_every_n_layers"):
        writer.add_moe_every_n_layers(config["moe_every_n_layers"])
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["moe_top_k"])
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


def add_t5_tokenizer(writer, config, directory):
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    tokens, scores = zip(*tokenizer["model"]["vocab"])
    more = config["vocab_size"] - len(tokens)
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*tokens, *(f"[PAD{i}]" for i in range(more))])
    writer.add_token_scores([*scores, *[-10000.0] * more])
    types = {0: gguf.TokenType.CONTROL, 1: gguf.TokenType.CONTROL, 2: gguf.TokenType.UNKNOWN}
    writer.add_token_types([types.get(i, gguf.TokenType.NORMAL if i < len(tokens) else gguf.TokenType.UNUSED) for i in range(config["vocab_size"])])
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    for add, token in ((writer.add_eos_token_id, 1), (writer.add_unk_token_id, 2), (writer.add_pad_token_id, 0)):
        add(token)


def add_t5(writer, arch, config):
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["d_model"])
    writer.add_feed_forward_length(config["d_ff"])
    writer.add_block_count(config["num_layers"])
    writer.add_head_count(config["num_heads"])
    writer.add_key_length(config["d_kv"])
    writer.add_value_length(config["d_kv"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])
    writer.add_relative_attn_buckets_count(config["relative_attention_num_buckets"])
    if arch == "t5":
        writer.add_decoder_block_count(config["num_decoder_layers"])
        writer.add_decoder_start_token_id(config["decoder_start_token_id"])


def in_usual_words(config):
    """Renames Nomic's fields, which are GPT-2's."""
    names = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads", "n_inner": "intermediate_size", "n_positions": "max_position_embeddings",
             "layer_norm_epsilon": "layer_norm_eps"}
    config |= {"rope_parameters": {"rope_theta": config["rotary_emb_base"]}}
    return {names.get(name, name): value for name, value in config.items()}


def write(directory):
    config = json.loads((directory / "config.json").read_text())
    arch = ARCHITECTURES[config["architectures"][0]]
    if config.get("moe_every_n_layers"):
        arch, config = "nomic-bert-moe", in_usual_words(config)
    family = config["architectures"][0]
    offset = config["pad_token_id"] + 1 if "Roberta" in family else 0
    writer = gguf.GGUFWriter(str(directory / "model.gguf"), arch)
    if arch == "t5":
        add_t5_tokenizer(writer, config, directory)
    elif arch == "t5encoder":
        writer.add_tokenizer_model("no_vocab")
    if arch.startswith("t5"):
        add_t5(writer, arch, config)
    else:
        add_metadata(writer, arch, config, offset)
    enum = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    names = gguf.get_tensor_name_map(enum, max(config.get(name) or 0 for name in ("num_hidden_layers", "num_layers", "num_decoder_layers")))
    tensors = load_file(directory / "model.safetensors")
    if arch.startswith("t5"):
        tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith("embed_tokens.weight")}
    if family == "Qwen3ForCausalLM":
        tensors["classifier.weight"] = tensors["model.embed_tokens.weight"][list(WORDS)]
    for name, tensor in tensors.items():
        name = name.removeprefix("roberta.").removeprefix("model." if arch == "modern-bert" else "")
        if name in ("classifier.weight", "classifier.bias"):
            name = name.replace("classifier", "classifier.out_proj")
        if name.startswith("pooler.") or name.endswith(("position_ids", "experts.bias")):
            continue
        data = tensor.float().numpy()
        if "mlp.experts." in name:
            data = data.reshape(config["num_experts"], config["intermediate_size"], config["hidden_size"])
            data, name = data if name.endswith("w1") else data.transpose(0, 2, 1), name + ".weight"
        if name == "embeddings.position_embeddings.weight":
            data = data[offset:]
        if arch == "gemma-embedding" and name.endswith("norm.weight"):
            data = data + 1
        if name.startswith("classifier.out_proj"):  # the package gguf lacks it for some architectures
            new = name.replace("classifier.out_proj", "cls.output")
        else:
            new = names.get_name(name, try_suffixes=(".weight", ".bias")) or names.get_name("model." + name, try_suffixes=(".weight", ".bias"))
        plain = data.ndim == 1 or new.startswith(("position_embd", "token_types")) or "_rel_b" in new
        kind = gguf.GGMLQuantizationType.F32 if plain else gguf.GGMLQuantizationType.BF16
        writer.add_tensor(new, gguf.quants.quantize(np.ascontiguousarray(data), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        write(pathlib.Path(each))
