#!/usr/bin/env python3
"""Makes tests/data/models/: for each family small random checkpoints, and transformers' results with them.

Needs torch and transformers (made with 2.15 and 5.23; every version that knows the architectures gives the same
numbers, to single precision). Usage: make_model_goldens.py OUT_DIR [CASE ...]

A case is a directory with config.json, model.safetensors (or shards) and golden.safetensors:

    ids      I32 [n]         the prompt
    logits   F32 [n, vocab]  of every position, computed in f32 with the stored weights
    bf16_kl  F32 [n]         KL(f32 || transformers' bf16) at every position; absent if weights are not stored in bf16
    max_model_len I32 [1]    length for which the rotary embedding was scaled; absent if it makes no difference

Quantised cases are in ../quantized. Weights are stored in bf16, so that the f32 and the bf16 run use the same
numbers.
"""
import json
import os
import re
import shutil
import sys

import own_models
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "formats"))
import packers  # noqa: E402

VOCAB = 128
TOKENS = 40

BASE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)
SMALL = dict(BASE, hidden_size=48, intermediate_size=64, num_attention_heads=3, num_key_value_heads=1)

QWEN3_5_MOE = dict({name: value for name, value in SMALL.items() if name != "intermediate_size"}, head_dim=24, num_hidden_layers=4,
                   linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=32,
                   moe_intermediate_size=40, shared_expert_intermediate_size=56, num_experts=5, num_experts_per_tok=3)

ZAMBA2 = dict(vocab_size=VOCAB, hidden_size=40, intermediate_size=56, num_hidden_layers=4, layers_block_type=["mamba", "hybrid", "hybrid", "hybrid"],
              num_attention_heads=2, n_mamba_heads=5, mamba_d_state=24, adapter_rank=8, max_position_embeddings=256, chunk_size=16, pad_token_id=0,
              bos_token_id=1, eos_token_id=2)

RWKV7 = dict(vocab_size=VOCAB, decay_low_rank_dim=12, gate_low_rank_dim=20, a_low_rank_dim=9, v_low_rank_dim=16, hidden_act="sqrelu", norm_eps=1e-5,
             pad_token_id=0, bos_token_id=1, eos_token_id=2)

YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, rope_theta=10000.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=2.5,
              original_max_position_embeddings=64, rope_theta=10000.0)


def longrope(pairs, **more):
    return dict(rope_type="longrope", short_factor=[1 + 0.02 * i for i in range(pairs)],
                long_factor=[1.5 + 0.4 * i for i in range(pairs)], rope_theta=10000.0, **more)


def legacy(config):
    """Returns the configuration as transformers 4 wrote it."""
    rope = config.pop("rope_parameters", None)
    config["torch_dtype"] = config.pop("dtype", "bfloat16")
    config.pop("layer_types", None)
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    if rope is None:
        return config
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = 2
        rope = rope["full_attention"]
    rope = dict(rope)
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    kind = rope.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else dict(type=kind, **rope)
    return config


def legacy_gpt_neox(config):
    rope = config.pop("rope_parameters")
    config["rotary_emb_base"] = rope["rope_theta"]
    config["rotary_pct"] = rope["partial_rotary_factor"]
    return config


def nested(config):
    """Returns the configuration as in a multi-modal checkpoint."""
    inner = legacy(config)
    inner.pop("architectures")
    return dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", text_config=inner,
                torch_dtype=inner.pop("torch_dtype"), vision_config={})


def nested_qwen3_5(config):
    config.pop("architectures")
    config.pop("layer_types")
    return dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5", vision_config={},
                text_config=dict(config, full_attention_interval=3))


def nested_qwen3_5_tensors(tensors):
    tensors = {name.replace("model.", "model.language_model."): t for name, t in tensors.items()}
    return dict(tensors, **{"model.visual.blocks.0.norm1.weight": torch.zeros(4), "mtp.norm.weight": torch.zeros(4)})


def multimodal_tensors(tensors):
    tensors = {"language_model." + name: t for name, t in tensors.items()}
    tensors["vision_tower.embeddings.weight"] = torch.zeros(4, 4)
    tensors["multi_modal_projector.weight"] = torch.zeros(4, 4)
    return tensors


def decided_routers(model, generator):
    """Enlarges the routers' weights, so that bf16 rarely changes a selection of experts. Such a change would hide the
    arithmetic."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("mlp.gate.weight", "router.weight", "gate.wg.weight")):
                p.mul_(4)


def biased_routers(model, generator):
    """Sets biases that decide most selections of experts, because sigmoids of large numbers are nearly equal."""
    for name, b in model.named_buffers():
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            b.copy_(torch.randn(b.shape, generator=generator))


def hashed_routers(model, generator):
    """DeepSeek-V4: sets tables of experts, different for each token, and small biases of sums."""
    biased_routers(model, generator)
    for name, table in model.named_buffers():
        if name.endswith("tid2eid"):
            table.copy_(torch.rand(table.shape[0], model.config.n_routed_experts, generator=generator).argsort(-1)[:, : table.shape[1]])


def deepseek_v4_tensors(tensors):
    """Returns the tensors with the names of the published files. transformers does not restore some of them."""
    pairs = ((r"^model\.", ""), (r"^embed_tokens\.", "embed."), (r"^hc_head\.hc_", "hc_head_"), (r"\.attn\.norm\.", ".attn.kv_norm."))
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, to in pairs:
            name = re.sub(pattern, to, name)
        renamed[name] = tensor
    return renamed


# The matrices that DeepSeek publishes in fp8 and in fp4, by transformers' names and by DeepSeek's.
FP8_OF_V4 = re.compile(r"self_attn\.(q_[ab]|kv|o_[ab])_proj\.|\.attn\.(wq_[ab]|wkv|wo_[ab])\.|indexer\.(q_b_proj|wq_b)\.|shared_experts\.")
FP4_OF_V4 = re.compile(r"\.experts\.")
FP8_BLOCK = (32, 32)


def packed_of_v4(name, matrix):
    """Returns the stored tensors of a matrix of DeepSeek-V4, and its numbers; nothing for matrices that are not
    quantised."""
    if FP8_OF_V4.search(name):
        return packers.fp8(matrix, FP8_BLOCK, torch.float8_e8m0fnu, "scale")
    return packers.mxfp4(matrix) if FP4_OF_V4.search(name) else None


def as_v4_is_published(model, generator):
    hashed_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1 and (packed := packed_of_v4(name, p.float().reshape(-1, p.shape[-1]).numpy())):
                p.copy_(torch.tensor(packed[1]).reshape(p.shape))


def published_v4_tensors(tensors):
    """Replaces numbers on the formats' grids with their codes. Layers of multi-token prediction are separate."""
    tensors = deepseek_v4_tensors(tensors)
    tensors["mtp.0.ffn.experts.0.w1.weight"] = tensors["layers.0.ffn.experts.0.w1.weight"].clone()
    stored = {}
    for name, tensor in tensors.items():
        packed = packed_of_v4(name, tensor.float().numpy()) if tensor.dim() == 2 else None
        if not packed:
            stored[name] = tensor
            continue
        assert (torch.tensor(packed[1]) == tensor.float()).all(), name
        stored |= {name.removesuffix("weight") + part: value for part, value in packed[0].items()}
    return stored


