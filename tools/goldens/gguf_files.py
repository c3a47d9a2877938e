"""Transformers models as GGUF files, as llama.cpp's own conversion writes them: names, orders of rows, metadata.

Needs torch, transformers, gguf and, for the K formats, llama-cpp-python.
"""
import ctypes
import json
import math
import pathlib

import gguf
import numpy as np
import torch

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
                 "SmolLM3ForCausalLM": "smollm3", "Starcoder2ForCausalLM": "starcoder2"}


def enum_of(arch):
    return next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)


def interleave(tensor, heads):
    """Rows of halves, as transformers rotates them, in the order of pairs."""
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


def transform(name, config):
    """(there, back) of a tensor of transformers' name."""
    kind, heads = config.model_type, config.num_attention_heads
    if kind in ("llama", "mistral", "granite", "arcee", "olmo", "smollm3") and ("q_proj" in name or "k_proj" in name):
        n = heads if "q_proj" in name else config.num_key_value_heads
        return (lambda t: interleave(t, n)), (lambda t: halves(t, n))
    if kind.startswith("gemma") and name.endswith("norm.weight"):
        return (lambda t: t + 1), (lambda t: t - 1)
    if kind == "nemotron" and name.endswith("norm.weight"):
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


def add_rope(writer, arch, config):
    rope = dict(getattr(config, "rope_parameters", None) or {})
    if not rope:
        return
    local = rope.get("sliding_attention")
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if local and local["rope_theta"] != 10000:
        writer.add_rope_freq_base_swa(local["rope_theta"])
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    dims = int(head_dim * rope.get("partial_rotary_factor", 1))
    writer.add_rope_dimension_count(dims)
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif kind == "llama3":
        wavelength = 2 * math.pi * rope["rope_theta"] ** (np.arange(0, dims, 2, dtype=np.float32) / dims)
        turns = rope["original_max_position_embeddings"] / wavelength
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        blend = (turns - low) / (high - low)
        factors = np.where(turns < low, rope["factor"], np.where(turns > high, 1, 1 / ((1 - blend) / rope["factor"] + blend)))
        writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
    elif kind == "longrope":
        original = rope["original_max_position_embeddings"]
        stretch = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(original)))
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))


def add_metadata(writer, arch, config):
    c = config.to_dict()
    first = lambda *names: next((c[n] for n in names if c.get(n) is not None), None)
    writer.add_context_length(first("max_position_embeddings", "n_positions", "max_seq_len") or 128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(first("intermediate_size", "n_inner", "ffn_hidden_size") or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    one = arch in ("falcon", "starcoder") and c["multi_query"] and not c.get("new_decoder_architecture")
    kv_heads = 1 if one else first("num_key_value_heads", "num_kv_heads") or config.num_attention_heads
    if arch == "lfm2":
        writer.add_head_count_kv([kv_heads if kind == "full_attention" else 0 for kind in config.layer_types])
        writer.add_shortconv_l_cache(config.conv_L_cache)
    else:
        writer.add_head_count_kv(kv_heads)
    if first("head_dim"):
        writer.add_key_length(first("head_dim"))
        writer.add_value_length(first("head_dim"))
    if first("rms_norm_eps") or arch == "lfm2":
        writer.add_layer_norm_rms_eps(first("rms_norm_eps", "norm_eps"))
    epsilons = ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
    if arch != "lfm2" and (first(*epsilons) or arch == "olmo"):
        writer.add_layer_norm_eps(first(*epsilons) or 1e-5)
    if arch in ("gptneox", "stablelm"):
        writer.add_parallel_residual(config.use_parallel_residual)
    if first("sliding_window"):
        writer.add_sliding_window(first("sliding_window"))
    if arch.startswith(("gemma", "exaone", "olmo")) and "sliding_attention" in (first("layer_types") or []):
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]])
    if first("attn_logit_softcapping"):
        writer.add_attn_logit_softcapping(first("attn_logit_softcapping"))
    if first("final_logit_softcapping"):
        writer.add_final_logit_softcapping(first("final_logit_softcapping"))
    if arch == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if arch in ("command-r", "cohere2"):
        writer.add_logit_scale(config.logit_scale)
    if arch == "mpt":
        writer.add_max_alibi_bias(config.attn_config.alibi_bias_max)
    add_rope(writer, arch, config)


def add_tokenizer(writer, size, directory, model, pre, bos=None):
    """The tokenizer of a directory, filled up to so many tokens: model "gpt2" (byte-level BPE) or "llama" (SentencePiece)."""
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
        # What a merge makes has a score by the rank of the merge that comes first.
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


def stored_name(names, name, config):
    if config.model_type == "bloom":
        name = name.removeprefix("transformer.")
    return names.get_name(name, try_suffixes=(".weight", ".bias"))


def write(model, path, formats, tokenizer=None):
    """formats(name, tensor) -> gguf.GGMLQuantizationType of a matrix. tokenizer: arguments of add_tokenizer."""
    config = model.config
    arch = ARCHITECTURES[type(model).__name__]
    writer = gguf.GGUFWriter(str(path), arch)
    names = gguf.get_tensor_name_map(enum_of(arch), config.num_hidden_layers)
    add_metadata(writer, arch, config)
    if tokenizer:
        add_tokenizer(writer, config.vocab_size, *tokenizer)
    else:
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(config.vocab_size)
    tied = config.tie_word_embeddings
    for name, tensor in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        there, _ = transform(name, config)
        data = np.ascontiguousarray(there(tensor.float().numpy()))
        new = stored_name(names, name, config)
        matrix = data.ndim == 2 and not new.endswith("_norm.weight") and "shortconv.conv" not in new
        kind = formats(new, data) if matrix else gguf.GGMLQuantizationType.F32
        writer.add_tensor(new, gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def requantize(source, target, kind):
    """llama.cpp's own quantisation, to "Q4_K_M" and the like."""
    import llama_cpp
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = 2
    params.allow_requantize = True
    assert llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)) == 0


def load_back(model, path):
    """Gives the model the numbers that the file holds."""
    config = model.config
    names = gguf.get_tensor_name_map(enum_of(ARCHITECTURES[type(model).__name__]), config.num_hidden_layers)
    stored = {t.name: t for t in gguf.GGUFReader(str(path)).tensors}
    state = {}
    for name, tensor in model.state_dict().items():
        new = stored_name(names, name, config)
        if new not in stored:
            continue  # tied
        data = gguf.quants.dequantize(stored[new].data, stored[new].tensor_type)
        _, back = transform(name, config)
        state[name] = torch.from_numpy(np.ascontiguousarray(back(np.array(data, np.float32)))).reshape(tensor.shape)
    model.load_state_dict(state, strict=False)
    model.tie_weights()
