#!/usr/bin/env python3
"""Writes cases of make_vision_goldens.py as pairs of GGUF files: OUT_DIR/CASE/model.gguf and OUT_DIR/CASE/mmproj.gguf.
Names, metadata and orders of rows are those of llama.cpp's conversion. The numbers are those of the case's folder, so
its golden.safetensors is the reference of the pair.

Needs gguf and numpy. Usage: gguf_vision.py VISION_DIR OUT_DIR [CASE ...]
"""
import json
import pathlib
import re
import sys

import gguf
import numpy as np

BF16, F16, F32, Q8_0 = (gguf.GGMLQuantizationType[name] for name in ("BF16", "F16", "F32", "Q8_0"))
MERGED = "\u0100\u0100"  # two NUL bytes, which no text has: GGUF's byte-level tokenizers need a merge

# Architecture of the language model, type of the projector, format of the encoder's matrices.
CASES = {
    "gemma3": ("gemma3", "gemma3", F16),
    "gemma4": ("gemma4", "gemma4v", F16),
    "gemma4-whole": ("gemma4", "gemma4v", F32),
    "glm4v": ("glm4", "glm4v", F16),
    "glm4v_moe": ("glm4moe", "glm4v", BF16),
    "glm_ocr": ("glm4", "glm4v", F32),
    "idefics3": ("llama", "idefics3", F32),
    "internvl": ("qwen2", "internvl", F16),
    "lfm2_vl": ("lfm2", "lfm2", F16),
    "lighton_ocr": ("qwen3", "lightonocr", BF16),
    "llama4": ("llama4", "llama4", BF16),
    "llama4-q8_0": ("llama4", "llama4", Q8_0),
    "llava": ("llama", "mlp", F16),
    "mistral3": ("mistral3", "pixtral", BF16),
    "pixtral": ("llama", "pixtral", F16),
    "qwen2_5_vl": ("qwen2vl", "qwen2.5vl_merger", F16),
    "qwen2_vl": ("qwen2vl", "qwen2vl_merger", F32),
    "qwen3_vl": ("qwen3vl", "qwen3vl_merger", F16),
    "qwen3_vl_moe": ("qwen3vlmoe", "qwen3vl_merger", BF16),
}
INTERLEAVED = ("llama", "mistral3")