def published_v4(config):
    """Returns the configuration as DeepSeek writes it, with a layer of multi-token prediction."""
    ratios = dict(sliding_attention=0, compressed_sparse_attention=4, heavily_compressed_attention=128)
    layers, mlps, ropes = config.pop("layer_types"), config.pop("mlp_layer_types"), config.pop("rope_parameters")
    config.pop("compress_rates")
    scaling = {name: value for name, value in ropes["compress"].items() if name in ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow")}
    return dict(config, compress_ratios=[ratios[kind] for kind in layers] + [0], num_hash_layers=mlps.count("hash_moe"), num_nextn_predict_layers=1,
                qk_rope_head_dim=int(config["head_dim"] * config.pop("partial_rotary_factor")), rope_scaling=dict(scaling, type="yarn"), rope_theta=ropes["main"]["rope_theta"],
                compress_rope_theta=ropes["compress"]["rope_theta"], expert_dtype="fp4", quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3", scale_fmt="ue8m0", weight_block_size=FP8_BLOCK))


# With few index heads, several tokens have the score 0, and which of them are selected is not defined.
HY_V4 = dict(SMALL, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, rms_norm_eps=1e-6, kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=16,
             qk_rope_head_dim=8, v_head_dim=32, moe_intermediate_size=40, n_routed_experts=5, num_experts_per_tok=2, index_topk=11, index_head_dim=24,
             index_n_heads=20, indexer_types=["full", "full", "shared", "full"], hc_mult=3, hc_magnitude=1.5, swiglu_limit=0.6)


def dory(config):
    return dict(config, initializer_range=0.02, layer_types=config.pop("layer_kinds"), rope_parameters=config.pop("ropes"))


def dory_weights(model, generator):
    """Sets the scales near their values before training."""
    scales = {"sqk": 0.02, "s_gate": 0.02, "suv_gate": 0.3, "suv_up": 0.3, "alpha": 0.1, "logit_scale": 0.1}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if size := next((size for end, size in scales.items() if name.endswith(end)), 0):
                p.copy_(size * (1 + 0.3 * torch.randn(p.shape, generator=generator)))


def hy_v4_weights(model, generator):
    """Sets the parameters whose size transformers and published files determine: gates, sinks and the streams' weights."""
    biased_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith((".sinks", ".base", ".hc_base")):
                p.copy_(torch.randn(p.shape, generator=generator))
            elif name.endswith((".scale", ".hc_scale")):
                p.copy_(0.5 + torch.rand(p.shape, generator=generator))


def hy_v4_tensors(tensors):
    """Returns the tensors with RoPE's pairs beside each other, and with the names of the published files, which
    transformers does not restore."""
    rotary = HY_V4["qk_rope_head_dim"]
    order = torch.arange(rotary).view(2, -1).T.flatten()
    widths = {"q_b_proj.weight": HY_V4["qk_nope_head_dim"] + rotary, "kv_a_proj_with_mqa.weight": HY_V4["kv_lora_rank"] + rotary,
              **dict.fromkeys(("indexer.wq_b.weight", "indexer.wk.weight", "indexer.k_norm.weight", "indexer.k_norm.bias"), HY_V4["index_head_dim"])}
    pairs = ((r"hc_pre\.(hc_head)", r"\1"), (r"hc_pre\.(hc_\w+_layer)\.", r"\1.hc_pre."), (r"(mlp|experts)\.linear_gate", r"\1.gate_proj"))
    for pattern, to in pairs:
        tensors = {re.sub(pattern, to, name): tensor for name, tensor in tensors.items()}
    tensors["model.mtp_layers.0.enorm.weight"] = torch.zeros(4)
    for name, tensor in tensors.items():
        if width := next((width for part, width in widths.items() if name.endswith("self_attn." + part)), 0):
            heads = tensor.view(-1, width, *tensor.shape[1:]).clone()
            heads[:, -rotary:] = heads[:, -rotary:][:, order]
            tensors[name] = heads.view(tensor.shape)
    return tensors


def olmo_hybrid_tensors(tensors):
    """Returns the tensors with the names of the published files, which transformers also restores for layers with
    attention."""
    attends = {name.split(".")[2] for name in tensors if ".self_attn." in name}
    renamed = {}
    for name, tensor in tensors.items():
        if name.split(".")[2:3] and name.split(".")[2] in attends:
            name = name.replace("feedforward_layer_norm", "post_attention_layernorm")
        renamed[name] = tensor
    for name in [name for name in tensors if name.endswith("q_conv1d.weight")]:  # each convolution is split like its projection
        names = [name.replace("q_conv", part + "_conv") for part in "qkv"]
        rows = [len(tensors[each.replace("conv1d", "proj")]) for each in names]
        renamed.update(zip(names, (part.contiguous() for part in torch.cat([tensors[each] for each in names]).split(rows))))
    return renamed


def index_pattern(config):
    """Lists the layers that select tokens, in the form of GLM-5's files."""
    config["index_topk_pattern"] = "".join(kind[0].upper() for kind in config.pop("indexer_types"))
    return config


def exact_rates(model, generator):
    """MiniMax: decided routers, and decay rates of states from their formula, not as bf16 stores them."""
    decided_routers(model, generator)
    for module in model.modules():
        module._non_persistent_buffers_set.update({"slope_rate", "query_decay", "key_decay", "diagonal_decay"} & set(module._buffers))


def rwkv7_vectors(model, generator):
    """Sets shares from 0 to 1, and learning rates near those at the start of training."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if re.search(r"\.x_[a-z]$", name):
                p.copy_(torch.rand(p.shape, generator=generator))
            if name.endswith(("k_k", "k_a")):
                p.add_(0.8)
            if name.endswith("w_lora.lora.2.bias"):
                p.copy_(3 * torch.randn(p.shape, generator=generator) - 2)


def older_rwkv7(config):
    """Omits all optional fields."""
    for field in ("intermediate_size", "v_low_rank_dim"):
        config.pop(field)
    return dict(config, hidden_ratio=3.0, value_dim=[config["hidden_size"]] * config["num_hidden_layers"], attn=None)


def older_rwkv7_tensors(tensors):
    """Puts the six vectors into one tensor, and adds matrices in the first layer that nothing reads."""
    for i in range(2):
        prefix = f"model.layers.{i}.attn.x_"
        tensors[prefix + "x"] = torch.cat([tensors.pop(prefix + letter)[0] for letter in "rwkvag"])
    return dict(tensors, **{"model.layers.0.attn.v_lora.lora.0.weight": torch.zeros(4)})


def small_uses(model, generator):
    """For layers that share weights: makes them small, because small differences would grow from use to use and hide
    the arithmetic."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if re.search(r"layers\.\d+\.linear\.weight$", name):
                p.mul_(0.05)


def scaled_layers(model, generator):
    """Sets Gemma 4's scalars after layers, which are all one at first."""
    for name, b in model.named_buffers():
        if name.endswith("layer_scalar"):
            b.fill_(0.6 + 0.2 * torch.rand(1, generator=generator).item())


def scaled_experts(model, generator):
    scaled_layers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("router.scale", "per_expert_scale")):
                p.copy_(1 + 0.3 * torch.randn(p.shape, generator=generator))
            if name.endswith("router.proj.weight"):
                p.mul_(4 * p.shape[1] ** 0.5)  # the router's input is divided by this root


def each_expert(tensors):
    """Splits the experts as in files with quantised experts."""
    each = {}
    for name, p in tensors.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            each[name] = p
            continue
        stem, kind = name.rsplit(".", 1)
        for e, matrix in enumerate(p):
            for part, rows in zip(kind.removesuffix("_proj").split("_"), matrix.chunk(2) if kind == "gate_up_proj" else [matrix]):
                each[f"{stem}.{e}.{part}_proj.weight"] = rows.contiguous()
    return each


def gemma4(config):
    """Returns the configuration as in Google's files: the heads of full attention have separate fields."""
    full = next(iter(config.pop("per_layer_config").values()))
    return dict(config, global_head_dim=full["head_dim"], num_global_key_value_heads=full.get("num_key_value_heads"))


def nested_gemma3n(config):
    """Returns the configuration as in Google's files, with encoders for images and sound."""
    rope = config.pop("rope_parameters")
    config.pop("architectures")
    config.pop("activation_sparsity_pattern")
    config = dict(config, intermediate_size=config["intermediate_size"][0], rope_theta=rope["full_attention"]["rope_theta"], rope_local_base_freq=rope["sliding_attention"]["rope_theta"],
                  rope_scaling=None)
    return dict(architectures=["Gemma3nForConditionalGeneration"], model_type="gemma3n", text_config=config, vision_config={}, audio_config={})


def nested_gemma3n_tensors(tensors):
    tensors = {name.replace("model.", "model.language_model."): t for name, t in tensors.items()}
    return dict(tensors, **{f"model.{tower}.norm.weight": torch.zeros(4) for tower in ("vision_tower", "audio_tower", "embed_vision", "embed_audio")})


def kimi_linear(config):
    """Returns the configuration as in Moonshot's files: other names, layers counted from 1, a nested part for layers
    with delta attention."""
    config = legacy(dict(config))
    names = dict(max_position_embeddings="model_max_length", norm_topk_prob="moe_renormalize", n_group="num_expert_group",
                 num_local_experts="num_experts", num_experts_per_tok="num_experts_per_token", n_shared_experts="num_shared_experts")
    config = {names.get(field, field): value for field, value in config.items() if field != "mlp_layer_types"}
    linear = dict(kda_layers=[1, 3], full_attn_layers=[2], num_heads=config.pop("linear_num_heads"), head_dim=config.pop("linear_head_dim"),
                  short_conv_kernel_size=config.pop("linear_conv_kernel_dim"))
    return dict(config, linear_attn_config=linear, head_dim=72, first_k_dense_replace=1, moe_layer_freq=1, mla_use_nope=True,
                moe_router_activation_func="sigmoid", num_nextn_predict_layers=0)


def kimi_linear_tensors(tensors):
    """Renames the dense layers to "mlp", as in Moonshot's files; transformers writes "block_sparse_moe"."""
    return {re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", name): t for name, t in tensors.items()}


def minimax_text_01(config):
    """Returns the configuration as in MiniMax's files."""
    config = legacy(dict(config, architectures=["MiniMaxText01ForCausalLM"], model_type="minimax_text_01"))
    for half, name in (("full_attn", "full_attention"), ("linear_attn", "linear_attention"), ("mlp", "mlp")):
        for factor in ("alpha", "beta"):
            config[f"layernorm_{name}_{factor}"] = config.pop(f"{half}_{factor}_factor")
    return dict(config, attn_type_list=[0, 0, 1], postnorm=True, rotary_dim=16, head_dim=16, shared_intermediate_size=0)


def deepseek(config):
    """Returns the configuration as in DeepSeek's files: rope_scaling, the router's method, and layers of multi-token
    prediction after the others."""
    config = legacy(config)
    v3 = config["model_type"] == "deepseek_v3"
    return dict(config, scoring_func="sigmoid" if v3 else "softmax", moe_layer_freq=1, num_nextn_predict_layers=int(v3),
                **(dict(topk_method="noaux_tc") if v3 else {}))


def with_predictor(tensors):
    return dict(tensors, **{"model.layers.3.enorm.weight": torch.zeros(4)})


def stacked_experts(tensors):
    """Stacks the experts as in Qwen 3.5's files: one tensor of all experts, gate and up combined."""
    stacks, each = {}, re.compile(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")
    for name in sorted(tensors, key=lambda n: int(each.fullmatch(n)[2]) if each.fullmatch(n) else -1):
        if found := each.fullmatch(name):
            stacks.setdefault(found[1], {}).setdefault(found[3], []).append(tensors.pop(name))
    for prefix, kinds in stacks.items():
        gate, up, down = (torch.stack(kinds[kind]) for kind in ("gate", "up", "down"))
        tensors[prefix + ".gate_up_proj"] = torch.cat([gate, up], 1).contiguous()
        tensors[prefix + ".down_proj"] = down
    return tensors


E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6])


def on_mxfp4_grid(model, generator):
    """Sets expert matrices to numbers that MXFP4 represents exactly."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 3:
                experts, cols, rows = p.shape  # stored as [experts, inputs, outputs]
                codes = torch.randint(16, (experts, rows, cols // 32, 32), generator=generator)
                exponents = torch.randint(-5, -2, (experts, rows, cols // 32, 1), generator=generator)
                p.copy_((E2M1[codes] * 2.0 ** exponents).reshape(experts, rows, cols).transpose(1, 2))


def mxfp4_tensors(tensors):
    """Stores experts as in OpenAI's files: blocks with two codes per byte, exponents as scales."""
    packed = {}
    for name, t in tensors.items():
        if t.dim() != 3:
            packed[name] = t
            continue
        rows = t.transpose(1, 2).float()
        groups = rows.reshape(*rows.shape[:2], -1, 32)
        # Finds the least exponent at which all numbers are on the grid, starting with the greatest: 6 is
        # the largest code.
        exponents = torch.full(groups.shape[:3], -2)
        for exponent in (-2, -3, -4, -5, -6, -7):
            scaled = groups / 2.0 ** exponent
            fits = (scaled[..., None] == E2M1).any(-1).all(-1)
            exponents = torch.where(fits, exponent, exponents)
        scaled = groups / 2.0 ** exponents[..., None]
        codes = (scaled[..., None] == E2M1).float().argmax(-1).to(torch.uint8)
        packed[name + "_blocks"] = (codes[..., 0::2] | codes[..., 1::2] << 4).contiguous()
        packed[name + "_scales"] = (exponents + 127).to(torch.uint8)
    return packed


def mxfp4(config):
    config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    return config


def with_output_matrix(tensors):
    """Stores a tied matrix under both names, as some programs do."""
    return dict(tensors, **{"lm_head.weight": tensors["model.embed_tokens.weight"].clone()})


def first_gpt2_tensors(tensors):
    """Returns the tensors with the names of the first GPT-2 checkpoints, which include the causal mask."""
    tensors = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    return dict(tensors, **{"h.0.attn.bias": torch.ones(1, 1, 64, 64), "h.0.attn.masked_bias": torch.tensor(-1e4)})


def first_gpt_neox_tensors(tensors):
    prefix = "gpt_neox.layers.1.attention."
    return dict(tensors, **{prefix + "bias": torch.ones(1, 1, 8, 8, dtype=torch.bool),
                            prefix + "masked_bias": torch.tensor(-1e9), prefix + "rotary_emb.inv_freq": torch.ones(4)})


def renamed(architecture, *pairs, config=legacy, fields=()):
    """Makes a checkpoint of a class that transformers lacks from another class with other tensor names."""
    def of_config(saved):
        saved = config(saved)
        for old, new in fields:
            saved[new] = saved.pop(old)
        return dict(saved, architectures=[architecture])

    def of_tensors(tensors):
        def name(old):
            for pattern, new in pairs:
                old = re.sub(pattern, new, old)
            return old
        return {name(old): t for old, t in tensors.items()}
    return of_config, of_tensors


MISTRAL_NAMES = (
    (r"^lm_head", "output"), (r"^model\.", ""), ("embed_tokens", "tok_embeddings"), ("input_layernorm", "attention_norm"), ("post_attention_layernorm", "ffn_norm"),
    (r"self_attn\.kv_a_proj_with_mqa", "attention.wkv_a_with_mqa"), (r"self_attn\.kv_b_proj", "attention.wkv_b"), (r"self_attn\.q_a_proj", "attention.wq_a"),
    (r"self_attn\.q_b_proj", "attention.wq_b"), (r"self_attn\.(q|kv)_a_layernorm", r"attention.\1_a_norm"), (r"self_attn\.(q|k|v|o)_proj", r"attention.w\1"),
    (r"mlp\.(gate|experts|shared_experts)\.", r"\1."), ("mlp|block_sparse_moe", "feed_forward"), ("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3"))


def in_mistrals_format(params, heads=None):
    """Makes a checkpoint as in Mistral's files: params.json, other names, heads that rotate adjacent pairs."""
    def of_config(saved):
        names = dict(dim="hidden_size", n_layers="num_hidden_layers", n_heads="num_attention_heads", n_kv_heads="num_key_value_heads", norm_eps="rms_norm_eps",
                     hidden_dim="intermediate_size", vocab_size="vocab_size", head_dim="head_dim", max_seq_len="max_position_embeddings")
        found = {own: saved[name] for own, name in names.items() if saved.get(name) is not None}
        return dict(found, rope_theta=saved["rope_parameters"]["rope_theta"], tied_embeddings=False, **params)

    def of_tensors(tensors):
        named = {}
        for name, t in each_expert(tensors).items():
            for part, count in zip("qk", heads or ()):
                if name.endswith(f"self_attn.{part}_proj.weight"):
                    t = t.view(count, 2, -1, t.shape[1]).transpose(1, 2).reshape(t.shape).contiguous()
            for pattern, new in MISTRAL_NAMES:
                name = re.sub(pattern, new, name)
            named[name] = t
        return dict(named, **{"vision_encoder.ln_pre.weight": torch.zeros(4)})
    return dict(config=of_config, tensors=of_tensors, own_format=True)


INTERNLM2 = renamed("InternLM2ForCausalLM", (r"^lm_head", "output"), ("embed_tokens", "tok_embeddings"), ("input_layernorm", "attention_norm"),
                    ("post_attention_layernorm", "ffn_norm"), (r"self_attn\.o_proj", "attention.wo"), (r"mlp\.gate_proj", "feed_forward.w1"),
                    (r"mlp\.up_proj", "feed_forward.w3"), (r"mlp\.down_proj", "feed_forward.w2"), fields=[("attention_bias", "bias")])


def internlm2_tensors(tensors):
    """Combines queries, keys and values in one matrix by key head: two key heads of 24, with two query heads each."""
    tensors = INTERNLM2[1](tensors)
    for i in range(2):
        q, k, v = (tensors.pop(f"model.layers.{i}.self_attn.{kind}_proj.weight") for kind in "qkv")
        groups = [torch.cat([q[48 * g:48 * g + 48], k[24 * g:24 * g + 24], v[24 * g:24 * g + 24]]) for g in range(2)]
        tensors[f"model.layers.{i}.attention.wqkv.weight"] = torch.cat(groups)
    return tensors


BAICHUAN = renamed("BaiChuanForCausalLM")


def baichuan_tensors(tensors):
    for i in range(2):
        parts = [tensors.pop(f"model.layers.{i}.self_attn.{kind}_proj.weight") for kind in "qkv"]
        tensors[f"model.layers.{i}.self_attn.W_pack.weight"] = torch.cat(parts)
    return tensors


BAICHUAN_13B = renamed("BaichuanForCausalLM", fields=[("max_position_embeddings", "model_max_length")])


def with_alibi(model, ids):
    """Runs a Llama with all tokens at position 0, so that RoPE has no effect, and with BLOOM's ALiBi in its mask."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    n = len(ids)
    future = torch.full((n, n), torch.finfo(model.dtype).min, dtype=model.dtype).triu(1)
    alibi = build_alibi_tensor(torch.ones(1, n), model.config.num_attention_heads, model.dtype)
    with torch.no_grad():
        return model(ids[None], attention_mask=(alibi + future)[None], position_ids=torch.zeros(1, n, dtype=torch.long),
                     use_cache=False).logits[0].float()


CHATGLM = renamed("ChatGLMModel", (r"^model\.(layers|norm)", r"transformer.encoder.\1"), (r"^model\.embed_tokens", "transformer.embedding.word_embeddings"),
                  (r"^lm_head", "transformer.output_layer"), ("encoder.norm", "encoder.final_layernorm"), ("self_attn.o_proj", "self_attention.dense"),
                  ("mlp.gate_up_proj", "mlp.dense_h_to_4h"), ("mlp.down_proj", "mlp.dense_4h_to_h"),
                  fields=[("num_hidden_layers", "num_layers"), ("num_key_value_heads", "multi_query_group_num"), ("vocab_size", "padded_vocab_size"),
                          ("intermediate_size", "ffn_hidden_size"), ("head_dim", "kv_channels"), ("max_position_embeddings", "seq_length"),
                          ("rms_norm_eps", "layernorm_epsilon"), ("attention_bias", "add_qkv_bias")])


def chatglm(config):
    config = CHATGLM[0](config)
    for field in ("hidden_act", "partial_rotary_factor", "rope_scaling"):
        del config[field]
    return dict(config, rope_ratio=config.pop("rope_theta") / 1e4, multi_query_attention=True, rmsnorm=True, add_bias_linear=False)


def chatglm_tensors(tensors):
    tensors = CHATGLM[1](tensors)
    for i in range(2):
        for kind in ("weight", "bias"):
            layer = f"transformer.encoder.layers.{i}."
            parts = [tensors.pop(f"{layer}self_attn.{part}_proj.{kind}") for part in "qkv"]
            tensors[f"{layer}self_attention.query_key_value.{kind}"] = torch.cat(parts)
    return dict(tensors, **{"transformer.rotary_pos_emb.inv_freq": torch.zeros(4)})


MIMO = renamed("MiMoForCausalLM")


def mimo_tensors(tensors):
    return dict(tensors, **{"model.mtp_layers.0.hidden_layernorm.weight": torch.zeros(4)})


def beside_eyes(architecture, kind):
    """Makes a checkpoint as in the first files of a vision model: the language model has another name."""
    def config(saved):
        saved.pop("architectures")
        return dict(architectures=[architecture], model_type=kind, text_config=saved, vision_config={})

    def tensors(named):
        return dict({"language_model." + name: t for name, t in named.items()},
                    **{"multi_modal_projector.linear_1.weight": torch.zeros(4, 4)})
    return dict(config=config, tensors=tensors)


def text_beside_eyes(architecture, prefix, seen):
    """Makes a checkpoint as in newer files of a vision model: text_config names its own class. seen: a tensor of the
    encoder."""
    def config(saved):
        return dict(architectures=[architecture], model_type=architecture.split("For")[0].lower(), text_config=saved, vision_config={})

    def tensors(named):
        return dict({prefix(name): t for name, t in named.items()}, **{seen: torch.zeros(4)})
    return dict(config=config, tensors=tensors)


def biased_experts(model, generator):
    with torch.no_grad():
        for name, p in list(model.named_buffers()) + list(model.named_parameters()):
            if name.endswith("e_score_correction_bias"):
                p.copy_(0.3 * torch.randn(p.shape, generator=generator))


def internlm3(config):
    config = legacy(config)
    return dict(config, architectures=["InternLM3ForCausalLM"], qkv_bias=config.pop("attention_bias"), bias=config.pop("mlp_bias"))


def spread_slopes(model, generator):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "act_fn.alpha" in name:
                p.copy_(torch.randn(p.shape, generator=generator))


def refined_web(config):
    """Returns the configuration as in the first files of Falcon 40B."""
    names = dict(num_hidden_layers="n_layer", num_attention_heads="n_head", num_kv_heads="n_head_kv")
    own = {new: config[old] for old, new in names.items()}
    kept = ("vocab_size", "hidden_size", "alibi", "bias", "layer_norm_epsilon", "parallel_attn", "bos_token_id", "eos_token_id")
    return dict({field: config[field] for field in kept}, **own, architectures=["RWForCausalLM"], model_type="RefinedWeb", torch_dtype="bfloat16")


def stablelm_epoch(config):
    """Returns the configuration as in the first files of StableLM 3B."""
    config = legacy(config)
    own = dict(norm_eps=config.pop("layer_norm_eps"), rope_pct=config.pop("partial_rotary_factor"))
    return dict(config, **own, architectures=["StableLMEpochForCausalLM"], model_type="stablelm_epoch")


def older_bloom(config):
    config["n_embed"] = config.pop("hidden_size")
    config["num_attention_heads"] = config.pop("n_head")
    return config


EXAONE = renamed("ExaoneForCausalLM", (r"^model\.", "transformer."), ("embed_tokens", "wte"), (r"\.norm\.", ".ln_f."), (r"\.layers\.", ".h."),
                 ("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2"), (r"self_attn\.o_proj", "attn.attention.out_proj"),
                 ("self_attn", "attn.attention"), ("gate_proj", "c_fc_0"), ("up_proj", "c_fc_1"), ("down_proj", "c_proj"),
                 fields=[("num_hidden_layers", "num_layers"), ("hidden_act", "activation_function"), ("rms_norm_eps", "layer_norm_epsilon")])
ORION = renamed("OrionForCausalLM", fields=[("layer_norm_eps", "rms_norm_eps")])


def minicpm(config):
    """Returns Granite's multipliers as MiniCPM's fields, for two layers of width 48."""
    own = dict(scale_emb=config.pop("embedding_multiplier"), dim_model_base=48 / config.pop("logits_scaling"),
               scale_depth=config.pop("residual_multiplier") * 2 ** 0.5)
    del config["attention_multiplier"]  # equals the default
    return dict(renamed("MiniCPMForCausalLM")[0](config), **own)


class Open(torch.nn.Module):
    """Replaces the gate of a shared expert: the expert always counts in full."""

    def forward(self, x):
        return torch.full(x.shape[:-1] + (1,), 1e4, dtype=x.dtype)


def run_without_shared_gates(model, ids):
    for module in model.modules():
        if hasattr(module, "shared_expert_gate"):
            module.shared_expert_gate = Open()
    return run(model, ids)


def drop_shared_gates(rename):
    return lambda tensors: {name: t for name, t in rename(tensors).items() if "shared_expert_gate" not in name}


DEEPSEEK_V1 = renamed("DeepseekForCausalLM", (r"mlp\.shared_expert\.", "mlp.shared_experts."))


def deepseek_v1(config):
    """Returns the configuration as in DeepSeek's files: two shared experts."""
    config = DEEPSEEK_V1[0](config)
    for field in ("decoder_sparse_step", "mlp_only_layers", "qkv_bias", "use_sliding_window", "sliding_window", "max_window_layers"):
        config.pop(field, None)
    shared = config.pop("shared_expert_intermediate_size") // config["moe_intermediate_size"]
    return dict(config, model_type="deepseek", n_routed_experts=config.pop("num_experts"), n_shared_experts=shared, first_k_dense_replace=1, moe_layer_freq=1,
                scoring_func="softmax")


BAILING = renamed("BailingMoeForCausalLM", (r"^model\.embed_tokens", "model.word_embeddings"), (r"self_attn\.o_proj", "attention.dense"),
                  (r"self_attn\.q_norm", "attention.query_layernorm"), (r"self_attn\.k_norm", "attention.key_layernorm"), (r"mlp\.shared_expert\.", "mlp.shared_experts."),
                  (r"gate\.e_score_correction_bias", "gate.expert_bias"))


def bailing(config):
    """Returns the configuration as in Ant Group's files."""
    version2 = config["model_type"] == "glm4_moe"
    config = BAILING[0](config)
    config = {field: config[field] for field in (*BASE, "head_dim", "rope_theta", "rope_scaling", "rms_norm_eps", "hidden_act", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
                                                  "tie_word_embeddings", "n_group", "topk_group", "routed_scaling_factor", "n_routed_experts", "num_experts", "partial_rotary_factor") if field in config}
    config["num_experts"] = config.pop("n_routed_experts", config.get("num_experts"))
    more = dict(architectures=["BailingMoeV2ForCausalLM"], num_shared_experts=1, use_qk_norm=True, score_function="sigmoid", moe_router_enable_expert_bias=True,
                use_rmsnorm=True) if version2 else dict(architectures=["BailingMoeForCausalLM"], num_shared_experts=2)
    return dict(config, model_type="bailing_moe", first_k_dense_replace=1, use_bias=False, use_qkv_bias=False, norm_head=False, dtype="bfloat16", **more)


def bailing_tensors(tensors):
    tensors = BAILING[1](tensors)
    for i in range(2):
        parts = [tensors.pop(f"model.layers.{i}.self_attn.{kind}_proj.weight") for kind in "qkv"]
        tensors[f"model.layers.{i}.attention.query_key_value.weight"] = torch.cat(parts)
    return tensors


LATENT = dict(BASE, num_key_value_heads=None, num_hidden_layers=3,
              kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32, moe_intermediate_size=24,
              n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, first_k_dense_replace=1)

MAMBA2 = dict(mamba_n_heads=6, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=20, mamba_expand=2)


def lfm2_indices(config):
    """Returns the configuration of LFM2's first files: the layers with attention, by number."""
    config.pop("layer_types")
    return dict(legacy(config), block_ff_dim=config.pop("intermediate_size"), tie_embedding=config.pop("tie_word_embeddings"))


def decided_longcat(model, generator):
    """Sets routers so that some tokens go to experts that do nothing, and most selections are decided."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("classifier.weight"):
                p.mul_(4)
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.copy_(0.05 * torch.randn(b.shape, generator=generator))


def real_experts(count):
    """Removes the matrices of experts that do nothing, which transformers stores."""
    return lambda tensors: {name: t for name, t in tensors.items() if not re.search(r"experts\.\d+\.", name) or int(re.search(r"experts\.(\d+)\.", name)[1]) < count}


def norms_by_one_more(model, generator):
    """Stores norms as the difference from one, as Step-3.5 does."""
    biased_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.sub_(1)


def decided_dbrx(model, generator):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("norm_1.weight", "norm_2.weight")):
                p.add_(1)
            if name.endswith("router.layer.weight"):
                p.mul_(4)


def published_mimo_v2(config):
    """Returns the configuration as Xiaomi writes it."""
    ropes, kinds = config.pop("rope_parameters"), config.pop("layer_types")
    config["moe_layer_freq"] = [int(kind == "sparse") for kind in config.pop("mlp_layer_types")]
    return dict(config, layernorm_epsilon=config.pop("rms_norm_eps"), hybrid_layer_pattern=[int(kind == "sliding_attention") for kind in kinds],
                rope_theta=ropes["full_attention"]["rope_theta"], swa_rope_theta=ropes["sliding_attention"]["rope_theta"],
                partial_rotary_factor=ropes["full_attention"]["partial_rotary_factor"], swa_num_key_value_heads=2 * config["num_key_value_heads"],
                sliding_window_size=config["sliding_window"] - 1, add_swa_attention_sink_bias=True, n_shared_experts=None, routed_scaling_factor=None)


def step3p5(config):
    """Returns the configuration of Step-3.5-Flash as StepFun writes it: the text part of Step-3.7."""
    config = config["text_config"]
    ropes, kinds = config.pop("rope_parameters"), config["layer_types"]
    sparse = config.pop("mlp_layer_types")
    kept = {field: config[field] for field in (*BASE, "head_dim", "sliding_window", "rms_norm_eps", "moe_intermediate_size", "share_expert_dim", "moe_router_scaling_factor",
                                               "swiglu_limits", "swiglu_limits_shared") if field in config}
    kept["num_attention_groups"] = kept.pop("num_key_value_heads")
    theta = [ropes[kind]["rope_theta"] for kind in kinds]
    shares = [ropes[kind]["partial_rotary_factor"] for kind in kinds]
    return dict(kept, architectures=["Step3p5ForCausalLM"], model_type="step3p5", layer_types=kinds + ["full_attention"], num_nextn_predict_layers=1,
                swiglu_limits=kept["swiglu_limits"] + [0.0], swiglu_limits_shared=kept["swiglu_limits_shared"] + [0.0], rope_theta=theta + [1e4], partial_rotary_factors=shares + [1.0],
                rope_scaling={name: value for name, value in LLAMA3.items() if name != "rope_theta"}, yarn_only_types=["full_attention"], moe_num_experts=config["n_routed_experts"],
                moe_top_k=config["num_experts_per_tok"], moe_router_activation="sigmoid", use_moe_router_bias=True, norm_expert_weight=True, use_head_wise_attn_gate=True,
                moe_layers_enum=",".join(str(i) for i, kind in enumerate(sparse) if kind == "sparse"), att_impl_type="GQA", dtype="bfloat16",
                attention_other_setting=dict(attention_type="sliding_attention", num_attention_heads=config["num_sliding_attention_heads"],
                                             num_attention_groups=kept["num_attention_groups"], head_dim=config["head_dim"]))


def text_tensors(tensors):
    """Removes the vision encoder, and adds a layer of multi-token prediction after the others."""
    kept = {name: t for name, t in tensors.items() if not name.startswith(("vision_model.", "vit_large_projector."))}
    return dict(kept, **{"model.layers.3.eh_proj.weight": torch.zeros(4, 4)})


UNIFIED = text_beside_eyes("Gemma4UnifiedForConditionalGeneration", lambda name: name.replace("model.", "model.language_model."), "model.embed_vision.pos_embedding")
STEP3 = dict(SMALL, num_hidden_layers=3, num_attention_groups=1, head_dim=24, max_position_embedding=256, share_q_dim=40, rope_theta=5e5, rms_norm_eps=1e-5,
             moe_num_experts=5, moe_top_k=2, norm_expert_weight=True, moe_intermediate_size=40, share_expert_dim=56, moe_layers_enum="1,2")
STEP3P7 = dict(vision_config=dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28), text_config=dict(
    SMALL, num_hidden_layers=3, head_dim=24, sliding_window=9, num_sliding_attention_heads=4, moe_intermediate_size=40,
    n_routed_experts=5, num_experts_per_tok=2, share_expert_dim=56, moe_router_scaling_factor=1.7, layer_types=["full_attention", "sliding_attention", "sliding_attention"],
    mlp_layer_types=["dense", "sparse", "sparse"], swiglu_limits=[0.0, 0.5, 0.0], swiglu_limits_shared=[0.4, 0.0, 1.0], rope_parameters=dict(
        full_attention=dict(LLAMA3, partial_rotary_factor=0.5), sliding_attention=dict(rope_type="default", rope_theta=5e3, partial_rotary_factor=1.0))))

TELECHAT2 = renamed("TeleChat2ForCausalLM", (r"^model\.embed_tokens", "transformer.word_embeddings"), (r"^model\.norm", "transformer.ln_f"), (r"^model\.layers", "transformer.h"),
                    (r"self_attn\.q_proj", "self_attention.query"), (r"self_attn\.o_proj", "self_attention.dense"),
                    fields=[("num_hidden_layers", "n_layer"), ("num_attention_heads", "n_head"), ("intermediate_size", "ffn_hidden_size"), ("rms_norm_eps", "layer_norm_epsilon"),
                            ("max_position_embeddings", "seq_length")])


def no_first_biases(model, generator):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if re.search(r"(q|k|v|gate|up)_proj\.bias$", name):
                p.zero_()


def telechat2_tensors(tensors):
    """Combines keys and values in one matrix by head, and removes all biases except those of the last matrices."""
    tensors = {name: t for name, t in TELECHAT2[1](tensors).items() if not re.search(r"(query|k_proj|v_proj|gate_proj|up_proj)\.bias$", name)}
    for i in range(2):
        keys, values = (tensors.pop(f"transformer.h.{i}.self_attn.{kind}_proj.weight") for kind in "kv")
        pairs = [part for both in zip(keys.split(16), values.split(16)) for part in both]
        tensors[f"transformer.h.{i}.self_attention.key_value.weight"] = torch.cat(pairs)
    return tensors


TELEFLM = renamed("TeleFLMForCausalLM", config=lambda saved: {
    **legacy({name: value for name, value in saved.items() if name not in ("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")}),
    "use_mup": True, "input_mult": saved["embedding_multiplier"], "mup_scale_factor": saved["logits_scaling"] * 2, "output_mult": 2.0})

PLAMO3 = renamed("Plamo3ForCausalLM", (r"^model\.layers", "model.layers.layers"), ("input_layernorm", "pre_mixer_norm"), ("post_attention_layernorm", "post_mixer_norm"),
                 ("pre_feedforward_layernorm", "pre_mlp_norm"), ("post_feedforward_layernorm", "post_mlp_norm"), ("self_attn", "mixer"))


def plamo3(config):
    ropes = config["rope_parameters"]
    kept = {field: config[field] for field in (*BASE, "head_dim", "rms_norm_eps", "sliding_window", "layer_types")}
    return dict(kept, architectures=["Plamo3ForCausalLM"], model_type="plamo3", rope_theta=ropes["full_attention"]["rope_theta"],
                rope_local_theta=ropes["sliding_attention"]["rope_theta"], tie_word_embeddings=False, dtype="bfloat16")


def plamo3_tensors(tensors):
    """Converts Gemma 3's tensors: embeddings count 8 times, and norms after attention and MLP are by 1 + w."""
    tensors = PLAMO3[1](tensors)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"] * 8
    for i in range(3):
        layer = f"model.layers.layers.{i}."
        for fused, parts in (("mixer.qkv_proj", ("mixer.q_proj", "mixer.k_proj", "mixer.v_proj")), ("mlp.gate_up_proj", ("mlp.gate_proj", "mlp.up_proj"))):
            tensors[f"{layer}{fused}.weight"] = torch.cat([tensors.pop(f"{layer}{part}.weight") for part in parts])
        for norm, offset in (("post_mixer_norm", 1 / 5), ("post_mlp_norm", 5 ** -1.5)):
            tensors[f"{layer}{norm}.weight"] = tensors[f"{layer}{norm}.weight"].float() + (1 - offset)
    return tensors


def sarvam_mla(config):
    config = legacy(config)
    config.pop("model_type")
    for old, new in (("n_routed_experts", "num_experts"), ("n_shared_experts", "num_shared_experts")):
        config[new] = config.pop(old)
    return dict(config, architectures=["SarvamMLAForCausalLM"], model_type="sarvam_mla", score_function="sigmoid", moe_router_enable_expert_bias=True, num_nextn_predict_layers=0)


def bailing_hybrid(config):
    """Returns the configuration as in Ling 2.5's files."""
    config = sarvam_mla(config)
    return dict(config, architectures=["BailingMoeV2_5ForCausalLM"], model_type="bailing_hybrid", head_dim=config.pop("linear_head_dim"), rope_theta=config.pop("linear_theta"),
                partial_rotary_factor=config.pop("linear_share"), use_qk_norm=True, use_bias=False, use_qkv_bias=False)


def pangu_ultra(config):
    return dict(legacy(config), architectures=["PanguUltraMoEForCausalLM"], model_type="pangu_ultra_moe", sandwich_norm=True, router_enable_expert_bias=True, num_nextn_predict_layers=0)


def biased_experts_of_laguna(model, generator):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("e_score_correction_bias"):
                p.copy_(torch.randn(p.shape, generator=generator))


def bailing_v3(config):
    """Returns the configuration as in Ling 3's files."""
    config = sarvam_mla(config)
    return dict(config, architectures=["BailingMoeV3ForCausalLM"], model_type="bailing_moe_v3", head_dim=config.pop("linear_head_dim"), no_kda_lora=True, kda_safe_gate=True,
                gated_attention_proj_granularity_type="head_wise", moe_shared_expert_intermediate_size=config["moe_intermediate_size"])


def decided_bailing_v3(model, generator):
    """Sets large biases, because rounding to bf16 changes the choice of groups for smaller ones."""
    with torch.no_grad():
        biased_routers(model, generator)
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.mul_(4)


def bailing_v3_tensors(tensors):
    for old, new in (("self_attn.attention.", "attention."), ("self_attn.", "attention."), ("embed_tokens", "word_embeddings"), ("e_score_correction_bias", "expert_bias")):
        tensors = {name.replace(old, new): t for name, t in tensors.items()}
    return tensors


def domyn_edge(config):
    usual = config["head_dim"]
    return dict(config, per_layer_config={str(i): dict(head_dim=dim) for i, dim in enumerate(config.pop("head_dims")) if dim != usual})


def puzzle(config):
    """Removes the fields that blocks replace, and the pattern."""
    for field in ("hybrid_override_pattern", "layers_block_type", "layer_types"):
        config.pop(field, None)
    return dict(config, architectures=["NemotronHPuzzleForCausalLM"], model_type="nemotron_h_puzzle")


# name: (config class, model class, configuration, options)
def minimax_m3(config):
    """Returns the configuration as MiniMax writes it."""
    renamed = dict(sparse_num_index_heads="index_n_heads", sparse_index_dim="index_head_dim", sparse_block_size="index_block_size",
                   sparse_topk_blocks="index_topk_blocks", sparse_local_block="index_local_blocks")
    sparse = {name: config.pop(own) for name, own in renamed.items()}
    sparse |= dict(use_sparse_attention=True, sparse_score_type="max", sparse_init_block=0,
                   sparse_attention_freq=[int(kind == "minimax_m3_sparse") for kind in config.pop("layer_types")])
    freq = [int(kind == "sparse") for kind in config.pop("mlp_layer_types")]
    rope = config.pop("rope_parameters")
    return dict(config, architectures=["MiniMaxM3SparseForCausalLM"], model_type="minimax_m3_text", rope_theta=rope["rope_theta"],
                partial_rotary_factor=rope["partial_rotary_factor"], hidden_act="swigluoai", moe_layer_freq=freq,
                sparse_attention_config=sparse, n_shared_experts=1, scoring_func="sigmoid", use_routing_bias=True)


def decided_m3(model, generator):
    """Norms store their weight minus 1."""
    biased_routers(model, generator)
    decided_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.sub_(1)


def minimax_m3_tensors(tensors):
    """Returns the tensors with MiniMax's names."""
    stored = {}
    for name, t in tensors.items():
        name = re.sub(r"\.mlp\.(gate\.weight|experts|shared_experts)", r".block_sparse_moe.\1", name.replace("self_attn.indexer.", "self_attn.index_"))
        name = name.replace("mlp.gate.e_score", "block_sparse_moe.e_score")
        if name.endswith("experts.gate_up_proj"):
            for e, (gate, up) in enumerate(matrix.chunk(2) for matrix in t):
                stored |= {name.replace("gate_up_proj", f"{e}.w1.weight"): gate.clone(), name.replace("gate_up_proj", f"{e}.w3.weight"): up.clone()}
        elif name.endswith("experts.down_proj"):
            stored |= {name.replace("down_proj", f"{e}.w2.weight"): matrix.clone() for e, matrix in enumerate(t)}
        elif name.endswith("gate_up_proj.weight"):
            stored |= {name.replace("gate_up", half): matrix.clone() for half, matrix in zip(("gate", "up"), t.chunk(2))}
        else:
            stored[name] = t
    return stored


def decided_mimo(model, generator):
    biased_routers(model, generator)
    decided_routers(model, generator)


MIMO_BLOCK = (32, 32)


def mimo_v2_chunks(tensors, prefix, chunks):
    """Returns the rows of queries, keys and values in chunks, and the packed tensors of each chunk."""
    parts = [tensors[f"{prefix}{letter}_proj.weight"].float().chunk(chunks) for letter in "qkv"]
    return [packers.fp8(torch.cat(rows).numpy(), MIMO_BLOCK, name="weight_scale_inv") for rows in zip(*parts)]


def mimo_v2_on_grid(model, generator):
    """Rounds queries, keys and values to the numbers of their chunks in fp8."""
    biased_routers(model, generator)
    tensors, chunks = dict(model.named_parameters()), model.config.num_key_value_heads
    with torch.no_grad():
        for i in range(model.config.num_hidden_layers):
            prefix = f"model.layers.{i}.self_attn."
            made = [torch.tensor(numbers) for _, numbers in mimo_v2_chunks(tensors, prefix, chunks)]
            sizes = [tensors[f"{prefix}{letter}_proj.weight"].shape[0] // chunks for letter in "qkv"]
            for letter, rows in zip("qkv", zip(*(chunk.split(sizes) for chunk in made))):
                tensors[f"{prefix}{letter}_proj.weight"].copy_(torch.cat(rows))


def mimo_v2_tensors(tensors, chunks=0):
    """Joins queries, keys and values, in chunks of fp8 if `chunks` is not 0."""
    stored = {name: t for name, t in tensors.items() if not re.search(r"self_attn\.[qkv]_proj", name)}
    for name in tensors:
        if not name.endswith("q_proj.weight"):
            continue
        prefix = name.removesuffix("q_proj.weight")
        joined = prefix + "qkv_proj."
        if chunks == 0:
            stored[joined + "weight"] = torch.cat([tensors[f"{prefix}{letter}_proj.weight"] for letter in "qkv"])
            continue
        packed = [of_chunk for of_chunk, _ in mimo_v2_chunks(tensors, prefix, chunks)]
        for part in ("weight", "weight_scale_inv"):
            stored[joined + part] = torch.cat([of_chunk[part] for of_chunk in packed])
    return stored


def mimo_v2(config):
    return dict(published_mimo_v2(config), architectures=["MiMoV2ForCausalLM"], model_type="mimo_v2", attention_projection_layout="fused_qkv")


def mimo_v2_fp8(config):
    return dict(mimo_v2(config), quantization_config=dict(quant_method="fp8", weight_block_size=list(MIMO_BLOCK)))


def decided_pangu(model, generator):
    biased_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("param_sink_key"):
                p.copy_(torch.randn(p.shape, generator=generator))


def decided_alice(model, generator):
    """Mixtures of sources that differ, states that decay slowly, and routers that decide."""
    biased_routers(model, generator)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("res_norm_weight"):
                p.add_(1)
            elif name.endswith("res_proj.weight"):
                p.mul_(2)
            elif name.endswith("a_log_bias"):
                p.sub_(2)
            elif name.endswith("norm.weight") and "o_norm" not in name:
                p.sub_(1)


CASES = {
    "llama": ("Llama", dict(BASE, num_key_value_heads=4), {}),
    "llama-f32": ("Llama", SMALL, dict(store=torch.float32)),
    "llama-f16": ("Llama", SMALL, dict(store=torch.float16)),
    "llama-bias": ("Llama", dict(SMALL, attention_bias=True, mlp_bias=True, head_dim=24), dict(shards="20KB")),
    "llama-llama3": ("Llama", dict(BASE, tie_word_embeddings=True, rope_parameters=LLAMA3), dict(tensors=with_output_matrix)),
    "llama-linear": ("Llama", dict(SMALL, rope_parameters=dict(rope_type="linear", factor=2.5, rope_theta=1e4)),
                     dict(config=legacy)),
    "llama-dynamic": ("Llama", dict(SMALL, max_position_embeddings=16,
                                    rope_parameters=dict(rope_type="dynamic", factor=3.0, rope_theta=1e4)),
                      dict(config=legacy, max_model_len=TOKENS)),
    "llama-yarn": ("Llama", dict(SMALL, rope_parameters=YARN), dict(config=legacy)),
    "llama-yarn-mscale": ("Llama", dict(SMALL, rope_parameters=dict(YARN, beta_fast=16.0, beta_slow=2.0, mscale=0.7,
                                                                    mscale_all_dim=1.0, truncate=False)), {}),
    "llama-longrope": ("Llama", dict(SMALL, rope_parameters=longrope(8, original_max_position_embeddings=32, factor=8.0)),
                       dict(max_model_len=64)),
    "mistral": ("Mistral", dict(BASE, sliding_window=8, head_dim=24), {}),
    "mistral-full": ("Mistral", dict(SMALL, sliding_window=None), dict(config=legacy)),
    "qwen2": ("Qwen2", dict(BASE, tie_word_embeddings=True), {}),
    "qwen2-window": ("Qwen2", dict(BASE, num_hidden_layers=3, use_sliding_window=True, sliding_window=12,
                                   max_window_layers=1), dict(config=legacy)),
    "qwen3": ("Qwen3", dict(BASE, head_dim=32, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6)), {}),
    "qwen3-legacy": ("Qwen3", dict(SMALL, head_dim=32, attention_bias=True), dict(config=legacy)),
    "gemma": ("Gemma", dict(BASE, head_dim=32), {}),
    "gemma2": ("Gemma2", dict(BASE, num_hidden_layers=4, head_dim=24, sliding_window=8, query_pre_attn_scalar=40,
                              final_logit_softcapping=5.0, attn_logit_softcapping=4.0), dict(config=legacy)),
    "gemma3": ("Gemma3Text", dict(BASE, num_hidden_layers=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=20,
                                  layer_types=["sliding_attention", "full_attention"] * 2,
                                  rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                                       sliding_attention=dict(rope_type="default", rope_theta=1e4))), {}),
    # The root of the width is 11.66. In bf16, embeddings are scaled by the next number, 11.69.
    "gemma3-scale": ("Gemma3Text", dict(BASE, hidden_size=136, intermediate_size=32, head_dim=16, num_key_value_heads=1,
                                        tie_word_embeddings=False, query_pre_attn_scalar=20,
                                        layer_types=["sliding_attention", "full_attention"]), dict(bf16_logits=True)),
    "gemma3-multimodal": ("Gemma3Text", dict(SMALL, num_hidden_layers=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=20,
                                         layer_types=["sliding_attention", "full_attention"] * 2,
                                         rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                                              sliding_attention=dict(rope_type="default", rope_theta=1e4))),
                      dict(config=nested, tensors=multimodal_tensors)),
    "phi3": ("Phi3", dict(BASE, sliding_window=9), {}),
    "phi3-longrope-short": ("Phi3", dict(SMALL, head_dim=16, original_max_position_embeddings=64, tie_word_embeddings=True,
                                         rope_parameters=longrope(6, partial_rotary_factor=0.75)),
                            dict(max_model_len=64)),
    "phi3-longrope-long": ("Phi3", dict(SMALL, original_max_position_embeddings=32,
                                        rope_parameters=longrope(8)), dict(max_model_len=128, config=legacy)),
    "olmo2": ("Olmo2", BASE, {}),
    "granite": ("Granite", dict(BASE, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22,
                                attention_multiplier=0.0625, tie_word_embeddings=True), {}),
    "glm": ("Glm", dict(BASE, head_dim=16), dict(config=legacy)),
    "glm4": ("Glm4", dict(BASE, head_dim=32), {}),
    "stablelm": ("StableLm", dict(BASE, use_qkv_bias=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25)), {}),
    "stablelm-epoch": ("StableLm", dict(SMALL, use_qkv_bias=True, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)),
                       dict(config=stablelm_epoch)),
    "stablelm-parallel": ("StableLm", dict(BASE, qk_layernorm=True, use_parallel_residual=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), dict(config=legacy)),
    "qwen3_moe": ("Qwen3Moe", dict(BASE, head_dim=24, num_hidden_layers=3, moe_intermediate_size=40, num_experts=5,
                                   num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[1]), {}),
    "qwen3_moe-legacy": ("Qwen3Moe", dict(SMALL, head_dim=16, moe_intermediate_size=56, num_experts=3, num_experts_per_tok=2,
                                          norm_topk_prob=False), dict(config=legacy)),
    "gpt_oss": ("GptOss", dict(SMALL, head_dim=24, num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=2,
                               sliding_window=8, swiglu_limit=1.5, rope_parameters=dict(YARN, truncate=False)), {}),
    # Heads and hidden units can be divided by two ranks, the vocabulary cannot.
    "gpt_oss-even": ("GptOss", dict(BASE, vocab_size=VOCAB + 1, head_dim=16, intermediate_size=48, num_hidden_layers=1, num_local_experts=3,
                                    num_experts_per_tok=2, rope_parameters=YARN), {}),
    "gpt_oss-mxfp4": ("GptOss", dict(BASE, head_dim=16, intermediate_size=96, num_local_experts=3, num_experts_per_tok=2,
                                     sliding_window=8, rope_parameters=dict(YARN, truncate=False)),
                      dict(weights=on_mxfp4_grid, tensors=mxfp4_tensors, config=mxfp4, folder="../quantized")),
    "mixtral": ("Mixtral", dict(SMALL, num_local_experts=3, num_experts_per_tok=2), {}),
    "qwen2_moe": ("Qwen2Moe", dict(SMALL, moe_intermediate_size=40, shared_expert_intermediate_size=72, num_experts=5,
                                   num_experts_per_tok=3, decoder_sparse_step=2), {}),
    "olmoe": ("Olmoe", dict(SMALL, num_experts=6, num_experts_per_tok=3), {}),
    "granite_moe": ("GraniteMoe", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=12.0,
                                       logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0625), {}),
    "qwen3_next": ("Qwen3Next", dict(BASE, head_dim=24, num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4,
                                     linear_key_head_dim=12, linear_value_head_dim=20, moe_intermediate_size=40,
                                     shared_expert_intermediate_size=56, num_experts=5, num_experts_per_tok=2,
                                     mlp_only_layers=[1]), {}),
    "qwen3_5": ("Qwen3_5Text", dict(BASE, head_dim=40, num_hidden_layers=3, linear_num_key_heads=3, linear_num_value_heads=3,
                                    linear_key_head_dim=24, linear_value_head_dim=16, linear_conv_kernel_dim=3,
                                    layer_types=["linear_attention", "full_attention", "linear_attention"],
                                    tie_word_embeddings=True), dict(model="Qwen3_5ForCausalLM")),
    "qwen3_5-multimodal": ("Qwen3_5Text", dict(SMALL, head_dim=16, num_hidden_layers=3, linear_num_key_heads=1,
                                               linear_num_value_heads=3, linear_key_head_dim=70, linear_value_head_dim=72,
                                               layer_types=["linear_attention"] * 2 + ["full_attention"]),
                           dict(model="Qwen3_5ForCausalLM", config=nested_qwen3_5, tensors=nested_qwen3_5_tensors)),
    "qwen3_5_moe-each": ("Qwen3_5MoeText", QWEN3_5_MOE, dict(model="Qwen3_5MoeForCausalLM", weights=decided_routers)),
    "qwen3_5_moe-stacked": ("Qwen3_5MoeText", dict(QWEN3_5_MOE, num_hidden_layers=2, full_attention_interval=2),
                            dict(model="Qwen3_5MoeForCausalLM", weights=decided_routers, tensors=stacked_experts)),
    "deepseek_v2": ("DeepseekV2", dict(LATENT, q_lora_rank=None, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                       routed_scaling_factor=2.0, rope_parameters=dict(YARN, mscale=0.707, mscale_all_dim=0.707)),
                    dict(weights=decided_routers, config=deepseek)),
    "deepseek_v2-q_lora": ("DeepseekV2", dict(LATENT, hidden_size=48, num_attention_heads=3, q_lora_rank=20, kv_lora_rank=64,
                                              attention_bias=True, first_k_dense_replace=2),
                           dict(weights=decided_routers)),
    "deepseek_v3": ("DeepseekV3", dict(LATENT, q_lora_rank=40, n_group=4, topk_group=2, norm_topk_prob=True,
                                       rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0)),
                    dict(weights=biased_routers, config=deepseek, tensors=with_predictor)),
    "deepseek_v3-halves": ("DeepseekV3", dict(LATENT, hidden_size=48, num_attention_heads=3, q_lora_rank=None, n_group=1,
                                              topk_group=1, norm_topk_prob=False, rope_interleave=False,
                                              n_shared_experts=1), dict(weights=biased_routers)),
    "glm4_moe": ("Glm4Moe", dict(SMALL, head_dim=24, num_hidden_layers=3, use_qk_norm=True, attention_bias=True,
                                 moe_intermediate_size=40, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1,
                                 routed_scaling_factor=1.5), dict(weights=biased_routers)),
    "glm4_moe_lite": ("Glm4MoeLite", dict(SMALL, num_key_value_heads=3, num_hidden_layers=2, q_lora_rank=24, kv_lora_rank=32,
                                          qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=64, moe_intermediate_size=40,
                                          n_routed_experts=5, num_experts_per_tok=2, n_shared_experts=1),
                      dict(weights=biased_routers)),
    "dots1": ("Dots1", dict(SMALL, head_dim=24, moe_intermediate_size=40, n_routed_experts=6, num_experts_per_tok=2,
                            n_group=2, topk_group=1, n_shared_experts=2, first_k_dense_replace=1, norm_topk_prob=True,
                            routed_scaling_factor=1.5), dict(weights=biased_routers)),
    "lfm2": ("Lfm2", dict(SMALL, num_hidden_layers=4, block_auto_adjust_ff_dim=False,
                          layer_types=["conv", "full_attention", "conv", "conv"]), {}),
    "lfm2-indices": ("Lfm2", dict(BASE, num_hidden_layers=3, conv_L_cache=4, conv_bias=True, tie_word_embeddings=False,
                                  full_attn_idxs=[2], block_multiple_of=16, block_ffn_dim_multiplier=1.3),
                     dict(config=lfm2_indices)),
    "lfm2_moe": ("Lfm2Moe", dict(SMALL, num_hidden_layers=3, moe_intermediate_size=40, num_experts=5, num_experts_per_tok=2,
                                 num_dense_layers=1, layer_types=["conv", "conv", "full_attention"]),
                 dict(weights=biased_routers)),
    "mamba2": ("Mamba2", dict(vocab_size=VOCAB, hidden_size=48, num_heads=6, head_dim=16, state_size=20, n_groups=2,
                              num_hidden_layers=2, time_step_limit=(0.2, 0.9)), {}),
    "bamba": ("Bamba", dict(SMALL, **MAMBA2, num_hidden_layers=3, attn_layer_indices=[1]), {}),
    "granite_moe_hybrid": ("GraniteMoeHybrid", dict(SMALL, **MAMBA2, num_hidden_layers=3, shared_intermediate_size=56,
                                                    num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=12.0,
                                                    logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0625,
                                                    layer_types=["mamba", "attention", "mamba"]), {}),
    "granite_moe_hybrid-dense": ("GraniteMoeHybrid", dict(SMALL, **dict(MAMBA2, mamba_n_groups=1), num_hidden_layers=2,
                                                          shared_intermediate_size=56, num_local_experts=0, num_experts_per_tok=0,
                                                          position_embedding_type="rope", tie_word_embeddings=True,
                                                          layer_types=["mamba", "attention"]), {}),
    "nemotron_h": ("NemotronH", dict(SMALL, head_dim=24, mamba_num_heads=6, mamba_head_dim=12, ssm_state_size=20, n_groups=3,
                                     layers_block_type=["mamba", "mlp", "attention", "mlp"]), {}),
    "nemotron_h-moe": ("NemotronH", dict(SMALL, head_dim=16, mamba_num_heads=4, mamba_head_dim=40, ssm_state_size=72, n_groups=2,
                                         moe_intermediate_size=40, moe_shared_expert_intermediate_size=56, n_routed_experts=6,
                                         num_experts_per_tok=2, routed_scaling_factor=1.5, hybrid_override_pattern="ME*"),
                       dict(weights=biased_routers)),
    "nemotron_h-latent": ("NemotronH", dict(SMALL, head_dim=24, mamba_num_heads=4, mamba_head_dim=24, ssm_state_size=20, n_groups=2, moe_latent_size=32,
                                            moe_intermediate_size=40, moe_shared_expert_intermediate_size=56, n_routed_experts=5,
                                            num_experts_per_tok=3, routed_scaling_factor=2.5, hybrid_override_pattern="ME*E"),
                          dict(weights=biased_routers)),
    "falcon_h1": ("FalconH1", dict(SMALL, **MAMBA2, mamba_d_ssm=96, mamba_rms_norm=False, embedding_multiplier=5.0,
                                   lm_head_multiplier=0.3, key_multiplier=0.5, attention_in_multiplier=0.9,
                                   attention_out_multiplier=0.7, ssm_in_multiplier=1.3, ssm_out_multiplier=0.4,
                                   ssm_multipliers=[0.35, 0.25, 0.7, 0.5, 0.8], mlp_multipliers=[0.6, 0.4]), {}),
    "falcon_h1-norm": ("FalconH1", dict(SMALL, **MAMBA2, mamba_d_ssm=96, mamba_rms_norm=True, mamba_norm_before_gate=True), {}),
    "mamba": ("Mamba", dict(vocab_size=VOCAB, hidden_size=40, state_size=12, num_hidden_layers=2, time_step_rank=6), {}),
    "gemma4": ("Gemma4Text", dict(SMALL, num_hidden_layers=5, head_dim=16, global_head_dim=24, hidden_size_per_layer_input=16,
                                  vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=2, use_double_wide_mlp=True,
                                  sliding_window=9, layer_types=["sliding_attention", "full_attention", "sliding_attention"] +
                                  ["sliding_attention", "full_attention"]),
               dict(model="Gemma4ForCausalLM", weights=scaled_layers, config=gemma4)),
    "gemma4-dense": ("Gemma4Text", dict(BASE, num_hidden_layers=3, head_dim=24, global_head_dim=48, hidden_size_per_layer_input=0,
                                        attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=30.0,
                                        sliding_window=12, layer_types=["sliding_attention", "full_attention", "full_attention"]),
                     dict(model="Gemma4ForCausalLM", weights=scaled_layers)),
    "gemma4_unified": ("Gemma4UnifiedText", dict(BASE, num_hidden_layers=4, head_dim=24, global_head_dim=48, attention_k_eq_v=True, num_global_key_value_heads=1, num_kv_shared_layers=1,
                                                 sliding_window=9, layer_types=["sliding_attention", "sliding_attention", "full_attention", "full_attention"]), dict(
        model="Gemma4UnifiedForCausalLM", weights=scaled_layers, tensors=UNIFIED["tensors"], config=lambda config: UNIFIED["config"](gemma4(config)))),
    "gemma4-experts": ("Gemma4Text", dict(SMALL, num_hidden_layers=3, head_dim=16, global_head_dim=32, hidden_size_per_layer_input=0,
                                          attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True, num_experts=5,
                                          top_k_experts=2, moe_intermediate_size=40, sliding_window=10,
                                          layer_types=["sliding_attention", "sliding_attention", "full_attention"]),
                       dict(model="Gemma4ForCausalLM", weights=scaled_experts, config=gemma4)),
    "gemma4-experts-each": ("Gemma4Text", dict(SMALL, head_dim=16, global_head_dim=24, hidden_size_per_layer_input=0,
                                               enable_moe_block=True, num_experts=3, top_k_experts=2, moe_intermediate_size=24,
                                               sliding_window=12, layer_types=["sliding_attention", "full_attention"]),
                            dict(model="Gemma4ForCausalLM", weights=scaled_experts, tensors=each_expert)),
    "gemma3n": ("Gemma3nText", dict(SMALL, num_hidden_layers=5, head_dim=24, hidden_size_per_layer_input=16, num_kv_shared_layers=2,
                                    vocab_size_per_layer_input=VOCAB - 8, intermediate_size=[64, 72, 64, 80, 64], laurel_rank=10,
                                    activation_sparsity_pattern=[0.6, 0.0, 0.3, 0.0, 0.9], sliding_window=9,
                                    layer_types=["sliding_attention", "full_attention", "sliding_attention"] +
                                    ["sliding_attention", "full_attention"]),
                dict(model="Gemma3nForCausalLM")),
    "gemma3n-eyes": ("Gemma3nText", dict(BASE, num_hidden_layers=3, head_dim=16, hidden_size_per_layer_input=12, num_kv_shared_layers=0,
                                         vocab_size_per_layer_input=VOCAB, intermediate_size=40, laurel_rank=6, altup_num_inputs=3,
                                         altup_correct_scale=False, final_logit_softcapping=5.0, sliding_window=8,
                                         layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
                     dict(model="Gemma3nForCausalLM", config=nested_gemma3n, tensors=nested_gemma3n_tensors)),
    "kimi_linear": ("KimiLinear", dict(BASE, num_hidden_layers=4, num_key_value_heads=None, kv_lora_rank=32, qk_nope_head_dim=24,
                                       qk_rope_head_dim=8, v_head_dim=32, moe_intermediate_size=24, num_local_experts=6, n_shared_experts=2,
                                       num_experts_per_tok=3, n_group=2, topk_group=1, routed_scaling_factor=2.4, linear_head_dim=24,
                                       linear_num_heads=3, linear_conv_kernel_dim=3,
                                       layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"]),
                    dict(weights=biased_routers)),
    "kimi_linear-published": ("KimiLinear", dict(SMALL, num_hidden_layers=3, num_key_value_heads=None, kv_lora_rank=64, qk_nope_head_dim=16,
                                                 qk_rope_head_dim=16, v_head_dim=32, moe_intermediate_size=40, num_local_experts=5,
                                                 n_shared_experts=1, num_experts_per_tok=2, norm_topk_prob=False, linear_head_dim=80, linear_num_heads=1,
                                                 layer_types=["linear_attention", "full_attention", "linear_attention"]),
                              dict(weights=biased_routers, config=kimi_linear, tensors=kimi_linear_tensors)),
    "minimax": ("MiniMax", dict(SMALL, num_hidden_layers=4, head_dim=24, num_local_experts=4, num_experts_per_tok=2, full_attn_alpha_factor=1.5,
                                full_attn_beta_factor=0.7, linear_attn_alpha_factor=2.0, linear_attn_beta_factor=1.2, mlp_alpha_factor=0.8,
                                mlp_beta_factor=1.1, block_size=16), dict(weights=exact_rates)),
    "minimax_text_01": ("MiniMax", dict(BASE, num_hidden_layers=3, num_local_experts=3, num_experts_per_tok=2, linear_attn_alpha_factor=3.5,
                                        full_attn_alpha_factor=3.5, mlp_alpha_factor=3.5, block_size=8,
                                        layer_types=["linear_attention", "linear_attention", "full_attention"]),
                        dict(weights=exact_rates, config=minimax_text_01)),
    "deepseek_v32": ("DeepseekV32", dict(LATENT, q_lora_rank=40, n_routed_experts=3, n_group=1, topk_group=1, index_topk=9, index_head_dim=32, index_n_heads=16,
                                         num_key_value_heads=4), dict(weights=biased_routers)),
    "glm_moe_dsa": ("GlmMoeDsa", dict(LATENT, q_lora_rank=24, n_routed_experts=3, n_group=1, topk_group=1, index_topk=12, index_head_dim=16, index_n_heads=20,
                                      num_key_value_heads=4), dict(weights=biased_routers)),
    "glm_moe_dsa-shared": ("GlmMoeDsa", dict(LATENT, num_hidden_layers=5, q_lora_rank=32, n_routed_experts=4, n_group=1, topk_group=1, index_topk=10, index_head_dim=24,
                                             index_n_heads=6, num_key_value_heads=4, indexer_types=["full", "shared", "full", "shared", "shared"]), dict(
        weights=biased_routers, config=index_pattern)),
    "hy_v4": ("HYV4", HY_V4, dict(weights=hy_v4_weights, tensors=hy_v4_tensors)),
    "deepseek_v4": ("DeepseekV4", dict({name: value for name, value in SMALL.items() if name != "intermediate_size"}, num_attention_heads=4, head_dim=48,
                                       partial_rotary_factor=1 / 3, q_lora_rank=40, num_hidden_layers=5, moe_intermediate_size=40, n_routed_experts=5,
                                       num_experts_per_tok=2, sliding_window=9, o_groups=2, o_lora_rank=24, index_n_heads=18, index_head_dim=24,
                                       index_topk=3, hc_mult=3, hc_sinkhorn_iters=5, swiglu_limit=1.5, rope_parameters=dict(YARN, factor=16.0, original_max_position_embeddings=16),
                                       layer_types=["sliding_attention"] + ["heavily_compressed_attention", "compressed_sparse_attention"] * 2,
                                       compress_rates=dict(compressed_sparse_attention=4, heavily_compressed_attention=8),
                                       mlp_layer_types=["hash_moe"] * 2 + ["moe"] * 3), dict(weights=hashed_routers, tensors=deepseek_v4_tensors)),
    "deepseek_v4-fp8-mxfp4": ("DeepseekV4", dict({name: value for name, value in BASE.items() if name != "intermediate_size"}, num_attention_heads=4, head_dim=32,
                                                 partial_rotary_factor=1 / 2, q_lora_rank=32, num_hidden_layers=3, moe_intermediate_size=32, n_routed_experts=4,
                                                 num_experts_per_tok=2, sliding_window=9, o_groups=2, o_lora_rank=32, index_n_heads=2, index_head_dim=32,
                                                 index_topk=12, hc_mult=2, hc_sinkhorn_iters=5, rope_parameters=dict(YARN, factor=16.0, original_max_position_embeddings=16),
                                                 layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
                                                 mlp_layer_types=["hash_moe"] * 2 + ["moe"]),
                              dict(weights=as_v4_is_published, tensors=published_v4_tensors, config=published_v4, folder="../quantized")),
    "olmo_hybrid": ("OlmoHybrid", dict(SMALL, num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=20, linear_value_head_dim=24,
                                       layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"],
                                       rope_parameters=dict(rope_type="default", rope_theta=5e5)), dict(tensors=olmo_hybrid_tensors)),
    "olmo_hybrid-nope": ("OlmoHybrid", dict(BASE, linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=16, linear_value_head_dim=40, linear_conv_kernel_dim=3,
                                            linear_allow_neg_eigval=False, layer_types=["linear_attention", "full_attention"], rope_parameters=dict(rope_type="default", rope_theta=None)),
                         dict(tensors=olmo_hybrid_tensors)),
    "pangu_embedded": ("Llama", dict(SMALL, attention_bias=True, head_dim=24), dict(zip(("config", "tensors"), renamed("PanguEmbeddedForCausalLM", fields=[("attention_bias", "bias")])))),
    "rnj1": ("Gemma3Text", dict(SMALL, num_hidden_layers=3, head_dim=16, query_pre_attn_scalar=20, layer_types=["full_attention"] * 3, final_logit_softcapping=20.0,
                                rope_parameters=dict(full_attention=dict(YARN, rope_theta=1e4), sliding_attention=dict(rope_type="default", rope_theta=1e4))),
             dict(zip(("config", "tensors"), renamed("Rnj1ForCausalLM", config=lambda saved: saved)))),
    "falcon_mamba": ("FalconMamba", dict(vocab_size=VOCAB, hidden_size=40, state_size=12, num_hidden_layers=2, time_step_rank=6), {}),
    "jamba": ("Jamba", dict(SMALL, num_hidden_layers=4, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2,
                            expert_layer_offset=1, num_experts=3, num_experts_per_tok=2, mamba_d_state=12, mamba_d_conv=3,
                            mamba_dt_rank=5), dict(weights=decided_routers)),
    "gpt2": ("GPT2", dict(vocab_size=VOCAB, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
                          eos_token_id=2), dict(model="GPT2LMHeadModel")),
    "gpt2-by-layer": ("GPT2", dict(vocab_size=VOCAB, n_embd=48, n_layer=3, n_head=3, n_positions=64, n_inner=80,
                                   scale_attn_by_inverse_layer_idx=True, bos_token_id=1, eos_token_id=2),
                      dict(model="GPT2LMHeadModel", tensors=first_gpt2_tensors)),
    "gpt_neox": ("GPTNeoX", dict(BASE, rope_parameters=dict(rope_type="default", rope_theta=1e4,
                                                            partial_rotary_factor=0.25)), {}),
    "smollm3": ("SmolLM3", dict(SMALL, num_hidden_layers=3, no_rope_layer_interval=2, head_dim=24), {}),
    "smollm3-window": ("SmolLM3", dict(SMALL, num_hidden_layers=3, no_rope_layers=[0, 1, 1], use_sliding_window=True, sliding_window=9),
                       dict(config=legacy)),
    "ministral": ("Ministral", dict(SMALL, head_dim=24, sliding_window=8, layer_types=["full_attention", "sliding_attention"]), {}),
    "ministral3": ("Ministral3", dict(SMALL, num_attention_heads=4, num_key_value_heads=2, head_dim=24, rope_parameters=dict(YARN, factor=16.0, original_max_position_embeddings=8, mscale=1.0,
                                                                              mscale_all_dim=1.0, llama_4_scaling_beta=0.3)), {}),
    "mistral3": ("Ministral3", dict(SMALL, head_dim=16, rope_parameters=dict(YARN, original_max_position_embeddings=16, llama_4_scaling_beta=0.1)),
                 beside_eyes("Mistral3ForConditionalGeneration", "mistral3")),
    "cohere": ("Cohere", dict(SMALL, logit_scale=0.5, use_qk_norm=True), {}),
    "cohere-plain": ("Cohere", dict(BASE, logit_scale=0.25), dict(config=legacy)),
    "cohere2": ("Cohere2", dict(SMALL, num_hidden_layers=4, logit_scale=0.5, sliding_window=8), {}),
    "olmo": ("Olmo", dict(SMALL), {}),
    "olmo3": ("Olmo3", dict(SMALL, num_hidden_layers=4, sliding_window=8, rope_parameters=dict(
        full_attention=YARN, sliding_attention=dict(rope_type="default", rope_theta=10000.0))), {}),
    "exaone4": ("Exaone4", dict(SMALL, num_hidden_layers=4, sliding_window=8, head_dim=16), {}),
    "exaone4-full": ("Exaone4", dict(SMALL, head_dim=24, sliding_window=None, layer_types=["full_attention"] * 2), dict(config=legacy)),
    "ernie4_5": ("Ernie4_5", dict(SMALL, head_dim=24, use_bias=True), {}),
    "ernie4_5_moe": ("Ernie4_5_Moe", dict(SMALL, num_hidden_layers=3, moe_intermediate_size=40, moe_num_experts=5, moe_k=2,
                                          moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1),
                     dict(weights=biased_experts)),
    "hunyuan_v1_dense": ("HunYuanDenseV1", dict(SMALL, num_attention_heads=4, head_dim=24, rope_parameters=dict(
        rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0)), {}),
    "hunyuan_v1_moe": ("HunYuanMoEV1", dict(SMALL, head_dim=16, num_experts=5, moe_topk=2), dict(weights=decided_routers)),
    "seed_oss": ("SeedOss", dict(SMALL, head_dim=24, attention_bias=True, attention_out_bias=False), {}),
    "arcee": ("Arcee", dict(SMALL, head_dim=24), {}),
    "apertus": ("Apertus", dict(BASE, rope_parameters=LLAMA3), dict(weights=spread_slopes)),
    "cwm": ("Cwm", dict(SMALL, num_hidden_layers=5, sliding_window=8, head_dim=16, rope_parameters=LLAMA3), {}),
    "phi": ("Phi", dict(SMALL, num_hidden_layers=3, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), {}),
    "phi-normed": ("Phi", dict(SMALL, qk_layernorm=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.75)), dict(config=legacy)),
    "phimoe": ("Phimoe", dict(SMALL, num_local_experts=5, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True,
                              router_jitter_noise=0.2, sliding_window=None), dict(weights=decided_routers)),
    "phimoe-longrope": ("Phimoe", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, sliding_window=12, original_max_position_embeddings=64,
                                       rope_parameters=longrope(8, short_mscale=1.2, long_mscale=1.2, original_max_position_embeddings=64)),
                        dict(weights=decided_routers, max_model_len=64)),
    "starcoder2": ("Starcoder2", dict(SMALL, sliding_window=8), {}),
    "minimax_m2": ("MiniMaxM2", dict(SMALL, num_key_value_heads=3, head_dim=24, num_local_experts=6, num_experts_per_tok=3, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), dict(weights=biased_experts)),
    "falcon": ("Falcon", dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, bos_token_id=1, eos_token_id=2), {}),
    "falcon-new": ("Falcon", dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, bias=True,
                                  new_decoder_architecture=True, bos_token_id=1, eos_token_id=2), {}),
    "falcon-one-norm": ("Falcon", dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=1, ffn_hidden_size=80,
                                       new_decoder_architecture=True, num_ln_in_parallel_attn=1, bos_token_id=1, eos_token_id=2), {}),
    "falcon-refined_web": ("Falcon", dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True,
                                          bos_token_id=1, eos_token_id=2), dict(config=refined_web)),
    "falcon-rw": ("Falcon", dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, alibi=True, multi_query=False,
                                 parallel_attn=False, bias=True, bos_token_id=1, eos_token_id=2),
                  dict(attention="sdpa")),  # eager attention applies the slopes twice, because they are
                                            # also in the mask
    "opt": ("OPT", dict(vocab_size=VOCAB, hidden_size=48, word_embed_proj_dim=48, ffn_dim=72, num_hidden_layers=2, num_attention_heads=3,
                        max_position_embeddings=64, pad_token_id=1, bos_token_id=2, eos_token_id=2), {}),
    "opt-galactica": ("OPT", dict(vocab_size=VOCAB, hidden_size=48, word_embed_proj_dim=48, ffn_dim=72, num_hidden_layers=2, num_attention_heads=3,
                                  activation_function="gelu", enable_bias=False, layer_norm_elementwise_affine=False,
                                  max_position_embeddings=48, pad_token_id=1, bos_token_id=2, eos_token_id=2), {}),
    "bloom": ("Bloom", dict(vocab_size=VOCAB, hidden_size=48, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2), {}),
    "bloom-older": ("Bloom", dict(vocab_size=VOCAB, hidden_size=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2), dict(config=older_bloom)),
    "mpt": ("Mpt", dict(vocab_size=VOCAB, d_model=64, n_layers=2, n_heads=4, max_seq_len=64, attn_config=dict(softmax_scale=0.3)), {}),
    "gptj": ("GPTJ", dict(vocab_size=VOCAB, n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_positions=64, bos_token_id=1, eos_token_id=2), {}),
    "gpt_bigcode": ("GPTBigCode", dict(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=3, n_positions=64, bos_token_id=1, eos_token_id=2), {}),
    "gpt_bigcode-heads": ("GPTBigCode", dict(vocab_size=VOCAB, n_embd=48, n_layer=2, n_head=3, n_positions=64, multi_query=False, n_inner=80,
                                             bos_token_id=1, eos_token_id=2), {}),
    "nemotron": ("Nemotron", dict(SMALL, head_dim=24), {}),
    "internlm2": ("Llama", dict(BASE, head_dim=24), dict(config=INTERNLM2[0], tensors=internlm2_tensors)),
    "internlm3": ("InternLM3", dict(SMALL, head_dim=24, attention_bias=True, mlp_bias=True), dict(model="LlamaForCausalLM", config=internlm3)),
    "exaone": ("Llama", dict(SMALL, head_dim=24), dict(config=EXAONE[0], tensors=EXAONE[1])),
    "minicpm": ("Granite", dict(SMALL, embedding_multiplier=12.0, logits_scaling=4.0, residual_multiplier=0.9, attention_multiplier=0.25), dict(config=minicpm)),
    "orion": ("StableLm", dict(SMALL, use_qkv_bias=False, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)),
              dict(config=ORION[0])),
    "granite_moe_shared": ("GraniteMoeShared", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=40, embedding_multiplier=12.0,
                                                    logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0625), {}),
    "baichuan": ("Llama", dict(SMALL, num_key_value_heads=3), dict(config=BAICHUAN[0], tensors=baichuan_tensors)),
    "baichuan_13b": ("Llama", dict(SMALL, num_key_value_heads=3), dict(config=BAICHUAN_13B[0], tensors=baichuan_tensors, run=with_alibi)),
    "chatglm": ("Glm", dict(BASE, head_dim=16, attention_bias=True, rope_parameters=dict(rope_type="default", rope_theta=5e5,
                                                                                      partial_rotary_factor=0.5)),
                dict(config=chatglm, tensors=chatglm_tensors)),
    "mimo": ("Qwen2", SMALL, dict(config=MIMO[0], tensors=mimo_tensors)),
    "llama4": ("Llama4Text", dict(SMALL, num_hidden_layers=4, head_dim=16, intermediate_size_mlp=80, num_local_experts=3, num_experts_per_tok=1,
                                  attention_chunk_size=12, no_rope_layers=[1, 0, 1, 1], interleave_moe_layer_step=2, floor_scale=8, attn_scale=0.3),
               dict(model="Llama4ForCausalLM", weights=decided_routers)),
    "llama4-eyes": ("Llama4Text", dict(SMALL, head_dim=24, num_hidden_layers=2, intermediate_size_mlp=80, num_local_experts=3, num_experts_per_tok=1,
                                       attention_chunk_size=16, use_qk_norm=False, no_rope_layers=[0, 1], attn_temperature_tuning=False),
                    dict(model="Llama4ForCausalLM", weights=decided_routers,
                         **beside_eyes("Llama4ForConditionalGeneration", "llama4"))),
    "mistral4": ("Mistral4", dict(SMALL, num_key_value_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8,
                                  v_head_dim=32, moe_intermediate_size=24, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
                                  first_k_dense_replace=1, rope_parameters=dict(
                                      rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                                      beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3)),
                 dict(weights=decided_routers)),
    "mistral_large3": ("Mistral4", dict(SMALL, num_key_value_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8,
                                        v_head_dim=32, moe_intermediate_size=24, n_routed_experts=5, num_experts_per_tok=2, n_group=1, topk_group=1,
                                        first_k_dense_replace=1, rope_parameters=dict(
                                            rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                                            beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3)),
                       dict(weights=decided_routers, **in_mistrals_format(dict(
                           q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32,
                           yarn=dict(factor=4, original_max_position_embeddings=16, beta=32, alpha=1, apply_scale=True),
                           llama_4_scaling=dict(beta=0.3, original_max_position_embeddings=16),
                           moe=dict(expert_parallel=1, route_every_n=1, first_k_dense_replace=1, num_experts=5, num_experts_per_tok=2, num_expert_groups=1,
                                    num_expert_groups_per_tok=1, routed_scale=1.0, expert_hidden_dim=24, num_shared_experts=1))))),
    "ministral3-params": ("Ministral3", dict(SMALL, head_dim=24, rope_parameters=dict(
        YARN, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.2)), in_mistrals_format(dict(
            yarn=dict(factor=4, original_max_position_embeddings=16, beta=32, alpha=1, apply_scale=False),
            llama_4_scaling=dict(beta=0.2, original_max_position_embeddings=16)), heads=(3, 1))),
    "ministral-params": ("Ministral", dict(BASE, num_hidden_layers=3, head_dim=16, sliding_window=8, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"]), in_mistrals_format(dict(sliding_window=[8, None, 8]), heads=(4, 2))),
    "mixtral-params": ("Mixtral", dict(SMALL, num_local_experts=3, num_experts_per_tok=2, head_dim=16, sliding_window=None), dict(
        weights=decided_routers, **in_mistrals_format(dict(moe=dict(num_experts=3, num_experts_per_tok=2)), heads=(3, 1)))),
    "zamba2": ("Zamba2", dict(ZAMBA2, num_mem_blocks=2, use_shared_attention_adapter=True, use_mem_rope=True), dict(weights=small_uses)),
    "zamba2-plain": ("Zamba2", dict(ZAMBA2, num_mem_blocks=1, add_bias_linear=True), dict(weights=small_uses)),
    "step3": ("Step3Text", STEP3, dict(weights=decided_routers)),
    "rwkv7": ("RWKV7", dict(RWKV7, hidden_size=60, head_dim=20, num_hidden_layers=3, intermediate_size=88, fuse_norm=True, norm_first=True, norm_bias=True),
              dict(weights=rwkv7_vectors)),
    "rwkv7-older": ("RWKV7", dict(RWKV7, hidden_size=72, head_dim=72, num_hidden_layers=2, intermediate_size=224, fuse_norm=False, norm_first=False,
                                  norm_bias=False, norm_eps=1e-6), dict(weights=rwkv7_vectors, config=older_rwkv7, tensors=older_rwkv7_tensors)),
    "solar_open": ("SolarOpen", dict({name: value for name, value in SMALL.items() if name != "intermediate_size"}, head_dim=24,
                                     moe_intermediate_size=40, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1),
                   dict(weights=biased_routers)),
    "exaone_moe": ("ExaoneMoe", dict(SMALL, num_hidden_layers=4, head_dim=24, moe_intermediate_size=40, num_experts=6, num_experts_per_tok=2,
                                     num_shared_experts=2, sliding_window=9), dict(weights=biased_routers)),
    "flex_olmo": ("FlexOlmo", dict(SMALL, num_experts=5, num_experts_per_tok=2), dict(weights=decided_routers)),
    "youtu": ("Youtu", dict(SMALL, pad_token_id=None, num_key_value_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8,
                            v_head_dim=32), {}),
    "vaultgemma": ("VaultGemma", dict(SMALL, head_dim=24, sliding_window=8, query_pre_attn_scalar=24), {}),
    "helium": ("Helium", dict(SMALL, head_dim=16), {}),
    "hyperclovax": ("HyperCLOVAX", dict(SMALL, head_dim=16, embedding_multiplier=6.0, logits_scaling=0.5, residual_multiplier=0.8,
                                        attention_multiplier=0.2), {}),
    "hyperclovax-plain": ("HyperCLOVAX", dict(SMALL, head_dim=16, use_post_norm=False, attention_bias=True, tie_word_embeddings=True), {}),
    "jais2": ("Jais2", dict(SMALL, head_dim=16), {}),
    "afmoe": ("Afmoe", dict(SMALL, num_hidden_layers=3, head_dim=24, moe_intermediate_size=40, num_experts=5, num_experts_per_tok=2, num_shared_experts=2, route_scale=1.7,
                            num_dense_layers=1, global_attn_every_n_layers=2, sliding_window=9, mup_enabled=True), dict(weights=biased_experts)),
    "bailing": ("Qwen2Moe", dict(SMALL, head_dim=24, qkv_bias=False, moe_intermediate_size=40, shared_expert_intermediate_size=80, num_experts=5, num_experts_per_tok=2,
                                 norm_topk_prob=True, mlp_only_layers=[0]),
                dict(weights=decided_routers, config=bailing, tensors=drop_shared_gates(bailing_tensors), run=run_without_shared_gates)),
    "bailing-v2": ("Glm4Moe", dict(SMALL, head_dim=24, use_qk_norm=True, moe_intermediate_size=40, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1, n_group=3,
                                   topk_group=2, first_k_dense_replace=1, routed_scaling_factor=2.5), dict(weights=biased_routers, config=bailing, tensors=bailing_tensors)),
    "cohere2_moe": ("Cohere2Moe", dict(SMALL, num_hidden_layers=4, head_dim=24, logit_scale=0.5, sliding_window=8, num_experts=5, num_experts_per_tok=2, num_shared_experts=1,
                                       first_k_dense_replace=1, prefix_dense_intermediate_size=72, sliding_window_pattern=2), dict(weights=decided_routers)),
    "cohere2_moe-sums": ("Cohere2Moe", dict(SMALL, head_dim=16, logit_scale=0.25, sliding_window=12, num_experts=3, num_experts_per_tok=2, num_shared_experts=2,
                                            shared_expert_combination_strategy="sum", expert_selection_fn="sigmoid", rms_norm_eps=1e-5,
                                            layer_types=["sliding_attention", "full_attention"]), dict(weights=decided_routers)),
    "deepseek_v1": ("Qwen2Moe", dict(SMALL, qkv_bias=False, moe_intermediate_size=40, shared_expert_intermediate_size=80, num_experts=5, num_experts_per_tok=3, mlp_only_layers=[0]),
                    dict(weights=decided_routers, config=deepseek_v1, tensors=drop_shared_gates(DEEPSEEK_V1[1]), run=run_without_shared_gates)),
    "granite_swa": ("GraniteSWA", dict(SMALL, num_hidden_layers=4, head_dim=24, sliding_window=9, layer_rope_theta=[0, 1e4, 5e5, 1e4], embedding_multiplier=12.0,
                                       logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0625), {}),
    "granite_moe_swa": ("GraniteMoeSWA", dict(SMALL, num_hidden_layers=3, sliding_window=7, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=40,
                                              embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0625), {}),
    "hy_v3": ("HYV3", dict(SMALL, num_hidden_layers=3, head_dim=24, moe_intermediate_size=40, num_experts=5, num_experts_per_tok=2, num_shared_experts=2), dict(weights=biased_routers)),
    "flint": ("Flint", dict(SMALL, num_hidden_layers=4, head_dim=24, moe_intermediate_size=40, shared_expert_intermediate_size=56, num_experts=3,
                            num_experts_per_tok=2, sliding_window=9, mlp_only_layers=[0],
                            layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"]), dict(weights=decided_routers)),
    "mellum": ("Mellum", dict(SMALL, num_hidden_layers=3, head_dim=24, moe_intermediate_size=40, num_experts=5, num_experts_per_tok=2, sliding_window=9,
                              layer_types=["sliding_attention", "full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse", "sparse"],
                              rope_parameters=dict(full_attention=YARN, sliding_attention=dict(rope_type="default", rope_theta=5e4))), dict(weights=decided_routers)),
    "minicpm3": ("MiniCPM3", dict(SMALL, num_key_value_heads=3, num_attention_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8,
                                  v_head_dim=32, scale_emb=6, scale_depth=1.2, dim_model_base=20, tie_word_embeddings=True,
                                  rope_parameters=longrope(4, original_max_position_embeddings=32, factor=8.0)), dict(max_model_len=64)),
    "axk1": ("AXK1", dict(LATENT, num_key_value_heads=4, q_lora_rank=24, n_group=4, topk_group=2, routed_scaling_factor=2.5), dict(weights=biased_routers)),
    "dbrx": ("Dbrx", dict(vocab_size=VOCAB, d_model=48, n_heads=3, n_layers=2, max_seq_len=256, rope_parameters=dict(rope_type="default", rope_theta=5e5),
                      attn_config=dict(kv_n_heads=1, clip_qkv=1.2, rope_theta=5e5), ffn_config=dict(
        ffn_hidden_size=40, moe_num_experts=5, moe_top_k=2), pad_token_id=0, bos_token_id=1, eos_token_id=2), dict(weights=decided_dbrx)),
    "decilm": ("DeciLM", dict(SMALL, num_hidden_layers=4, num_attention_heads=4, head_dim=24, block_configs=[
        dict(attention=dict(n_heads_in_group=2), ffn=dict(ffn_mult=1.3)), dict(attention=dict(no_op=True), ffn=dict(intermediate_size=40)),
        dict(attention=dict(n_heads_in_group=4), ffn=dict(no_op=True)), dict(attention=dict(n_heads_in_group=1, no_op=False), ffn=dict(ffn_mult=0.4))]), dict(config=legacy)),
    "longcat_flash": ("LongcatFlash", dict(vocab_size=VOCAB, hidden_size=48, num_layers=2, num_attention_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24,
                                           qk_rope_head_dim=8, head_dim=8, v_head_dim=32, ffn_hidden_size=64, expert_ffn_hidden_size=40, n_routed_experts=4, zero_expert_num=3,
                                           moe_topk=3, routed_scaling_factor=1.5, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2),
                      dict(weights=decided_longcat, tensors=real_experts(4))),
    "mimo_v2_flash": ("MiMoV2Flash", dict(SMALL, num_attention_heads=4, num_hidden_layers=3, head_dim=24, v_head_dim=16, moe_intermediate_size=40, n_routed_experts=5,
                                          num_experts_per_tok=2, sliding_window=9, layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
                      dict(weights=biased_routers)),
    "mimo_v2_flash-published": ("MiMoV2Flash", dict(BASE, num_hidden_layers=3, head_dim=48, v_head_dim=32, attention_bias=True, moe_intermediate_size=24, n_routed_experts=3,
                                                    num_experts_per_tok=2, sliding_window=12, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
                                dict(weights=biased_routers, config=published_mimo_v2)),
    "pangu_ultra": ("DeepseekV3", dict(LATENT, moe_intermediate_size=32, q_lora_rank=24, n_group=1, topk_group=1, routed_scaling_factor=2.5),
                    dict(model="PanguUltraMoEForCausalLM", weights=biased_routers, config=pangu_ultra, tensors=lambda tensors: {
                        name.replace("mlp.gate.e_score", "mlp.e_score"): t for name, t in tensors.items()})),
    "bailing-v2_5": ("DeepseekV3", dict(LATENT, num_attention_heads=6, num_key_value_heads=6, num_hidden_layers=4, q_lora_rank=24, n_group=1, topk_group=1, routed_scaling_factor=2.5,
                                        layer_group_size=3, group_norm_size=2, linear_head_dim=16, linear_share=0.5, linear_theta=1e4),
                     dict(model="BailingMoeV2_5ForCausalLM", weights=biased_routers, config=bailing_hybrid, tensors=lambda tensors: {
                         name.replace("embed_tokens", "word_embeddings").replace("self_attn", "attention").replace("o_proj", "dense").replace("e_score_correction_bias", "expert_bias"): t
                         for name, t in tensors.items()})),
    "param2": ("Glm4Moe", dict(SMALL, head_dim=24, use_qk_norm=True, moe_intermediate_size=40, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=2, n_group=1,
                               topk_group=1, first_k_dense_replace=1, routed_scaling_factor=1.5),
               dict(weights=biased_routers, tensors=bailing_tensors, config=lambda config: dict(
                   bailing(config), architectures=["Param2MoEForCausalLM"], num_shared_experts=2, moe_shared_expert_intermediate_size=80))),
    "plamo3": ("Gemma3Text", dict(BASE, num_hidden_layers=3, head_dim=24, query_pre_attn_scalar=24, sliding_window=9, hidden_activation="silu", rms_norm_eps=1e-6,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=dict(
                                      full_attention=dict(rope_type="default", rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=1e4))),
               dict(config=plamo3, tensors=plamo3_tensors)),
    "sarvam_mla": ("DeepseekV3", dict(LATENT, moe_intermediate_size=40, n_group=1, topk_group=1, routed_scaling_factor=2.5, rms_norm_eps=1e-6), dict(weights=biased_routers, config=sarvam_mla)),
    "sarvam_moe": ("Glm4Moe", dict(SMALL, head_dim=16, use_qk_norm=True, moe_intermediate_size=24, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=1,
                                   topk_group=1, first_k_dense_replace=1, routed_scaling_factor=2.5),
                   dict(weights=biased_routers, tensors=bailing_tensors, config=lambda config: dict(bailing(config), architectures=["SarvamMoEForCausalLM"]))),
    "solar": ("Solar", dict(SMALL, num_hidden_layers=6, head_dim=24, bskcn_1=[1, 3], bskcn_2=[2], bskcn_3=[2, 4], bskcn_4=[5], bskcn_tv=[0.9, 0.8]), dict(config=legacy)),
    "step3p5": ("Step3p7", STEP3P7, dict(model="Step3p7ForConditionalGeneration", weights=norms_by_one_more, config=step3p5, tensors=text_tensors)),
    "step3p7": ("Step3p7", STEP3P7, dict(model="Step3p7ForConditionalGeneration", weights=norms_by_one_more)),
    "step3_vl": ("Step3Text", STEP3, dict(weights=decided_routers, **text_beside_eyes("Step3VLForConditionalGeneration", lambda name: name, "vit_downsampler.weight"))),
    "kimi_k25": ("DeepseekV3", dict(LATENT, q_lora_rank=24, num_key_value_heads=4, n_group=1, topk_group=1, routed_scaling_factor=2.5, rope_parameters=YARN), dict(
        weights=biased_routers, **text_beside_eyes("KimiK25ForConditionalGeneration", lambda name: "language_model." + name, "mm_projector.proj.0.weight"))),
    "exaone4_5": ("Exaone4", dict(SMALL, head_dim=24, num_hidden_layers=4, sliding_window=9, layer_types=["sliding_attention"] * 3 + ["full_attention"]), dict(
        **text_beside_eyes("Exaone4_5_ForConditionalGeneration", lambda name: name.replace("model.", "model.language_model."), "model.visual.norm.weight"))),
    "telechat2": ("Llama", dict(BASE, attention_bias=True, mlp_bias=True), dict(weights=no_first_biases, config=TELECHAT2[0], tensors=telechat2_tensors)),
    "teleflm": ("Granite", dict(SMALL, head_dim=16, embedding_multiplier=3.0, logits_scaling=2.5, residual_multiplier=1.0, attention_multiplier=0.25), dict(
        config=TELEFLM[0], tensors=TELEFLM[1])),
    "bailing-v3": ("BailingMoeV3", dict(LATENT, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=24, n_group=2, topk_group=1, routed_scaling_factor=2.5,
                                        layer_group_size=3, linear_head_dim=16, kda_lower_bound=-4.0, short_conv_kernel_size=4), dict(
        weights=decided_bailing_v3, config=bailing_v3, tensors=bailing_v3_tensors)),
    "beam": ("Beam", dict(SMALL, num_hidden_layers=3, head_dim=24, rms_norm_eps=1e-5, moe_intermediate_size=40, num_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2,
                          routed_scaling_factor=1.5, norm_topk_prob=True, sliding_window=9, final_logit_softcapping=8.0, rope_parameters=dict(rope_type="default", rope_theta=5e3),
                          layer_types=["sliding_attention", "full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse", "sparse"]), dict(weights=biased_routers)),
    "dory": ("Dory", dict({name: value for name, value in SMALL.items() if name != "num_hidden_layers"}, num_hidden_layers=6, head_dim=16, sliding_window=9,
                          layer_kinds=["sliding_attention", "mlp", "full_attention", "mlp", "mlp", "sliding_attention"], n_input_layers=1, n_recurrent_layers=3, n_output_layers=2,
                          n_recurrent_loops=2, ngpt_alpha_init=0.05, initializer_range=0.02, attention_output_gate_logit_scale_init=None, hidden_act="silu",
                          ropes={kind: dict(rope_type="default", rope_theta=theta) for kind, theta in (("full_attention", 2e4), ("sliding_attention", 5e3))}), dict(
        weights=dory_weights, config=dory)),
    "domyn_edge": ("DomynEdge", dict(SMALL, num_hidden_layers=3, head_dim=24, head_dims=[24, 16, 24], rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=5e3),
                                     position_layers=["rope", "rope", "nope"], window_sizes=[[8, 0], [5, 0], [-1, -1]]), dict(config=domyn_edge)),
    "laguna": ("Laguna", dict(SMALL, num_hidden_layers=3, head_dim=24, moe_intermediate_size=40, shared_expert_intermediate_size=56, num_experts=5, num_experts_per_tok=2,
                              num_attention_heads_per_layer=[3, 4, 2], moe_routed_scaling_factor=1.5, sliding_window=9,
                              layer_types=["full_attention", "sliding_attention", "full_attention"]), dict(weights=biased_experts_of_laguna)),
    "laguna-elements": ("Laguna", dict(BASE, num_hidden_layers=2, head_dim=16, gating="per-element", moe_intermediate_size=24, shared_expert_intermediate_size=32, num_experts=3,
                                       num_experts_per_tok=2, mlp_layer_types=["sparse", "dense"]), dict(weights=biased_experts_of_laguna)),
    "muse_glimmer": ("MuseGlimmer", dict(SMALL, num_hidden_layers=4, head_dim=24, sliding_window=9, final_logit_softcapping=6.0, output_multiplier=0.4), dict(
        tensors=lambda tensors: {name.replace("model.", "model.language_model."): t for name, t in tensors.items()},
        config=lambda config: dict(architectures=["MuseGlimmerForConditionalGeneration"], model_type="muse_glimmer", tie_word_embeddings=False, text_config=config))),
    "nemotron_h-puzzle": ("NemotronHPuzzle", dict(SMALL, head_dim=16, mamba_num_heads=4, mamba_head_dim=24, ssm_state_size=20, n_groups=2, moe_intermediate_size=40,
                                                  moe_shared_expert_intermediate_size=56, n_routed_experts=6, num_experts_per_tok=2, routed_scaling_factor=1.5,
                                                  hybrid_override_pattern="ME*E", block_configs=[
        dict(block_type="mamba", mamba_num_heads=6), dict(block_type="moe", n_routed_experts=4, moe_intermediate_size=24, num_experts_per_tok=1),
        dict(block_type="attention"), dict(block_type="moe", moe_shared_expert_intermediate_size=40)]), dict(weights=biased_routers, config=puzzle)),
    "step1": ("Step1", dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=6, num_attention_groups=2, max_seq_len=256,
                            rms_norm_eps=1e-5, attention_bias=False, tie_word_embeddings=False, pad_token_id=0, bos_token_id=1, eos_token_id=2), {}),
    "alice_ai": ("AliceAI", dict(SMALL, num_hidden_layers=5, head_dim=24, rms_norm_eps=1e-5, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=16,
                                 linear_value_head_dim=16, linear_conv_kernel_dim=4, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=40,
                                 shared_expert_intermediate_size=56, block_attn_res_block_size=2, norm_topk_prob=True,
                                 rope_parameters=dict(rope_type="default", rope_theta=5e3, partial_rotary_factor=0.5),
                                 layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention", "full_attention"]),
                 dict(weights=decided_alice)),
    "hrm_text": ("HrmText", dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, head_dim=24, H_cycles=2, L_cycles=2,
                                 embedding_scale=8.0, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2), {}),
    "longcat_flash_ngram": ("LongcatFlashNgram", dict(
        vocab_size=VOCAB, hidden_size=48, num_layers=2, num_attention_heads=3, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, head_dim=8, v_head_dim=32,
        ffn_hidden_size=64, expert_ffn_hidden_size=40, n_routed_experts=4, zero_expert_num=3, moe_topk=3, routed_scaling_factor=1.5, max_position_embeddings=256, pad_token_id=0,
        bos_token_id=1, eos_token_id=57, ngram_vocab_size_ratio=1.5, emb_neighbor_num=4, emb_split_num=2), dict(weights=decided_longcat, tensors=real_experts(4))),
    "mimo_v2": ("MiMoV2Flash", dict(BASE, num_hidden_layers=3, head_dim=48, v_head_dim=32, moe_intermediate_size=24, n_routed_experts=3, num_experts_per_tok=2, sliding_window=12,
                                    layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
                dict(weights=decided_mimo, config=mimo_v2, tensors=mimo_v2_tensors)),
    "mimo_v2-chunks": ("MiMoV2Flash", dict(BASE, num_hidden_layers=3, head_dim=48, v_head_dim=24, moe_intermediate_size=24, n_routed_experts=3, num_experts_per_tok=2, sliding_window=12,
                                           layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
                       dict(store=torch.float32, weights=mimo_v2_on_grid, config=mimo_v2_fp8, tensors=lambda tensors: mimo_v2_tensors(tensors, BASE["num_key_value_heads"]))),
    "minimax_m3": ("MiniMaxM3VLText", dict(BASE, num_hidden_layers=3, head_dim=24, rotary_dim=12, dense_intermediate_size=96, intermediate_size=40, shared_intermediate_size=56,
                                           num_local_experts=5, num_experts_per_tok=2, index_n_heads=2, index_head_dim=16, index_block_size=4, index_topk_blocks=3, index_local_blocks=1,
                                           rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5),
                                           layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"], mlp_layer_types=["dense", "sparse", "sparse"]),
                   dict(model="MiniMaxM3VLForCausalLM", weights=decided_m3, config=minimax_m3, tensors=minimax_m3_tensors)),
    "pangu_pro": ("PanguProMoEV2", dict(BASE, num_hidden_layers=3, rms_norm_eps=1e-5, qk_nope_dim=16, qk_rope_dim=8, v_channels=16, param_sink_number=5, param_sink_with_value=True,
                                        qkv_bias=True, moe_intermediate_size=24, num_experts=5, n_routed_experts=5, n_shared_experts=2, num_experts_per_tok=2, n_group=1, topk_group=1,
                                        norm_topk_prob=True, routed_scaling_factor=1.5, first_k_dense_replace=1, sandwich_norm=True, router_enable_expert_bias=True,
                                        num_nextn_predict_layers=0),
                  dict(weights=decided_pangu, tensors=lambda tensors: {name.replace("mlp.gate.e_score", "mlp.e_score"): t for name, t in tensors.items()})),
    "iquest_loopcoder": ("IQuestLoopCoder", dict(SMALL, rms_norm_eps=1e-5, rope_theta=5e3, loop_num=3, loop_window_size=9), {}),
    "olmo-clip": ("Olmo", dict(BASE, clip_qkv=0.7), {}),
    "gpt_neox-serial": ("GPTNeoX", dict(SMALL, use_parallel_residual=False, attention_bias=False, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), dict(config=legacy_gpt_neox, tensors=first_gpt_neox_tensors)),
}


def randomize(model, generator):
    """Sets weights so large that every part of the network affects the logits."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 1:
                # These norms of Gemma and Qwen store weight - 1.
                kind = model.config.model_type
                offset = 1.0 if name.endswith(("norm.weight", "norm_f.weight", ".D")) or ".norms." in name or "ln_" in name else 0.0
                if "gemma" in kind and not kind.startswith(("gemma3n", "gemma4")) or kind.startswith(("qwen3_next", "qwen3_5")) and "linear_attn" not in name:
                    offset = 0.0
                if name.endswith("bias"):
                    offset = 0.0
                if name.endswith("A_log"):
                    offset = -2.0  # states decay slowly
                p.copy_(offset + 0.2 * noise)
            elif name.endswith("A_log"):
                p.copy_(-2.0 + 0.2 * noise)
            elif "embed" in name or "wte" in name or "wpe" in name:
                p.copy_(0.3 * noise)
            else:
                p.copy_(noise * (1.2 / p.shape[-1] ** 0.5))


def run(model, ids):
    with torch.no_grad():
        return model(ids[None], use_cache=False).logits[0].float()


def named(name):
    return getattr(own_models, name, None) or getattr(transformers, name)


def make(name, out):
    family, fields, options = CASES[name]
    config = named(family + "Config")(**fields)
    model_class = options.get("model", ("Gemma3" if family == "Gemma3Text" else family) + "ForCausalLM")
    store = options.get("store", torch.bfloat16)
    seed = sum(ord(c) * 31 ** i for i, c in enumerate(name)) % 2**31
    generator = torch.Generator().manual_seed(seed)
    model = named(model_class)(config).eval()
    randomize(model, generator)
    if "weights" in options:
        options["weights"](model, generator)
    model = model.to(store)
    directory = os.path.join(out, options.get("folder", ""), name)
    shutil.rmtree(directory, ignore_errors=True)
    model.save_pretrained(directory, max_shard_size=options.get("shards", "1GB"))
    for extra in os.listdir(directory):
        if not (extra == "config.json" or extra.startswith("model")):
            os.remove(os.path.join(directory, extra))

    # Loads the model again, because a cast of the module would round its rotary frequencies, which
    # transformers keeps in f32.
    def load(dtype):
        return named(model_class).from_pretrained(directory, dtype=dtype, attn_implementation=options.get("attention", "eager"))

    ids = torch.randint(3, VOCAB, (TOKENS,), generator=generator)
    golden = dict(ids=ids.to(torch.int32))
    compute = options.get("run", run)
    logits = compute(load(torch.float32), ids)
    golden["logits"] = logits
    if store == torch.bfloat16:
        half = compute(load(torch.bfloat16), ids)
        log_p, log_q = logits.double().log_softmax(-1), half.double().log_softmax(-1)
        golden["bf16_kl"] = (log_p.exp() * (log_p - log_q)).sum(-1).float()
        if options.get("bf16_logits"):
            golden["bf16_logits"] = half
    if "max_model_len" in options:
        golden["max_model_len"] = torch.tensor([options["max_model_len"]], dtype=torch.int32)
    save_file(golden, os.path.join(directory, "golden.safetensors"))

    if "tensors" in options:
        weights = os.path.join(directory, "model.safetensors")
        save_file(options["tensors"](load_file(weights)), weights)
    path = os.path.join(directory, "config.json")
    with open(path) as f:
        saved = json.load(f)
    for noise in ("transformers_version", "use_cache", "initializer_range"):
        saved.pop(noise, None)
    if "config" in options:
        saved = options["config"](saved)
    with open(path, "w") as f:
        json.dump(saved, f, indent=1, sort_keys=True)
        f.write("\n")
    if options.get("own_format"):
        os.rename(path, os.path.join(directory, "params.json"))
        os.rename(os.path.join(directory, "model.safetensors"), os.path.join(directory, "consolidated.safetensors"))
    kl = golden.get("bf16_kl")
    print(f"{name}: logits std {logits.std():.2f}, bf16 kl {kl.mean() if kl is not None else float('nan'):.2e}")


def main():
    out = sys.argv[1]
    for name in sys.argv[2:] or CASES:
        make(name, out)


if __name__ == "__main__":
    main()
