"""Writes transformers models as GGUF files, like llama.cpp's conversion: names, orders of rows, metadata.

Needs torch, transformers, gguf (from llama.cpp's sources: PyPI's 0.19 has no deepseek32) and, for the K formats,
llama-cpp-python.
"""
import ctypes
import json
import math
import pathlib
import re

import gguf
import numpy as np
import torch

import gguf_blocks

ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2",
                 "Qwen3ForCausalLM": "qwen3", "GemmaForCausalLM": "gemma", "Gemma2ForCausalLM": "gemma2",
                 "Gemma3ForCausalLM": "gemma3", "Phi3ForCausalLM": "phi3", "Olmo2ForCausalLM": "olmo2",
                 "GraniteForCausalLM": "granite", "GlmForCausalLM": "chatglm", "Glm4ForCausalLM": "glm4",
                 "StableLmForCausalLM": "stablelm", "GPTNeoXForCausalLM": "gptneox", "GPT2LMHeadModel": "gpt2",
                 "ArceeForCausalLM": "arcee", "BloomForCausalLM": "bloom", "Cohere2ForCausalLM": "cohere2",
                 "CohereForCausalLM": "command-r", "Ernie4_5ForCausalLM": "ernie4_5", "Exaone4ForCausalLM": "exaone4",
                 "FalconForCausalLM": "falcon", "GPTBigCodeForCausalLM": "starcoder", "HunYuanDenseV1ForCausalLM": "hunyuan-dense",
                 "Lfm2ForCausalLM": "lfm2", "MptForCausalLM": "mpt", "NemotronForCausalLM": "nemotron", "OlmoForCausalLM": "olmo",
                 "Olmo3ForCausalLM": "olmo2", "PhiForCausalLM": "phi2", "SeedOssForCausalLM": "seed_oss",
                 "SmolLM3ForCausalLM": "smollm3", "Starcoder2ForCausalLM": "starcoder2",
                 "Dots1ForCausalLM": "dots1", "Ernie4_5_MoeForCausalLM": "ernie4_5-moe", "Glm4MoeForCausalLM": "glm4moe",
                 "DeepseekV4ForCausalLM": "deepseek4", "GptOssForCausalLM": "gpt-oss", "GraniteMoeSharedForCausalLM": "granitemoe", "HunYuanMoEV1ForCausalLM": "hunyuan-moe",
                 "Lfm2MoeForCausalLM": "lfm2moe", "MiniMaxM2ForCausalLM": "minimax-m2", "MixtralForCausalLM": "llama",
                 "OlmoeForCausalLM": "olmoe", "Qwen2MoeForCausalLM": "qwen2moe", "Qwen3MoeForCausalLM": "qwen3moe",
                 "DeepseekV2ForCausalLM": "deepseek2", "DeepseekV3ForCausalLM": "deepseek2", "Qwen3NextForCausalLM": "qwen3next",
                 "Llama4ForCausalLM": "llama4", "PhimoeForCausalLM": "phimoe", "FalconH1ForCausalLM": "falcon-h1", "GraniteMoeHybridForCausalLM": "granitehybrid", "JambaForCausalLM": "jamba",
                 "MambaForCausalLM": "mamba", "FalconMambaForCausalLM": "mamba", "Mamba2ForCausalLM": "mamba2", "NemotronHForCausalLM": "nemotron_h",
                 "Ministral3ForCausalLM": "mistral3", "Gemma3nForCausalLM": "gemma3n", "Gemma4ForCausalLM": "gemma4",
                 "Mistral4ForCausalLM": "mistral4", "ExaoneMoeForCausalLM": "exaone-moe", "RWKV7ForCausalLM": "rwkv7", "GlmMoeDsaForCausalLM": "glm-dsa", "DeepseekV32ForCausalLM": "deepseek32", "AfmoeForCausalLM": "afmoe", "Qwen3_5ForCausalLM": "qwen35", "Qwen3_5MoeForCausalLM": "qwen35moe",
                 "ApertusForCausalLM": "apertus", "Cohere2MoeForCausalLM": "cohere2moe", "GraniteMoeSWAForCausalLM": "granite_swa", "GraniteSWAForCausalLM": "granite_swa",
                 "HYV3ForCausalLM": "hy_v3", "Jais2ForCausalLM": "jais2", "KimiLinearForCausalLM": "kimi-linear", "MellumForCausalLM": "mellum", "MiniCPM3ForCausalLM": "minicpm3",
                 "MiniMaxForCausalLM": "minimax-01", "DbrxForCausalLM": "dbrx", "DeciLMForCausalLM": "deci", "MiMoV2FlashForCausalLM": "mimo2", "Step3p5ForCausalLM": "step35"}
INTERLEAVED = ("arcee", "bailingmoe", "deci", "deepseek", "granite", "granite_swa", "granitehybrid", "granitemoe", "llama", "minicpm", "mistral3", "olmo", "smollm3", "xverse")
# Architectures without a gate of the shared experts. The networks of transformers that replace them have
# one.
NO_SHARED_GATES = ("bailingmoe", "deepseek")
# Architectures with tensors of the same names, for those that the package gguf does not know completely.
NAMES_LIKE = ("bailingmoe2", "gpt-oss", "kimi-linear", "deepseek2")
LATENT = ("deepseek2", "deepseek32", "kimi-linear", "minicpm3", "mistral4", "glm-dsa")
PLAIN = ("hc_attn_", "hc_ffn_", "output_hc_", "_compressor_ape", "_compressor_norm")
NOT_STORED = (".act_fn.", "slope_rate", "query_decay", "key_decay", "diagonal_decay")
RWKV7_PLAIN = ("time_mix_w1", "time_mix_w2", "time_mix_lerp_fused", "time_mix_r_k")
SIGMOID_ROUTERS = ("afmoe", "bailingmoe2", "cohere2moe", "dots1", "exaone-moe", "glm4moe", "hy_v3", "kimi-linear", "lfm2moe", "mimo2", "minimax-m2", "step35")
FUSED_QKV = ("bailingmoe2", "plamo3")


def arch_of(model):
    """Returns the architecture of the model's class, or the one that it replaces: `stands_for` of its
    configuration."""
    arch = getattr(model.config, "stands_for", None) or ARCHITECTURES[type(model).__name__]
    return "nemotron_h_moe" if arch == "nemotron_h" and "moe" in model.config.layers_block_type else arch


class Open(torch.nn.Module):
    """Replaces the gate of a shared expert: the expert always counts in full."""

    def forward(self, x):
        return torch.full(x.shape[:-1] + (1,), 1e4, dtype=x.dtype)