# Names of an encoder's tensors, after the prefix of the layer.
LAYER = {
    "layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_out", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
    # Qwen
    "norm1": "ln1", "norm2": "ln2", "attn.qkv": "attn_qkv", "attn.proj": "attn_out", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.linear_fc1": "ffn_up", "mlp.linear_fc2": "ffn_down",
    # GLM
    "attn.q_norm": "attn_q_norm", "attn.k_norm": "attn_k_norm",
    # Pixtral
    "attention_norm": "ln1", "ffn_norm": "ln2", "attention.q_proj": "attn_q", "attention.k_proj": "attn_k", "attention.v_proj": "attn_v",
    "attention.o_proj": "attn_out", "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
    # InternVL
    "layernorm_before": "ln1", "layernorm_after": "ln2", "attention.q_norm": "attn_q_norm", "attention.k_norm": "attn_k_norm",
    "attention.projection_layer": "attn_out", "lambda_1": "ls1", "lambda_2": "ls2",
    # Gemma 4
    "pre_feedforward_layernorm": "ln2", "post_feedforward_layernorm": "ffn_post_norm", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    # Llama 4
    "input_layernorm": "ln1", "post_attention_layernorm": "ln2", "self_attn.o_proj": "attn_out",
}
# Names without the prefix of the encoder.
OUTER = {
    "embeddings.patch_embedding": "v.patch_embd", "embeddings.position_embedding": "v.position_embd", "embeddings.class_embedding": "v.class_embd",
    "pre_layrnorm": "v.pre_ln", "post_layernorm": "v.post_ln", "model.connector.modality_projection.proj": "mm.model.fc",
    "multi_modal_projector.mm_input_projection_weight": "mm.input_projection", "multi_modal_projector.mm_soft_emb_norm": "mm.soft_emb_norm",
    "merger.ln_q": "v.post_ln", "merger.norm": "v.post_ln", "merger.mlp.0": "mm.0", "merger.mlp.2": "mm.2", "merger.linear_fc1": "mm.0",
    "merger.linear_fc2": "mm.2", "patch_embed.proj": "v.patch_embd", "pos_embed": "v.position_embd",
    "patch_conv": "v.patch_embd", "ln_pre": "v.pre_ln", "multi_modal_projector.linear_1": "mm.1", "multi_modal_projector.linear_2": "mm.2",
    "multi_modal_projector.norm": "mm.input_norm", "multi_modal_projector.patch_merger.merging_layer": "mm.patch_merger",
    "embeddings.cls_token": "v.class_embd", "embeddings.position_embeddings": "v.position_embd",
    "embeddings.patch_embeddings.projection": "v.patch_embd", "layernorm_pre": "v.pre_ln", "layernorm_post": "v.post_ln",
    "class_embedding": "v.class_embd", "positional_embedding_vlm": "v.position_embd", "patch_embedding.linear": "v.patch_embd",
    "model.embed_vision.embedding_projection": "mm.input_projection", "patch_embedder.input_proj": "v.patch_embd",
    "patch_embedder.position_embedding_table": "v.position_embd", "std_bias": "v.std_bias", "std_scale": "v.std_scale",
    "vision_adapter.mlp.fc1": "mm.model.mlp.1", "vision_adapter.mlp.fc2": "mm.model.mlp.2",
    "post_conv_layernorm": "v.norm_embd", "downsample": "mm.patch_merger", "merger.proj": "mm.model.fc", "merger.post_projection_norm": "mm.post_norm",
    "merger.gate_proj": "mm.gate", "merger.up_proj": "mm.up", "merger.down_proj": "mm.down",
    "vision_projection.linear_1": "mm.1", "vision_projection.linear_2": "mm.2", "vision_projection.norm": "mm.input_norm",
    "vision_projection.patch_merger.merging_layer": "mm.patch_merger",
}
# Names that only one type of projector has.
OWN = {
    "mlp": {"multi_modal_projector.linear_1": "mm.0"},
    "internvl": {"multi_modal_projector.layer_norm": "mm.model.mlp.0", "multi_modal_projector.linear_1": "mm.model.mlp.1",
                 "multi_modal_projector.linear_2": "mm.model.mlp.3"},
    "gemma4v": {"post_attention_layernorm": "attn_post_norm"},
    "lfm2": {"multi_modal_projector.layer_norm": "mm.input_norm"},
    "llama4": {"multi_modal_projector.linear_1": "mm.model.fc"},
}
PREFIXES = ("model.vision_encoder.", "model.vision_tower.vision_model.", "model.vision_tower.", "vision_tower.vision_model.", "vision_tower.", "model.vision_model.",
            "vision_model.", "model.visual.", "visual.", "model.")
LAYERS = ("encoder.layers.", "encoder.layer.", "blocks.", "transformer.layers.", "model.layers.")
SUFFIXES = (".weight", ".bias", ".input_min", ".input_max", ".output_min", ".output_max")
TEXT_PREFIXES = ("model.text_model.", "model.language_model.", "language_model.model.", "language_model.", "model.")


