"""Writes checkpoints for timing, with random weights and the dimensions of known models, and converts them to GGUF.

python models.py llama-3.2-1b DIR               Hugging Face folder, bf16
python models.py gguf DIR FILE.gguf Q8_0        the same matrices in a GGUF format (BF16, Q8_0, Q4_0), without experts
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
from pathlib import Path

SHAPES = {
    "llama-3.2-1b": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "rope_theta": 500000.0,
    },
    "llama-100m": {  # small enough for two ranks with copies of the weights on any machine
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 32000,
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "rope_theta": 500000.0,
    },
    "llama-3-8b": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
    },
    "smollm2-135m": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "rope_theta": 100000.0,
    },
    "qwen3-0.6b": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "use_sliding_window": False,  # mistral.rs needs the three fields of windows
        "sliding_window": None,
        "max_window_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rope_theta": 1000000.0,
    },
    "qwen3-30b-a3b": {  # 4 of its 48 layers
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "rope_theta": 1000000.0,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": True,
    },
}
COMMON = {
    "hidden_act": "silu",
    "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "bfloat16",
}
PROJECTIONS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}


def byte_alphabet() -> list[str]:
    """Returns the 256 printable characters that represent bytes in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]


def vocabulary(size: int) -> tuple[dict[str, int], list[str]]:
    """Returns a vocabulary of `size` tokens and its merges: two special tokens, all bytes, and merges of two earlier tokens."""
    letters = byte_alphabet()
    tokens = ["<|begin|>", "<|end|>", *letters]
    known, merges = set(tokens), []
    for left in range(2, size):
        for right in letters:
            if len(tokens) == size:
                return {token: i for i, token in enumerate(tokens)}, merges
            merged = tokens[left] + right
            if merged not in known:
                known.add(merged)
                tokens.append(merged)
                merges.append(f"{tokens[left]} {right}")
    raise ValueError(size)


def write_tokenizer(folder: Path, size: int) -> None:
    vocab, merges = vocabulary(size)
    special = [
        {"id": i, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for i, token in enumerate(["<|begin|>", "<|end|>"])
    ]  # fmt: skip
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin|>", "eos_token": "<|end|>"})
    )


def mlp(name: str, hidden: int, dim: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.gate_proj": (hidden, dim), f"{name}.up_proj": (hidden, dim), f"{name}.down_proj": (dim, hidden)}


def tensor_shapes(c: dict) -> dict[str, tuple[int, ...]]:
    dim, head = c["hidden_size"], c["head_dim"]
    queries, keys = c["num_attention_heads"] * head, c["num_key_value_heads"] * head
    layer = {
        "input_layernorm": (dim,),
        "post_attention_layernorm": (dim,),
        "self_attn.q_proj": (queries, dim),
        "self_attn.k_proj": (keys, dim),
        "self_attn.v_proj": (keys, dim),
        "self_attn.o_proj": (dim, queries),
    }
    if experts := c.get("num_experts"):
        layer["mlp.gate"] = (experts, dim)
        for expert in range(experts):
            layer |= mlp(f"mlp.experts.{expert}", c["moe_intermediate_size"], dim)
    else:
        layer |= mlp("mlp", c["intermediate_size"], dim)
    if c["model_type"] in ("qwen3", "qwen3_moe"):
        layer |= {"self_attn.q_norm": (head,), "self_attn.k_norm": (head,)}
    shapes = {"model.embed_tokens.weight": (c["vocab_size"], dim), "model.norm.weight": (dim,)}
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (c["vocab_size"], dim)
    for i in range(c["num_hidden_layers"]):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


def config_of(name: str) -> dict:
    return COMMON | SHAPES[name]


def describe(name: str, folder: Path) -> None:
    """Writes all files except weights, which is enough for --load-format dummy."""
    config = config_of(name)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_tokenizer(folder, config["vocab_size"])


def make(name: str, folder: Path) -> None:
    """Writes all files. Norms are one, and the deviation of matrices keeps activations near one. Needs only PyTorch. With a GPU it is
    faster, and the random numbers differ."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(name)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random = torch.Generator(device).manual_seed(0)
    shapes = tensor_shapes(config)
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes.values():
            if len(shape) == 1:
                numbers = torch.ones(shape, dtype=torch.bfloat16)
            else:
                numbers = torch.randn(shape, generator=random, device=device)
                numbers = (numbers * shape[1] ** -0.5).bfloat16().cpu()
            file.write(ctypes.string_at(numbers.data_ptr(), 2 * numbers.numel()))
    describe(name, folder)


def interleave(matrix, heads: int):
    """Returns the rows of a Llama query or key matrix in the order of GGUF, where the two rows of a RoPE pair are neighbours."""
    rows, cols = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def to_gguf(folder: Path, file: Path, type_name: str) -> None:
    import gguf
    from safetensors.torch import load_file

    c = json.loads((folder / "config.json").read_text())
    arch = c["model_type"]
    kind = gguf.GGMLQuantizationType[type_name]
    writer = gguf.GGUFWriter(file, arch)
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(c["head_dim"])
    writer.add_value_length(c["head_dim"])
    writer.add_rope_dimension_count(c["head_dim"])
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_vocab_size(c["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{type_name}"])
    tokenizer = json.loads((folder / "tokenizer.json").read_text())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe" if arch == "llama" else "qwen2")
    writer.add_token_list(list(tokenizer["vocab"]))
    writer.add_token_types([3, 3] + [1] * (c["vocab_size"] - 2))
    writer.add_token_merges(tokenizer["merges"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)

    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    for i in range(c["num_hidden_layers"]):
        names |= {f"model.layers.{i}.{hf}": f"blk.{i}.{g}" for hf, g in (PROJECTIONS | NORMS).items()}
    for name, tensor in load_file(folder / "model.safetensors").items():
        name = name.removesuffix(".weight")
        values = tensor.float().numpy()
        if arch == "llama" and name.endswith("q_proj"):
            values = interleave(values, c["num_attention_heads"])
        if arch == "llama" and name.endswith("k_proj"):
            values = interleave(values, c["num_key_value_heads"])
        if values.ndim == 1:
            writer.add_tensor(names[name] + ".weight", values)
        else:
            writer.add_tensor(names[name] + ".weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*SHAPES, "gguf"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("format", nargs="?", default="Q8_0")
    args = parser.parse_args()
    if args.what == "gguf":
        to_gguf(args.folder, args.file, args.format)
    else:
        make(args.what, args.folder)


if __name__ == "__main__":
    main()