def stand_for(model, arch):
    """Marks a transformers network as a replacement for one that transformers lacks and that computes the same."""
    model.config.stands_for = arch
    for module in model.modules() if arch in NO_SHARED_GATES else ():
        if hasattr(module, "shared_expert_gate"):
            module.shared_expert_gate = Open()


class TensorNames:
    """GGUF's names of transformers' tensors."""

    def __init__(self, arch, layers):
        enums = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
        self.maps = [gguf.get_tensor_name_map(enums[name], layers) for name in (arch, *NAMES_LIKE) if name in enums]

    def get_name(self, name, try_suffixes):
        return next(found for names in self.maps if (found := names.get_name(name, try_suffixes=try_suffixes)))


def interleave(tensor, heads):
    """Reorders rows from halves, as transformers rotates them, to pairs."""
    return tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


def halves(tensor, heads):
    return tensor.reshape(heads, tensor.shape[0] // heads // 2, 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


def by_kind(tensor, heads):
    return np.concatenate(list(tensor.reshape(heads, 3, -1, *tensor.shape[1:]).swapaxes(0, 1))).reshape(tensor.shape)


def by_head(tensor, heads):
    return tensor.reshape(3, heads, -1, *tensor.shape[1:]).swapaxes(0, 1).reshape(tensor.shape)


def by_kind_in_groups(tensor, heads, groups):
    each = heads // groups
    parts = tensor.reshape(groups, each + 2, -1, *tensor.shape[1:])
    return np.concatenate([parts[:, :each].reshape(-1, *tensor.shape[1:]), parts[:, each].reshape(-1, *tensor.shape[1:]),
                           parts[:, each + 1].reshape(-1, *tensor.shape[1:])])


def by_group(tensor, heads, groups):
    each, dim = heads // groups, tensor.shape[0] // (heads + 2 * groups)
    q, k, v = np.split(tensor, [heads * dim, (heads + groups) * dim])
    parts = [np.concatenate([q[g * each * dim:(g + 1) * each * dim], k[g * dim:(g + 1) * dim], v[g * dim:(g + 1) * dim]]) for g in range(groups)]
    return np.concatenate(parts)


def tiled(tensor, axis, keys, values, dim):
    """Reorders value heads that are grouped by key head, so that those of different key heads alternate."""
    shape = tensor.shape[:axis] + (keys, values // keys, dim) + tensor.shape[axis + 1:]
    return tensor.reshape(shape).swapaxes(axis, axis + 1).reshape(tensor.shape)


def untiled(tensor, axis, keys, values, dim):
    return tiled(tensor, axis, values // keys, values, dim)


def delta_transform(name, config):
    """Returns the functions of transform() for a gated delta net. Qwen3.5's value heads alternate, Qwen3-Next's do not."""
    keys, values, dim = config.linear_num_key_heads, config.linear_num_value_heads, config.linear_value_head_dim
    there, back = (tiled, untiled) if config.model_type.startswith("qwen3_5") else (lambda t, *_: t, lambda t, *_: t)
    first = 2 * keys * config.linear_key_head_dim
    end_of = lambda turn: lambda t: np.concatenate([t[:first], turn(t[first:], 0, keys, values, dim)])
    if name.endswith("in_proj_qkv.weight"):
        return end_of(there), end_of(back)
    if name.endswith("conv1d.weight"):
        return (lambda t: end_of(there)(t[:, 0])), (lambda t: end_of(back)(t)[:, None])
    if name.endswith("A_log"):
        return (lambda t: there(-np.exp(t), 0, keys, values, 1)), (lambda t: back(np.log(-t), 0, keys, values, 1))
    axis, size = (1, dim) if name.endswith("out_proj.weight") else (0, dim if name.endswith("in_proj_z.weight") else 1)
    if name.endswith(("out_proj.weight", "in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight", "dt_bias")):
        return (lambda t: there(t, axis, keys, values, size)), (lambda t: back(t, axis, keys, values, size))
    return (lambda t: t), (lambda t: t)


def falcon_h1_factor(name, config):
    """Returns the factor by which the conversion multiplies a matrix of Falcon-H1: a number, or one for each row."""
    if "mamba.in_proj" in name:
        states = config.mamba_n_groups * config.mamba_d_state
        sizes = [config.mamba_d_ssm] * 2 + [states] * 2 + [config.mamba_n_heads]
        return config.ssm_in_multiplier * np.repeat(np.array(config.ssm_multipliers, np.float32), sizes)[:, None]
    factors = {"down_proj": config.mlp_multipliers[1], "gate_proj": config.mlp_multipliers[0], "q_proj": config.attention_in_multiplier,
               "k_proj": config.key_multiplier * config.attention_in_multiplier, "v_proj": config.attention_in_multiplier,
               "o_proj": config.attention_out_multiplier, "mamba.out_proj": config.ssm_out_multiplier, "lm_head": config.lm_head_multiplier,
               "embed_tokens": config.embedding_multiplier}
    return next((factor for part, factor in factors.items() if part in name), 1)


def mamba_transform(name, config):
    """Returns the functions of transform() for a Mamba mixer. Rates replace their logarithms. Mamba2's values of heads are
    columns, and its norms have one row for each group."""
    second = hasattr(config, "n_groups") or hasattr(config, "mamba_n_groups")
    column = (lambda t: t.reshape(-1, 1)) if second else (lambda t: t)
    if name.endswith("A_log"):
        return (lambda t: column(-np.exp(t))), (lambda t: np.log(-t))
    if name.endswith(".D"):
        return column, (lambda t: t)
    if name.endswith("conv1d.weight"):
        return (lambda t: t[:, 0]), (lambda t: t[:, None])
    groups = getattr(config, "n_groups", None) or getattr(config, "mamba_n_groups", None)
    return (lambda t: t.reshape(groups, -1)), (lambda t: t)


def transform(name, config, arch):
    """Returns (there, back) for a tensor with this name in transformers."""
    kind, heads = config.model_type, getattr(config, "num_attention_heads", 0)
    if arch == "kimi-linear":
        if name.endswith("A_log"):
            return (lambda t: -np.exp(t)), (lambda t: np.log(-t))
        return (lambda t: t), (lambda t: t)
    if name.endswith(("A_log", ".D", "conv1d.weight", "mamba.norm.weight", "mixer.norm.weight")) and "linear_attn" not in name:
        return mamba_transform(name, config)
    if kind == "falcon_h1":
        factor = falcon_h1_factor(name, config)
        return (lambda t: t * factor), (lambda t: t / factor)
    if "linear_attn" in name:
        return delta_transform(name, config)
    if kind.startswith(("qwen3_next", "qwen3_5")) and name.endswith("norm.weight"):
        return (lambda t: t + 1), (lambda t: t - 1)
    if arch in INTERLEAVED and ("q_proj" in name or "k_proj" in name):
        n = heads if "q_proj" in name else layer_heads(arch, config)[1][int(name.split(".")[2])]
        return (lambda t: interleave(t, n)), (lambda t: halves(t, n))
    if kind.startswith("gemma") and not kind.startswith(("gemma3n", "gemma4")) and name.endswith("norm.weight"):
        return (lambda t: t + 1), (lambda t: t - 1)
    if arch == "plamo3" and name.endswith("embed_tokens.weight"):  # Gemma 3 multiplies its embeddings by this
        return (lambda t: t * config.hidden_size ** 0.5), (lambda t: t / config.hidden_size ** 0.5)
    if kind in ("nemotron", "step3p5") and name.endswith("norm.weight"):
        return (lambda t: t + 1), (lambda t: t - 1)
    if kind in ("gpt_neox", "bloom") and "query_key_value" in name:
        return (lambda t: by_kind(t, heads)), (lambda t: by_head(t, heads))
    if name.endswith("conv.conv.weight"):
        return (lambda t: t[:, 0]), (lambda t: t[:, None])
    if kind == "falcon" and config.new_decoder_architecture and "query_key_value" in name:
        return (lambda t: by_kind_in_groups(t, heads, config.num_kv_heads)), (lambda t: by_group(t, heads, config.num_kv_heads))
    if kind == "gpt2" and ".weight" in name and (".c_" in name):
        return np.transpose, np.transpose
    return (lambda t: t), (lambda t: t)


def layer_heads(arch, config):
    """Returns the numbers of heads and key heads of each layer."""
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    slides = [kind == "sliding_attention" for kind in getattr(config, "layer_types", None) or [None] * config.num_hidden_layers]
    if arch == "deci":
        groups = [None if block["attention"].get("no_op") else block["attention"]["n_heads_in_group"] for block in config.block_configs]
        return [heads if group else 0 for group in groups], [heads // group if group else 0 for group in groups]
    if arch == "mimo2":  # and those of a multi-token-prediction layer
        return [heads] * (len(slides) + 1), [2 * key_heads if one else key_heads for one in (*slides, True)]
    if arch == "step35":
        return [config.num_sliding_attention_heads if one else heads for one in slides], [key_heads] * len(slides)
    return [heads] * len(slides), [key_heads] * len(slides)


def full_heads(config):
    """Returns the size and number of heads of Gemma 4's full attention."""
    fields = config.to_dict()
    own = next(iter(fields["per_layer_config"].values()))
    return own["head_dim"], own.get("num_key_value_heads") or fields["num_key_value_heads"]


def add_rope(writer, arch, config):
    rope = dict(getattr(config, "rope_parameters", None) or {})
    if not rope:
        return
    if arch == "gemma4":
        dim, _ = full_heads(config)
        full, sliding = rope["full_attention"], rope["sliding_attention"]
        writer.add_rope_freq_base(full["rope_theta"])
        writer.add_rope_freq_base_swa(sliding["rope_theta"])
        writer.add_rope_dimension_count(dim)
        writer.add_rope_dimension_count_swa(config.to_dict()["head_dim"])
        turning = int(dim * full["partial_rotary_factor"] / 2)
        writer.add_tensor("rope_freqs.weight", np.array([1.0] * turning + [1e30] * (dim // 2 - turning), np.float32))
        return
    if arch == "deepseek4":
        rope = dict(rope["compress"], rope_theta=rope["main"]["rope_theta"])
    local = rope.get("sliding_attention")
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if local and (local["rope_theta"] != 10000 or arch == "mellum"):
        writer.add_rope_freq_base_swa(local["rope_theta"])
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    head_dim = getattr(config, "qk_rope_head_dim", None) or head_dim
    dims = head_dim if arch in (*LATENT, "deepseek4", "step35") else int(head_dim * rope.get("partial_rotary_factor", 1))
    writer.add_rope_dimension_count(dims)
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if arch in LATENT:
            writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
        if arch == "mistral3":
            writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        if arch in ("mistral3", "mistral4"):
            writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    elif kind == "llama3":
        dims = int(head_dim * rope.get("partial_rotary_factor", 1))
        wavelength = 2 * math.pi * rope["rope_theta"] ** (np.arange(0, dims, 2, dtype=np.float32) / dims)
        turns = rope["original_max_position_embeddings"] / wavelength
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        blend = (turns - low) / (high - low)
        factors = np.where(turns < low, rope["factor"], np.where(turns > high, 1, 1 / ((1 - blend) / rope["factor"] + blend)))
        if arch == "step35":
            factors = np.concatenate([factors, np.ones(head_dim // 2 - len(factors))])
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    elif kind == "longrope":
        original = rope["original_max_position_embeddings"]
        stretch = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(original)))
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))


def add_experts(writer, arch, experts, first):
    """first(names): returns the first of these fields that exists."""
    writer.add_expert_count(experts)
    writer.add_expert_used_count(first("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts"))
    if arch == "llama4":
        writer.add_expert_feed_forward_length(first("intermediate_size"))
        writer.add_interleave_moe_layer_step(first("interleave_moe_layer_step"))
    for add, fields in ((writer.add_expert_feed_forward_length, ("moe_intermediate_size",)),
                        (writer.add_expert_shared_count, ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") if arch != "hy_v3" else ()),
                        (writer.add_expert_shared_feed_forward_length, ("shared_expert_intermediate_size", "shared_intermediate_size") if arch not in NO_SHARED_GATES else ()),
                        (writer.add_leading_dense_block_count, ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index") if arch != "hy_v3" else ()),
                        (writer.add_expert_weights_scale, ("routed_scaling_factor",)),
                        (writer.add_expert_group_count, ("n_group", "num_expert_group")), (writer.add_expert_group_used_count, ("topk_group",))):
        if first(*fields) is not None:
            add(first(*fields))
    if arch in ("bailingmoe", "bailingmoe2", "cohere2moe", "dots1", "exaone-moe", "glm4moe", "nemotron_h_moe") or arch in LATENT and first("norm_topk_prob"):
        writer.add_expert_weights_norm(first("norm_topk_prob"))
    if arch == "afmoe":
        writer.add_expert_weights_norm(first("route_norm"))
        writer.add_expert_weights_scale(first("route_scale"))
    if arch == "step35":
        writer.add_expert_weights_norm(True)
        writer.add_expert_weights_scale(first("moe_router_scaling_factor"))
        writer.add_expert_shared_feed_forward_length(first("share_expert_dim"))
        writer.add_swiglu_clamp_exp(first("swiglu_limits"))
        writer.add_swiglu_clamp_shexp(first("swiglu_limits_shared"))
    if arch == "hy_v3":
        writer.add_expert_weights_norm(True)
        writer.add_expert_weights_scale(first("router_scaling_factor"))
        writer.add_expert_shared_feed_forward_length(first("moe_intermediate_size") * first("num_shared_experts"))
    if arch == "bailingmoe2":
        writer.add_expert_shared_feed_forward_length(first("moe_intermediate_size") * first("n_shared_experts"))
    if arch == "cohere2moe":
        writer.add_expert_feed_forward_length(first("intermediate_size"))
        writer.add_leading_dense_block_count(first("mlp_layer_types").count("dense"))
        writer.add_expert_shared_feed_forward_length(first("intermediate_size") * first("num_shared_experts"))
    if arch in NO_SHARED_GATES:
        writer.add_expert_shared_count(first("shared_expert_intermediate_size") // first("moe_intermediate_size"))
        writer.add_leading_dense_block_count(len(first("mlp_only_layers")))
    if arch == "ernie4_5-moe":
        writer.add_interleave_moe_layer_step(first("moe_layer_interval"))
    if arch in SIGMOID_ROUTERS or first("model_type") in ("deepseek_v3", "deepseek_v32", "glm_moe_dsa"):
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def add_latents(writer, config):
    if config.q_lora_rank:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.model_type in ("glm_moe_dsa", "deepseek_v32"):
        writer.add_indexer_head_count(config.index_n_heads)
        writer.add_indexer_key_length(config.index_head_dim)
        writer.add_indexer_top_k(config.index_topk)
    q_dim = config.qk_nope_head_dim + config.qk_rope_head_dim
    if whole_latents(config):
        writer.add_head_count_kv(config.num_attention_heads)
        writer.add_key_length(q_dim)
        if config.model_type != "minicpm3":
            writer.add_value_length(config.v_head_dim)
        return
    if config.model_type == "kimi_linear":
        writer.add_head_count_kv([int(kind == "full_attention") for kind in config.layer_types])
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_kda_head_dim(config.linear_head_dim)
        writer.add_rope_dimension_count(config.qk_rope_head_dim)
    else:
        writer.add_head_count_kv(1)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(q_dim)
    writer.add_value_length_mla(config.v_head_dim)


def add_deepseek4(writer, arch, config):
    writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_indexer_head_count(config.index_n_heads)
    writer.add_indexer_key_length(config.index_head_dim)
    writer.add_indexer_top_k(config.index_topk)
    rates = {"sliding_attention": 0, **config.compress_rates}
    writer.add_array(f"{arch}.attention.compress_ratios", [rates[kind] for kind in config.layer_types])
    writer.add_array(f"{arch}.swiglu_clamp_exp", [config.swiglu_limit] * config.num_hidden_layers)
    for key, number in (("attention.output_lora_rank", config.o_lora_rank), ("attention.output_group_count", config.o_groups),
                        ("hash_layer_count", config.mlp_layer_types.count("hash_moe")), ("expert_gating_func", 4), ("nextn_predict_layers", 1),
                        ("hyper_connection.count", config.hc_mult), ("hyper_connection.sinkhorn_iterations", config.hc_sinkhorn_iters)):
        writer.add_uint32(f"{arch}.{key}", number)
    writer.add_float32(f"{arch}.hyper_connection.epsilon", config.hc_eps)
    writer.add_float32(f"{arch}.attention.compress_rope_freq_base", config.compress_rope_theta)


def add_delta_nets(writer, arch, config):
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
    recurrent = [kind == "linear_attention" for kind in config.layer_types]
    if arch == "qwen35moe":
        writer.add_full_attention_interval(recurrent.index(False) + 1)
    else:
        writer.add_array(f"{arch}.attention.recurrent_layers", recurrent)


HYBRIDS = ("falcon-h1", "granitehybrid", "jamba", "mamba", "mamba2", "nemotron_h", "nemotron_h_moe")


def add_mamba(writer, arch, config):
    c = config.to_dict()
    first = lambda *names: next((c[n] for n in names if c.get(n) is not None), None)
    heads = first("mamba_n_heads", "mamba_num_heads", "num_heads")
    inner = first("mamba_d_ssm") or (heads * c["mamba_head_dim"] if arch.startswith("nemotron") else first("mamba_expand", "expand") * config.hidden_size)
    writer.add_ssm_conv_kernel(first("mamba_d_conv", "conv_kernel"))
    writer.add_ssm_state_size(first("mamba_d_state", "ssm_state_size", "state_size"))
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_time_step_rank(heads or first("mamba_dt_rank", "time_step_rank"))
    if heads:
        writer.add_ssm_group_count(first("mamba_n_groups", "n_groups"))
    if arch == "mamba":
        writer.add_ssm_dt_b_c_rms(config.model_type == "falcon_mamba")
    kinds = first("layer_types", "layers_block_type") or getattr(config, "layers_block_type", [])
    attention = [i for i, kind in enumerate(kinds) if kind in ("attention", "full_attention")]
    if arch == "granitehybrid":
        writer.add_rope_scaling_finetuned(config.position_embedding_type == "rope")
    if arch in ("granitehybrid", "jamba") or arch.startswith("nemotron"):
        writer.add_head_count_kv([config.num_key_value_heads * (i in attention) for i in range(config.num_hidden_layers)])
    elif arch == "falcon-h1":
        writer.add_head_count_kv(config.num_key_value_heads)
    if arch.startswith("nemotron"):
        width = first("moe_intermediate_size" if arch.endswith("moe") else "intermediate_size")
        writer.add_feed_forward_length([width * (kind in ("mlp", "moe")) for kind in kinds])
        if arch.endswith("moe"):
            writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
    if not first("rms_norm_eps"):
        writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)


def add_layer_inputs(writer, arch, config):
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    layers, slides = config.num_hidden_layers, [kind == "sliding_attention" for kind in config.layer_types]
    if arch == "gemma3n":
        writer.add_altup_active_idx(config.altup_active_idx)
        writer.add_altup_num_inputs(config.altup_num_inputs)
        shares = torch.tensor(config.activation_sparsity_pattern, dtype=torch.float32)
        writer.add_activation_sparsity_scale(torch.distributions.Normal(0.0, 1.0).icdf(shares).tolist())
        return
    fields, (dim, kv_heads) = config.to_dict(), full_heads(config)
    writer.add_key_length(dim)
    writer.add_value_length(dim)
    writer.add_key_length_swa(fields["head_dim"])
    writer.add_value_length_swa(fields["head_dim"])
    writer.add_head_count_kv([fields["num_key_value_heads"] if one else kv_heads for one in slides])
    if config.use_double_wide_mlp:
        first = layers - config.num_kv_shared_layers
        writer.add_feed_forward_length([fields["intermediate_size"] * (1 + (i >= first)) for i in range(layers)])


def add_dbrx(writer, config):
    writer.add_block_count(config.n_layers)
    writer.add_context_length(config.max_seq_len)
    writer.add_embedding_length(config.d_model)
    writer.add_feed_forward_length(config.ffn_config.ffn_hidden_size)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.attn_config.kv_n_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_clamp_kqv(config.attn_config.clip_qkv)
    writer.add_expert_count(config.ffn_config.moe_num_experts)
    writer.add_expert_used_count(config.ffn_config.moe_top_k)
    writer.add_layer_norm_eps(1e-5)


def deci_widths(config):
    """Returns the width of each layer's MLP."""
    rounded = lambda multiple: -(-int(2 * multiple * config.hidden_size / 3) // 256) * 256
    return [0 if block["ffn"].get("no_op") else rounded(block["ffn"]["ffn_mult"]) for block in config.block_configs]


def add_rwkv7(writer, config):
    writer.add_context_length(1048576)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_layer_norm_eps(config.norm_eps)
    writer.add_wkv_head_size(config.head_dim)
    writer.add_decay_lora_rank(config.decay_low_rank_dim)
    writer.add_iclr_lora_rank(config.a_low_rank_dim)
    writer.add_value_residual_mix_lora_rank(config.v_low_rank_dim)
    writer.add_gate_lora_rank(config.gate_low_rank_dim)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(0)


def rwkv7_name(names, name):
    """Renames flash-linear-attention's tensors as the conversion does before it looks them up."""
    for ours, theirs in (("ffn", "feed_forward"), ("attn", "attention"), ("_lora.lora.0.weight", "1.weight"), ("_lora.lora.2.weight", "2.weight"),
                         ("_lora.lora.2.bias", "0.weight"), ("feed_forward_norm", "ln2"), ("g_norm", "ln_x")):
        name = name.replace(ours, theirs)
    if name.endswith("attention.x_x"):
        return f"blk.{name.split('.')[2]}.time_mix_lerp_fused.weight"
    name = names.get_name(name, try_suffixes=(".weight", ".bias"))
    return name if name.endswith((".weight", ".bias")) else name + ".weight"


def add_metadata(writer, arch, config):
    if arch in ("dbrx", "rwkv7"):
        return {"dbrx": add_dbrx, "rwkv7": add_rwkv7}[arch](writer, config)
    c = config.to_dict()
    first = lambda *names: next((c[n] for n in names if c.get(n) is not None), None)
    writer.add_context_length(first("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length") or 128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers + (arch == "mimo2"))
    if not arch.startswith("nemotron_h") and not c.get("use_double_wide_mlp"):
        writer.add_feed_forward_length(deci_widths(config) if arch == "deci" else first("intermediate_size_mlp", "prefix_dense_intermediate_size", "intermediate_size", "n_inner", "ffn_hidden_size") or 4 * config.hidden_size)
    listed = arch in ("deci", "mimo2", "step35")
    writer.add_head_count(layer_heads(arch, config)[0] if listed else first("num_attention_heads") or 0)
    one = arch in ("falcon", "starcoder") and c["multi_query"] and not c.get("new_decoder_architecture")
    kv_heads = 1 if one else first("num_key_value_heads", "num_kv_heads", "num_attention_heads")
    if listed:
        writer.add_head_count_kv(layer_heads(arch, config)[1])
    elif arch.startswith("lfm2"):
        writer.add_head_count_kv([kv_heads if kind == "full_attention" else 0 for kind in config.layer_types])
        writer.add_shortconv_l_cache(config.conv_L_cache)
    elif arch in LATENT:
        add_latents(writer, config)
    elif arch in HYBRIDS:
        add_mamba(writer, arch, config)
    elif arch != "gemma4":
        writer.add_head_count_kv(kv_heads)
    if arch in ("gemma3n", "gemma4"):
        add_layer_inputs(writer, arch, config)
    if first("linear_num_key_heads"):
        add_delta_nets(writer, arch, config)
    if arch == "deepseek4":
        add_deepseek4(writer, arch, config)
    if arch == "minimax-01":
        writer.add_residual_scale(config.full_attn_alpha_factor)
        writer.add_array(f"{arch}.attention.recurrent_layers", [kind == "linear_attention" for kind in config.layer_types])
    if arch == "granite_swa":
        if first("layer_rope_theta"):
            writer.add_array(f"{arch}.attention.rope_pattern", [theta != 0 for theta in config.layer_rope_theta])
    if arch in ("qwen2vl", "qwen3vl", "qwen3vlmoe"):
        writer.add_rope_dimension_sections([2, 1, 1, 0])
    if first("head_dim") and arch not in (*LATENT, "gemma4", "mamba2"):
        writer.add_key_length(first("head_dim"))
        writer.add_value_length(first("v_head_dim", "head_dim"))
    if first("attention_value_scale"):
        writer.add_float32(f"{arch}.attention.value_scale", config.attention_value_scale)
    if first("rms_norm_eps") or arch.startswith("lfm2"):
        writer.add_layer_norm_rms_eps(first("rms_norm_eps", "norm_eps"))
    epsilons = ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
    if not arch.startswith("lfm2") and arch not in HYBRIDS and (first(*epsilons) or arch == "olmo"):
        writer.add_layer_norm_eps(first(*epsilons) or 1e-5)
    if arch in ("gptneox", "stablelm"):
        writer.add_parallel_residual(config.use_parallel_residual)
    if first("sliding_window"):
        writer.add_sliding_window(first("sliding_window"))
    if arch == "plamo3":
        writer.add_sliding_window_pattern(c["layer_types"].index("full_attention") + 1)
    if arch.startswith(("cohere2moe", "gemma", "exaone", "granite_swa", "mellum", "mimo2", "olmo", "step35")) and "sliding_attention" in (first("layer_types") or []):
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]] + [True] * (arch == "mimo2"))
    if arch == "mimo2":
        writer.add_nextn_predict_layers(1)
        writer.add_tensor(f"blk.{config.num_hidden_layers}.nextn.eh_proj.weight", np.zeros((4, 4), np.float32))
    if first("attn_logit_softcapping"):
        writer.add_attn_logit_softcapping(first("attn_logit_softcapping"))
    if first("final_logit_softcapping"):
        writer.add_final_logit_softcapping(first("final_logit_softcapping"))
    if arch.startswith("granite"):
        writer.add_attention_scale(config.attention_multiplier)
    if arch.startswith("granite") or arch == "minicpm":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if arch == "nemotron_h":
        pass  # the configuration has experts nevertheless
    elif experts := first("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"):
        add_experts(writer, arch, experts, first)
    if arch in ("command-r", "cohere2", "cohere2moe"):
        writer.add_logit_scale(config.logit_scale)
    if arch == "mpt":
        writer.add_max_alibi_bias(config.attn_config.alibi_bias_max)
    add_rope(writer, arch, config)


def add_tokenizer(writer, size, directory, model, pre, bos=None):
    """Adds the tokenizer of a directory, padded to `size` tokens. model: "gpt2" (byte-level BPE) or "llama"
    (SentencePiece)."""
    directory = pathlib.Path(directory)
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    added = {t["id"]: t for t in tokenizer["added_tokens"]}
    vocab = {id: token for token, id in tokenizer["model"]["vocab"].items()}
    vocab.update({id: t["content"] for id, t in added.items()})
    vocab.update({id: f"[PAD{id}]" for id in range(len(vocab), size)})
    types = [gguf.TokenType.NORMAL] * len(tokenizer["model"]["vocab"])
    types += [gguf.TokenType.UNUSED] * (size - len(types))
    for id, token in added.items():
        types[id] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    if model == "gpt2":
        writer.add_token_merges(merges)
    else:
        for id, token in vocab.items():
            if token.startswith("<0x") and len(token) == 6:
                types[id] = gguf.TokenType.BYTE
        if tokenizer["model"]["unk_token"] is not None:
            unknown = tokenizer["model"]["vocab"][tokenizer["model"]["unk_token"]]
            types[unknown] = gguf.TokenType.UNKNOWN
            writer.add_unk_token_id(unknown)
        # The score of a merged token is the rank of its first merge.
        rank = {}
        for i, merge in enumerate(merges):
            rank.setdefault(merge.replace(" ", ""), i)
        writer.add_token_scores([-float(rank.get(vocab[id], len(merges))) for id in range(len(vocab))])
    writer.add_token_list([vocab[id] for id in range(len(vocab))])
    writer.add_token_types(types)
    ids = {token: id for id, token in vocab.items()}
    settings = directory / "tokenizer_config.json"
    settings = json.loads(settings.read_text()) if settings.exists() else {}
    for part, add in (("bos_token", writer.add_bos_token_id), ("eos_token", writer.add_eos_token_id),
                      ("pad_token", writer.add_pad_token_id)):
        if settings.get(part):
            add(ids[settings[part]])
    if settings.get("chat_template"):
        writer.add_chat_template(settings["chat_template"])
    if bos is not None:
        writer.add_bos_token_id(bos)
    if model == "llama":
        writer.add_add_space_prefix("Prepend" in json.dumps(tokenizer["normalizer"]))
    elif "add_bos_token" in settings or bos is None:
        writer.add_add_bos_token(settings.get("add_bos_token", False))


def whole_latents(config):
    """Returns whether latents are stored as in files of 2024."""
    return getattr(config, "n_shared_experts", 2) == 2


def key_head_parts(config):
    """Returns the rows of queries, keys, values and gates of each key head of a gated delta net."""
    values = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
    return [config.linear_key_head_dim] * 2 + [values] * 2


def delta_rows(tensor, config):
    """Reorders rows that are grouped by key head. Returns the rows of queries, keys and values, and the rows of gates."""
    ends = np.cumsum(key_head_parts(config))
    heads = np.split(tensor.reshape(config.linear_num_key_heads, ends[-1], -1), ends[:-1], 1)
    rows = [head.reshape(-1, tensor.shape[1]) for head in heads]
    return [np.concatenate(rows[:3]), rows[3]]


def delta_heads(parts, config):
    sizes = key_head_parts(config)
    rows = np.split(parts[0], np.cumsum(sizes[:2]) * config.linear_num_key_heads) + [parts[1]]
    heads = [row.reshape(config.linear_num_key_heads, size, -1) for row, size in zip(rows, sizes)]
    return np.concatenate(heads, 1).reshape(-1, parts[0].shape[1])


def pieces(name, config):
    """Returns the names of the tensors that one tensor of transformers becomes, and functions from and to their
    arrays."""
    one = ([name], lambda t: [t], lambda parts: parts[0])
    for scale, tensor in (("router.scale", "ffn_gate_inp.scale"), ("router.per_expert_scale", "ffn_down_exps.scale")):
        if name.endswith(scale):
            return [f"blk.{name.split('.')[2]}.{tensor}"], *one[1:]
    if config.model_type == "gemma4_text" and name.endswith("experts.gate_up_proj") or name.endswith(("layer_scalar", "correct_output_scale")):
        return [name + ".weight"], *one[1:]
    if name.endswith((".sinks", ".experts.down_proj", "mixer.experts.up_proj")):
        one = ([name + ".weight"], *one[1:])
    if ".experts.mlp." in name:  # DBRX: the units of an expert follow those of another; in the last matrix
                                 # they are columns
        units = lambda t: t.reshape(config.ffn_config.moe_num_experts, -1, t.shape[1])
        if name.endswith("w2"):
            return [name + ".weight"], lambda t: [units(t).swapaxes(1, 2)], lambda parts: parts[0].swapaxes(1, 2).reshape(-1, parts[0].shape[1])
        return [name + ".weight"], lambda t: [units(t)], lambda parts: parts[0].reshape(-1, parts[0].shape[2])
    if name.endswith(("e_score_correction_bias", "experts.down_proj_bias", "expert_bias")):
        name = name.replace("mlp.gate.moe_statics", "mlp.moe_statics").replace("mlp.e_score", "block_sparse_moe.e_score")
        stem = name if name.endswith("expert_bias") else name.removesuffix("_bias")
        return [stem + ".bias"], *one[1:]
    if config.model_type == "kimi_linear" and name.endswith("conv1d.weight"):
        return ([name.replace("conv1d", part + "_conv1d") for part in "qkv"],
                lambda t: [part.reshape(1, -1, 1, t.shape[2]) for part in np.split(t, 3)],
                lambda parts: np.concatenate([part.reshape(-1, 1, part.shape[-1]) for part in parts]))
    if config.model_type == "granitemoe_swa" and name.endswith("input_linear.weight"):
        return [name.replace("shared_mlp.input_linear", "mlp.shared_expert.up_proj")], *one[1:]
    if name.endswith("in_proj_qkvz.weight"):
        return ([name.replace("qkvz", part) for part in ("qkv", "z")], lambda t: delta_rows(t, config),
                lambda parts: delta_heads(parts, config))
    if name.endswith(("forget_gate.dt_bias", "linear_attn.dt_bias", "mamba.dt_bias", "mixer.dt_bias")):
        return [name.replace("dt_bias", "dt_proj.bias")], *one[1:]
    if name.endswith("kv_b_proj.weight") and not whole_latents(config):
        heads, rows = config.num_attention_heads, (config.qk_nope_head_dim, config.v_head_dim)
        keys_turned = lambda t: np.split(t.reshape(heads, sum(rows), -1), rows[:1], 1)
        return ([name.replace("kv_b", part) for part in ("k_b", "v_b")],
                lambda t: [keys_turned(t)[0].swapaxes(1, 2), keys_turned(t)[1]],
                lambda parts: np.concatenate([parts[0].swapaxes(1, 2), parts[1]], 1).reshape(heads * sum(rows), -1))
    if name.endswith("input_linear.weight"):
        stem = name.replace("shared_mlp.input_linear", "mlp.shared_expert.{}_proj" if experts_of(config) else "mlp.{}_proj")
        return [stem.format(part) for part in ("gate", "up")], lambda t: np.split(t, 2), np.concatenate
    if config.model_type == "llama4_text" and name.endswith(".experts.gate_up_proj"):
        return ([name.replace("gate_up_proj", part + "_proj.weight") for part in ("gate", "up")],
                lambda t: np.split(t.swapaxes(1, 2), 2, 1), lambda parts: np.concatenate(parts, 1).swapaxes(1, 2))
    if config.model_type in ("gpt_oss", "llama4_text") and name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        if name.endswith("down_proj"):
            return [name + ".weight"], lambda t: [t.swapaxes(1, 2)], lambda parts: parts[0].swapaxes(1, 2)
        return ([name.replace("gate_up_proj", part + "_proj.weight") for part in ("gate", "up")],
                lambda t: [t[..., i::2].swapaxes(1, 2) for i in range(2)],
                lambda parts: np.stack([p.swapaxes(1, 2) for p in parts], -1).reshape(*parts[0].swapaxes(1, 2).shape[:2], -1))
    if name.endswith("gate_up_proj_bias"):
        return ([name.replace("gate_up_proj_bias", part + "_proj.bias") for part in ("gate", "up")],
                lambda t: [t[..., i::2] for i in range(2)], lambda parts: np.stack(parts, -1).reshape(len(parts[0]), -1))
    if name.endswith(".experts.gate_up_proj"):
        return ([name.replace("gate_up_proj", part + "_proj.weight") for part in ("gate", "up")],
                lambda t: np.split(t, 2, 1), lambda parts: np.concatenate(parts, 1))
    return one


def experts_of(config):
    return getattr(config, "num_local_experts", 1)


# Names that the gguf package lacks, by architecture or by the one that it replaces: first of a layer's
# tensors, then of others.
OWN_NAMES = {
    "plamo3": {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"},
    "minimax": {"self_attn.qkv_proj": "attn_qkv", "self_attn.output_gate": "attn_gate", "self_attn.out_proj": "attn_output", "self_attn.norm": "attn_norm_2"},
    "deepseek_v4": {
        **{f"self_attn.{ours}": theirs for ours, theirs in (
            ("q_a_proj", "attn_q_a"), ("q_a_norm", "attn_q_a_norm"), ("q_b_proj", "attn_q_b"), ("kv_proj", "attn_kv"), ("kv_norm", "attn_kv_a_norm"),
            ("o_a_proj", "attn_output_a"), ("o_b_proj", "attn_output_b"), ("compressor.indexer.q_b_proj", "indexer.attn_q_b"),
            ("compressor.indexer.scorer.weights_proj", "indexer.proj"))},
        **{f"self_attn.{ours}.{part}": f"{theirs}_{name}" for ours, theirs in (("compressor", "attn_compressor"), ("compressor.indexer", "indexer_compressor"))
           for part, name in (("position_bias", "ape"), ("kv_proj", "kv"), ("gate_proj", "gate"), ("kv_norm", "norm"))},
        **{f"{half}_hc.{part}": f"hc_{half}_{part}" for half in ("attn", "ffn") for part in ("fn", "base", "scale")},
        **{f"model.hc_head.hc_{part}": f"output_hc_{part}" for part in ("fn", "base", "scale")},
        "mlp.gate.tid2eid": "ffn_gate_tid2eid"}}


def stored_name(names, name, config):
    if config.model_type == "rwkv7":
        return rwkv7_name(names, name)
    stem, layer = name.removesuffix(".weight"), re.match(r"model\.layers\.(\d+)\.", name)
    if found := OWN_NAMES.get(getattr(config, "stands_for", None) or config.model_type, {}).get(stem[layer.end():] if layer else stem):
        if config.model_type == "gemma3_text" and found.startswith("post_"):  # PLaMo's files omit the suffix
            return f"blk.{layer[1]}.{found}"
        return f"blk.{layer[1]}.{found}.weight" if layer else f"{found}.weight"
    if name.endswith(".scale"):
        return name
    name = name.replace("forget_gate.", "")
    if config.model_type == "bloom":
        name = name.removeprefix("transformer.")
    if config.model_type == "nemotron_h":
        name = name.replace("mixer.experts", "mlp.experts") if "mixer.experts" in name else name.replace("model.", "backbone.", 1)
    if not experts_of(config):
        name = name.replace("shared_mlp.output_linear", "mlp.down_proj")
    for ours, theirs in (("block_sparse_moe.experts", "mlp.experts"), ("block_sparse_moe.router", "mlp.gate"),
                         ("shared_mlp.output_linear", "mlp.shared_expert.down_proj"), ("feed_forward.experts", "mlp.experts")):
        name = name.replace(ours, theirs)
    return names.get_name(name, try_suffixes=(".weight", ".bias"))


def stacked(state, arch):
    """Returns the tensors with Gemma 3n's lists of matrices as one tensor each, and with others that files
    combine."""
    stacks = {}
    if arch in FUSED_QKV:
        for name in [name for name in state if name.endswith("q_proj.weight")]:
            parts = [state.pop(name.replace("q_proj", part + "_proj")) for part in "qkv"]
            state[name.replace("self_attn.q_proj", "attention.query_key_value")] = torch.cat(parts)
    if arch == "plamo3":
        for name in [name for name in state if name.endswith("gate_proj.weight")]:
            parts = [state.pop(name.replace("gate_proj", part + "_proj")) for part in ("gate", "up")]
            state[name.replace("gate_proj", "gate_up_proj")] = torch.cat(parts)
    for name in [name for name in state if "altup_" in name]:
        stem, number, _ = name.rsplit(".", 2)
        stacks.setdefault(stem + ".weight", {})[int(number)] = state.pop(name)
    for name in [name for name in state if ".attn.x_" in name]:  # for RWKV-7
        stacks.setdefault(name[:-1] + "x", {})["rwkvag".index(name[-1])] = state.pop(name)
    return dict(state, **{name: torch.stack([parts[i] for i in range(len(parts))]) for name, parts in stacks.items()})


def unstacked(state, config):
    for name in [name for name in state if name.endswith("attention.query_key_value.weight")]:
        rows = [heads * config.head_dim for heads in (config.num_attention_heads, *[config.num_key_value_heads] * 2)]
        for part, matrix in zip("qkv", state.pop(name).split(rows)):
            state[name.replace("attention.query_key_value", f"self_attn.{part}_proj")] = matrix
    if getattr(config, "stands_for", None) == "plamo3":
        for name in [name for name in state if name.endswith("gate_up_proj.weight")]:
            for part, matrix in zip(("gate", "up"), state.pop(name).chunk(2)):
                state[name.replace("gate_up_proj", part + "_proj")] = matrix
    for name in [name for name in state if "altup_" in name]:
        for i, matrix in enumerate(state.pop(name)):
            state[name.replace(".weight", f".{i}.weight")] = matrix
    for name in [name for name in state if ".attn.x_x" in name]:
        for letter, vector in zip("rwkvag", state.pop(name)):
            state[name[:-1] + letter] = vector
    return state


def add_nvfp4(writer, name, data):
    """Adds NVFP4 matrices with their scales, as the conversion of ModelOpt's checkpoints does."""
    scale = np.abs(data).max((-2, -1), keepdims=True) / gguf_blocks.NVFP4_MAX
    kind = gguf.GGMLQuantizationType.NVFP4
    writer.add_tensor(name, gguf_blocks.quantize(data / scale, kind), raw_dtype=kind)
    writer.add_tensor(name.replace(".weight", ".scale"), scale.reshape(-1))
    writer.add_tensor(name.replace(".weight", ".input_scale"), np.ones_like(scale).reshape(-1))


def numbers_of(stored, name):
    """Returns the numbers of a matrix or vector of a file."""
    data = np.array(gguf_blocks.dequantize(stored[name].data, stored[name].tensor_type), np.float32)
    if stored[name].tensor_type == gguf.GGMLQuantizationType.NVFP4:
        data *= stored[name.replace(".weight", ".scale")].data.reshape(-1, 1, 1)[slice(None) if data.ndim > 2 else 0]
    return data


def write(model, path, formats, tokenizer=None):
    """Writes the file. formats(name, tensor): returns gguf.GGMLQuantizationType of a matrix. tokenizer: arguments of
    add_tokenizer."""
    config = model.config
    arch = arch_of(model)
    writer = gguf.GGUFWriter(str(path), arch)
    names = TensorNames(arch, config.num_hidden_layers)
    add_metadata(writer, arch, config)
    if tokenizer:
        add_tokenizer(writer, config.vocab_size, *tokenizer)
    else:
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(config.vocab_size)
    if arch == "apertus":
        for kind, add in (("alpha_n", writer.add_xielu_alpha_n), ("alpha_p", writer.add_xielu_alpha_p), ("beta", writer.add_xielu_beta),
                          ("eps", writer.add_xielu_eps)):
            add([getattr(layer.mlp.act_fn, kind).float().item() for layer in model.model.layers])
    tied = config.tie_word_embeddings
    for name, tensor in stacked(model.state_dict(), arch).items():
        if tied and name == "lm_head.weight" or any(part in name for part in NOT_STORED):
            continue
        if name.endswith("tid2eid"):
            writer.add_tensor(stored_name(names, name, config), tensor.numpy().astype(np.int32))
            continue
        there, _ = transform(name, config, arch)
        parts, cut, _ = pieces(name, config)
        for part, data in zip(parts, cut(there(tensor.float().numpy()))):
            data, new = np.ascontiguousarray(data), stored_name(names, part, config)
            data = data.squeeze() if new.endswith(("gate_inp_shexp.weight", "exp_probs_b.bias")) else data
            matrix = data.ndim >= 2 and new.endswith(".weight") and not new.endswith(("_norm.weight", "gate_inp.weight", "_coef.weight")) and "conv" not in new.replace("shortconv.in", "").replace("shortconv.out", "")
            if ".time_mix_r_k" in new:
                data = data.reshape(-1)
            kind = formats(new, data) if matrix and not any(part in new for part in RWKV7_PLAIN + PLAIN) else gguf.GGMLQuantizationType.F32
            if kind == gguf.GGMLQuantizationType.NVFP4:
                add_nvfp4(writer, new, data)
            else:
                writer.add_tensor(new, gguf_blocks.quantize(data, kind), raw_dtype=kind)
            if new.startswith("blk.0.time_mix_a"):  # a tensor that nothing reads, but llama.cpp requires
                writer.add_tensor(new.replace("mix_a", "mix_v"), gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def requantize(source, target, kind):
    """Quantises with llama.cpp, to "Q4_K_M" and similar formats."""
    import llama_cpp
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = 2
    params.allow_requantize = True
    assert llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)) == 0


def load_back(model, path):
    """Sets the model's numbers to those of the file."""
    config, arch = model.config, arch_of(model)
    names = TensorNames(arch, config.num_hidden_layers)
    stored = {t.name: t for t in gguf.GGUFReader(str(path)).tensors}
    state = {}
    for name, tensor in stacked(model.state_dict(), arch).items():
        if any(part in name for part in (*NOT_STORED, "tid2eid")):
            continue
        parts, _, join = pieces(name, config)
        new = [stored_name(names, part, config) for part in parts]
        if new[0] not in stored:
            continue  # tied
        data = [numbers_of(stored, n) for n in new]
        _, back = transform(name, config, arch)
        state[name] = torch.from_numpy(np.ascontiguousarray(back(join(data)))).reshape(tensor.shape)
    model.load_state_dict(unstacked(state, config), strict=False)
    model.tie_weights()