def read_tensors(path):
    """Returns the tensors of a safetensors file in BF16 or F32, as F32."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin:8 + size + end]
        numbers = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else np.frombuffer(raw, np.float32)
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors


def interleave(tensor, heads):
    """Reorders rows from halves, as transformers rotates them, to pairs."""
    return tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


def halve(tensor, heads, rotary):
    """Reorders the first `rotary` rows of each head from pairs to halves."""
    rows = tensor.reshape(heads, tensor.shape[0] // heads, *tensor.shape[1:])
    return np.concatenate([rows[:, :rotary:2], rows[:, 1:rotary:2], rows[:, rotary:]], 1).reshape(tensor.shape)


def is_vision(name):
    return any(part in name for part in ("vision_tower", "vision_model", "vision_encoder", "vision_projection", "visual.", "multi_modal_projector",
                                         "model.connector", "embed_vision"))


def without_prefix(name, prefixes):
    return next((name[len(prefix):] for prefix in prefixes if name.startswith(prefix)), name)


def add(writer, name, tensor, kind):
    """Vectors, and matrices whose rows are no multiple of a block, are stored in F32."""
    tensor = np.ascontiguousarray(tensor)
    if tensor.ndim < 2 or (kind == Q8_0 and (tensor.ndim > 2 or tensor.shape[-1] % 32 != 0)):
        kind = F32
    writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, folder, size):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    texts = {id: text for text, id in tokenizer["model"]["vocab"].items()}
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    texts.update(special)
    unused = {id: f"[PAD{id}]" for id in range(size) if id not in texts}
    texts.update(unused)
    texts[size - 1] = MERGED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([texts[id] for id in range(size)])
    writer.add_token_types([gguf.TokenType.CONTROL if id in special else gguf.TokenType.UNUSED if id in unused else gguf.TokenType.NORMAL
                            for id in range(size)])
    writer.add_token_merges(["\u0100 \u0100"])
    ids = {text: id for id, text in special.items()}
    for field, add_id in (("bos_token", writer.add_bos_token_id), ("eos_token", writer.add_eos_token_id)):
        if settings.get(field) in ids:
            add_id(ids[settings[field]])
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def rotary_dim(arch, head_dim, rope):
    return int(head_dim * rope["partial_rotary_factor"]) if arch.startswith("glm4") else head_dim


def add_text_metadata(writer, arch, text):
    rope = text.get("rope_parameters") or {}
    full = rope.get("full_attention", rope)
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_block_count(text["num_hidden_layers"])
    writer.add_head_count(text["num_attention_heads"])
    if arch != "gemma4":
        writer.add_feed_forward_length(text.get("intermediate_size_mlp", text["intermediate_size"]))
        own = text["num_key_value_heads"]
        writer.add_head_count_kv([own * (kind != "conv") for kind in text["layer_types"]] if arch == "lfm2" else own)
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    if "per_layer_config" in text:  # Gemma 4's layers with full attention
        full_dim = next(iter(text["per_layer_config"].values()))["head_dim"]
        writer.add_key_length_swa(head_dim)
        writer.add_value_length_swa(head_dim)
        writer.add_rope_dimension_count_swa(head_dim)
        head_dim = full_dim
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(rotary_dim(arch, head_dim, full))
    writer.add_rope_freq_base(full["rope_theta"])
    writer.add_layer_norm_rms_eps(text["rms_norm_eps"])
    if "mrope_section" in full:
        writer.add_rope_dimension_sections([*full["mrope_section"], 0])
    if arch == "gemma3":
        writer.add_sliding_window(text["sliding_window"])
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in text["layer_types"]])
    if arch == "gemma4":
        add_gemma4(writer, text)
    if arch == "llama4":
        writer.add_interleave_moe_layer_step(text["interleave_moe_layer_step"])
        writer.add_expert_feed_forward_length(text["intermediate_size"])
        writer.add_expert_count(text["num_local_experts"])
        writer.add_expert_used_count(text["num_experts_per_tok"])
    if arch == "lfm2":
        writer.add_vocab_size(text["vocab_size"])
        writer.add_shortconv_l_cache(text["conv_L_cache"])
    if arch == "glm4moe":
        writer.add_expert_count(text["n_routed_experts"])
        writer.add_expert_used_count(text["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(text["moe_intermediate_size"])
        writer.add_expert_shared_count(text["n_shared_experts"])
        writer.add_leading_dense_block_count(text["first_k_dense_replace"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_scale(text["routed_scaling_factor"])
        writer.add_expert_weights_norm(text["norm_topk_prob"])
    if arch == "qwen3vlmoe":
        writer.add_expert_feed_forward_length(text["moe_intermediate_size"])
        writer.add_expert_count(text["num_local_experts"])
        writer.add_expert_used_count(text["num_experts_per_tok"])


def add_gemma4(writer, text):
    layers, own = text["num_hidden_layers"], next(iter(text["per_layer_config"].values()))
    slides = [kind == "sliding_attention" for kind in text["layer_types"]]
    rope = text["rope_parameters"]
    writer.add_sliding_window(text["sliding_window"])
    writer.add_sliding_window_pattern(slides)
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_shared_kv_layers(text["num_kv_shared_layers"])
    writer.add_embedding_length_per_layer_input(text["hidden_size_per_layer_input"])
    writer.add_head_count_kv([text["num_key_value_heads"] if one else own.get("num_key_value_heads", text["num_key_value_heads"]) for one in slides])
    first = layers - text["num_kv_shared_layers"] if text["use_double_wide_mlp"] else layers
    writer.add_feed_forward_length([text["intermediate_size"] * (1 + (layer >= first)) for layer in range(layers)])
    pairs = own["head_dim"] // 2
    rotated = int(pairs * rope["full_attention"]["partial_rotary_factor"])
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * rotated + [1e30] * (pairs - rotated), np.float32))


def expert_parts(name, tensor, transposed):
    """Returns GGUF's names and tensors for a stack of experts. transposed: matrices are stored as [inputs, outputs]."""
    rows = tensor.swapaxes(1, 2) if transposed else tensor
    if name.endswith("down_proj"):
        return [("ffn_down_exps", rows)]
    return [(f"ffn_{part}_exps", half) for part, half in zip(("gate", "up"), np.split(rows, 2, 1))]


def stack_experts(tensors):
    """Returns the tensors, with one stack for the same matrices of all experts."""
    stacks = {}
    for name, tensor in tensors.items():
        stacks.setdefault(re.sub(r"\.experts\.\d+\.", ".experts.", name), []).append(tensor)
    return {name: np.stack(parts) if ".experts." in name and name.endswith(".weight") else parts[0] for name, parts in stacks.items()}


def write_text(folder, path, arch, config, tensors):
    text = config["text_config"]
    enums = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(enums[arch], text["num_hidden_layers"])
    writer = gguf.GGUFWriter(str(path), arch)
    add_text_metadata(writer, arch, text)
    add_tokenizer(writer, folder, text["vocab_size"])
    tied = config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
    for name, tensor in stack_experts(tensors).items():
        if is_vision(name) or (tied and name.endswith("lm_head.weight")):
            continue
        name = without_prefix(name, TEXT_PREFIXES)
        name = name if name.startswith("lm_head") else "model." + name
        if ".experts." in name and not name.endswith(".weight"):
            layer = name.split(".")[2]
            for new, part in expert_parts(name, tensor, tensor.shape[1] == text["hidden_size"] if "gate_up" in name else tensor.shape[2] == text["hidden_size"]):
                add(writer, f"blk.{layer}.{new}.weight", part, BF16)
            continue
        for part, field in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
            if arch in INTERLEAVED and f".{part}." in name:
                tensor = interleave(tensor, text[field])
            if arch == "glm4" and f".{part}." in name:
                tensor = halve(tensor, text[field], rotary_dim(arch, text["hidden_size"] // text["num_attention_heads"], text["rope_parameters"]))
        if name.endswith("conv.conv.weight"):
            tensor = tensor.reshape(tensor.shape[0], -1)
        name = name.replace("correction_bias", "correction.bias") + ".weight" * name.endswith("layer_scalar")
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new, name
        if arch == "gemma3" and new.endswith("norm.weight"):
            tensor = tensor + 1
        kind = F32 if new.endswith("ffn_gate_inp.weight") else BF16
        add(writer, new, tensor, kind)
    finish(writer)


def add_encoder_metadata(writer, kind, config, processor):
    vision, text = config["vision_config"], config["text_config"]
    first = lambda *names: next(vision[name] for name in names if name in vision)
    side = lambda value: value[0] if isinstance(value, list) else value
    patch = side(vision["patch_size"])
    grid = int(vision.get("num_position_embeddings", 0) ** 0.5)
    writer.add_clip_has_vision_encoder(True)
    (writer.add_clip_vision_projector_type if kind == "gemma4v" else writer.add_clip_projector_type)(kind)
    writer.add_vision_projection_dim(text["hidden_size"])
    writer.add_vision_image_size(side(vision.get("image_size", grid * patch or 560)))
    writer.add_vision_patch_size(patch)
    writer.add_vision_embedding_length(vision.get("embed_dim", vision["hidden_size"]))
    writer.add_vision_feed_forward_length(vision.get("intermediate_size", 0))
    writer.add_vision_block_count(first("num_hidden_layers", "depth") - (kind == "mlp"))
    writer.add_vision_head_count(first("num_attention_heads", "num_heads"))
    writer.add_vision_attention_layernorm_eps(vision.get("layer_norm_eps") or vision.get("norm_eps") or 1e-6)
    half = [0.5, 0.5, 0.5]  # Llama 4's default
    writer.add_vision_image_mean(processor.get("image_mean", half))
    writer.add_vision_image_std(processor.get("image_std", half))
    silu = vision.get("hidden_act") == "silu"
    if silu or vision.get("hidden_act") != "quick_gelu":
        (writer.add_vision_use_silu if silu else writer.add_vision_use_gelu)(True)
    if kind == "gemma3":
        writer.add_vision_projector_scale_factor(vision["image_size"] // patch // int(config["mm_tokens_per_image"] ** 0.5))
    if kind == "gemma4v":
        writer.add_vision_projector_scale_factor(vision["pooling_kernel_size"])
    if kind == "idefics3":
        writer.add_vision_projector_scale_factor(config["scale_factor"])
        writer.add_vision_preproc_image_size(processor["size"]["longest_edge"])
    if kind == "internvl":
        writer.add_vision_projector_scale_factor(int(1 / config["downsample_ratio"]))
        writer.add_uint32("clip.vision.preproc_min_tiles", processor["min_patches"])
        writer.add_uint32("clip.vision.preproc_max_tiles", processor["max_patches"])
    if kind == "lfm2":
        writer.add_vision_projector_scale_factor(config["downsample_factor"])
    if kind == "llama4":
        writer.add_vision_projector_scale_factor(int(1 / vision["pixel_shuffle_ratio"]))
    if kind in ("pixtral", "lightonocr") and "spatial_merge_size" in config:
        writer.add_vision_spatial_merge_size(config["spatial_merge_size"])
    if kind.startswith("qwen"):
        writer.add_vision_spatial_merge_size(vision["spatial_merge_size"])
        writer.add_uint32("clip.vision.image_min_pixels", processor["size"]["shortest_edge"])
        writer.add_uint32("clip.vision.image_max_pixels", processor["size"]["longest_edge"])
    if kind == "qwen2.5vl_merger":
        writer.add_vision_n_wa_pattern(vision["fullatt_block_indexes"][0] + 1)
        writer.add_uint32("clip.vision.window_size", vision["window_size"])
    if kind == "qwen3vl_merger":
        deep = vision["deepstack_visual_indexes"]
        writer.add_vision_is_deepstack_layers([layer in deep for layer in range(vision["depth"])])


def encoder_name(name, kind, config):
    """Returns GGUF's name without the suffix; "" for a tensor that the file lacks."""
    for layers in LAYERS:
        if name.startswith(layers):
            layer, part = name[len(layers):].split(".", 1)
            last = config["vision_config"].get("num_hidden_layers", 0) + (config.get("vision_feature_layer", -1) if kind == "mlp" else 0)
            return "" if kind == "mlp" and int(layer) > last else f"v.blk.{layer}.{OWN.get(kind, {}).get(part) or LAYER[part]}"
    if name.startswith("deepstack_merger_list."):
        _, index, part = name.split(".")
        layer = config["vision_config"]["deepstack_visual_indexes"][int(index)]
        return f"v.deepstack.{layer}.{part.replace('linear_', '')}"
    if name.startswith("head.") or (kind == "mlp" and name == "post_layernorm"):
        return ""
    return OWN.get(kind, {}).get(name) or OUTER[name]


def encoder_tensors(name, tensor, kind, vision):
    """Returns GGUF's names and tensors. `name` has the suffix."""
    heads = vision.get("num_attention_heads") or vision.get("num_heads")
    if kind == "mlp" and ".ffn_" in name:  # exchanged names, as in the files of LLaVA's time
        name = name.replace("ffn_up", "ffn_DOWN").replace("ffn_down", "ffn_up").replace("ffn_DOWN", "ffn_down")
    if kind in ("pixtral", "lightonocr") and (".attn_q." in name or ".attn_k." in name):
        tensor = interleave(tensor, heads)
    if name == "mm.soft_emb_norm.weight":
        tensor = tensor + 1
    if kind in ("gemma4v", "lfm2") and name == "v.patch_embd.weight":
        side = vision["patch_size"]
        tensor = tensor.reshape(-1, side, side, 3).transpose(0, 3, 1, 2)
    if ".attn_qkv." in name and kind in ("qwen2vl_merger", "qwen2.5vl_merger"):
        return [(name.replace("qkv", part), rows) for part, rows in zip("qkv", np.split(tensor, 3))]
    if name == "v.patch_embd.weight" and tensor.ndim == 5:
        return [(name, tensor[:, :, 0]), (name + ".1", tensor[:, :, 1])]
    return [(name, tensor)]


def write_encoder(path, kind, config, processor, tensors, matrices):
    writer = gguf.GGUFWriter(str(path), "clip")
    add_encoder_metadata(writer, kind, config, processor)
    for full, tensor in tensors.items():
        if not is_vision(full):
            continue
        stem, suffix = next(((full[:-len(end)], end) for end in SUFFIXES if full.endswith(end)), (full, ".weight"))
        stem = stem.removesuffix(".linear") if kind == "gemma4v" else stem
        stem = stem if any(part in stem for part in ("connector", "embed_vision")) else without_prefix(stem, PREFIXES)
        new = encoder_name(stem, kind, config)
        if not new:
            continue
        suffix = "" if new in ("v.class_embd", "v.std_bias", "v.std_scale") else suffix
        tensor = tensor.reshape(1) if tensor.ndim == 0 else tensor
        for name, part in encoder_tensors(new + suffix, tensor, kind, config["vision_config"]):
            if kind == "llama4" and matrices == Q8_0:  # as in files since Gemma 4
                name = name.replace(".ln2.", ".attn_post_norm.")
            plain = name.startswith(("v.position_embd", "v.class_embd")) or (name.startswith(("v.patch_embd", "mm.patch_merger")) and matrices != F16)
            add(writer, name, part, F32 if plain else matrices)
    finish(writer)


def make(source, out, case):
    arch, kind, matrices = CASES[case]
    folder, directory = source / case.removesuffix("-q8_0"), out / case
    config = json.loads((folder / "config.json").read_text())
    processor = next(folder / f"{name}_config.json" for name in ("preprocessor", "processor") if (folder / f"{name}_config.json").exists())
    processor = json.loads(processor.read_text())
    processor = processor.get("image_processor", processor)
    tensors = read_tensors(folder / "model.safetensors")
    directory.mkdir(parents=True, exist_ok=True)
    write_text(folder, directory / "model.gguf", arch, config, tensors)
    write_encoder(directory / "mmproj.gguf", kind, config, processor, tensors, matrices)


if __name__ == "__main__":
    for case in sys.argv[3:] or CASES:
        make(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), case)
