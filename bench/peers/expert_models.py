"""Writes GGUF files for timing, with random weights and the dimensions of known mixture-of-experts and hybrid models, but fewer layers.

    python expert_models.py qwen3-30b-a3b|gpt-oss-20b|qwen3.5-4b|lfm2-1.2b FILE.gguf [LAYERS]

Blocks are random bytes with scales that keep the activations near one. The time to read and multiply Q4_K, MXFP4 or Q8_0 does not depend
on the values.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np

from models import vocabulary

KINDS = gguf.GGMLQuantizationType
VOCABULARY = 102_400
CONTEXT = 16_384


class File:
    def __init__(self, path: Path, arch: str, layers: int, dim: int) -> None:
        self.random = np.random.default_rng(0)
        self.writer = gguf.GGUFWriter(path, arch)
        self.dim = dim
        self.writer.add_block_count(layers)
        self.writer.add_context_length(CONTEXT)
        self.writer.add_embedding_length(dim)
        self.writer.add_vocab_size(VOCABULARY)
        self.writer.add_layer_norm_rms_eps(1e-6)
        tokens, merges = vocabulary(VOCABULARY)
        self.writer.add_tokenizer_model("gpt2")
        self.writer.add_tokenizer_pre("qwen2")
        self.writer.add_token_list(list(tokens))
        self.writer.add_token_types([3, 3] + [1] * (VOCABULARY - 2))
        self.writer.add_token_merges(merges)
        self.writer.add_bos_token_id(0)
        self.writer.add_eos_token_id(1)
        self.writer.add_add_bos_token(False)

    def vector(self, name: str, *shape: int, value: float = 1) -> None:
        self.writer.add_tensor(name, np.full(shape, value, np.float32))

    def plain(self, name: str, rows: int, cols: int) -> None:
        self.writer.add_tensor(name, self.random.standard_normal((rows, cols), np.float32) * cols**-0.5)

    def matrix(self, name: str, *shape: int, kind: KINDS = KINDS.Q4_K) -> None:
        """Adds a matrix [rows, cols] or a stack of such matrices, with standard deviation 1 / sqrt(cols)."""
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        cols = shape[-1]
        blocks = self.random.integers(0, 256, (int(np.prod(shape)) // elements, size), np.uint8)
        deviation = cols**-0.5
        if kind == KINDS.Q4_K:  # scale and offset of a block, whose groups have 6-bit scales
            scale = deviation / 180
            blocks[:, :4] = np.array([scale, 7.5 * scale], np.float16).view(np.uint8)
        elif kind == KINDS.Q8_0:
            blocks[:, :2] = np.array([deviation / 74], np.float16).view(np.uint8)
        else:  # MXFP4: a power of two
            blocks[:, 0] = 127 + round(np.log2(deviation / 3))
        self.writer.add_tensor(name, blocks.reshape(*shape[:-1], cols // elements * size), raw_dtype=kind)

    def attention(self, layer: str, heads: int, kv_heads: int, head: int, kind: KINDS, gates: int = 1) -> None:
        for part, rows in (("q", gates * heads), ("k", kv_heads), ("v", kv_heads)):
            self.matrix(f"{layer}attn_{part}.weight", rows * head, self.dim, kind=kind)
        self.matrix(f"{layer}attn_output.weight", self.dim, heads * head, kind=kind)

    def heads(self, heads: int, kv_heads: int | list[int], head: int, turning: int, theta: float) -> None:
        self.writer.add_head_count(heads)
        self.writer.add_head_count_kv(kv_heads)
        self.writer.add_key_length(head)
        self.writer.add_value_length(head)
        self.writer.add_rope_dimension_count(turning)
        self.writer.add_rope_freq_base(theta)

    def experts(self, layer: str, count: int, hidden: int, kind: KINDS) -> None:
        self.plain(f"{layer}ffn_gate_inp.weight", count, self.dim)
        for part in ("gate", "up"):
            self.matrix(f"{layer}ffn_{part}_exps.weight", count, hidden, self.dim, kind=kind)
        self.matrix(f"{layer}ffn_down_exps.weight", count, self.dim, hidden, kind=kind)

    def mlp(self, layer: str, hidden: int) -> None:
        for part, shape in (("gate", (hidden, self.dim)), ("up", (hidden, self.dim)), ("down", (self.dim, hidden))):
            self.matrix(f"{layer}ffn_{part}.weight", *shape)

    def finish(self, kind: KINDS, tied: bool, norm: str = "output_norm") -> None:
        self.matrix("token_embd.weight", VOCABULARY, self.dim, kind=kind)
        if not tied:
            self.matrix("output.weight", VOCABULARY, self.dim, kind=kind)
        self.vector(f"{norm}.weight", self.dim)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def qwen3_moe(path: Path, layers: int) -> None:
    file = File(path, "qwen3moe", layers, 2048)
    file.heads(32, 4, 128, 128, 1e6)
    file.writer.add_feed_forward_length(6144)
    file.writer.add_expert_count(128)
    file.writer.add_expert_used_count(8)
    file.writer.add_expert_feed_forward_length(768)
    for i in range(layers):
        layer = f"blk.{i}."
        for norm, size in (("attn_norm", 2048), ("ffn_norm", 2048), ("attn_q_norm", 128), ("attn_k_norm", 128)):
            file.vector(f"{layer}{norm}.weight", size)
        file.attention(layer, 32, 4, 128, KINDS.Q4_K)
        file.experts(layer, 128, 768, KINDS.Q4_K)
    file.finish(KINDS.Q4_K, tied=False)


def gpt_oss(path: Path, layers: int) -> None:
    file = File(path, "gpt-oss", layers, 2880)
    file.heads(64, 8, 64, 64, 150000.0)
    file.writer.add_feed_forward_length(2880)
    file.writer.add_expert_count(32)
    file.writer.add_expert_used_count(4)
    file.writer.add_expert_feed_forward_length(2880)
    file.writer.add_sliding_window(128)
    file.writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    file.writer.add_rope_scaling_factor(32.0)
    file.writer.add_rope_scaling_orig_ctx_len(4096)
    for i in range(layers):
        layer = f"blk.{i}."
        for norm in ("attn_norm", "post_attention_norm"):
            file.vector(f"{layer}{norm}.weight", 2880)
        file.attention(layer, 64, 8, 64, KINDS.Q8_0)
        for part, rows in (("attn_q", 4096), ("attn_k", 512), ("attn_v", 512), ("attn_output", 2880), ("ffn_gate_inp", 32)):
            file.vector(f"{layer}{part}.bias", rows, value=0)
        file.vector(f"{layer}attn_sinks.weight", 64, value=0)
        file.experts(layer, 32, 2880, KINDS.MXFP4)
        for part in ("gate", "up", "down"):
            file.vector(f"{layer}ffn_{part}_exps.bias", 32, 2880, value=0)
    file.finish(KINDS.Q8_0, tied=False)


def qwen3_5(path: Path, layers: int) -> None:
    file = File(path, "qwen35", layers, 2560)
    file.heads(16, 4, 256, 64, 1e7)
    file.writer.add_feed_forward_length(9216)
    file.writer.add_rope_dimension_sections([11, 11, 10, 0])
    file.writer.add_ssm_conv_kernel(4)
    file.writer.add_ssm_state_size(128)
    file.writer.add_ssm_group_count(16)
    file.writer.add_ssm_time_step_rank(32)
    file.writer.add_ssm_inner_size(4096)
    file.writer.add_full_attention_interval(4)
    for i in range(layers):
        layer = f"blk.{i}."
        for norm in ("attn_norm", "post_attention_norm"):
            file.vector(f"{layer}{norm}.weight", 2560)
        if (i + 1) % 4 == 0:
            file.attention(layer, 16, 4, 256, KINDS.Q4_K, gates=2)
            for norm in ("attn_q_norm", "attn_k_norm"):
                file.vector(f"{layer}{norm}.weight", 256)
        else:
            file.matrix(f"{layer}attn_qkv.weight", 8192, 2560)
            file.matrix(f"{layer}attn_gate.weight", 4096, 2560)
            for part in ("ssm_beta", "ssm_alpha"):
                file.plain(f"{layer}{part}.weight", 32, 2560)
            file.plain(f"{layer}ssm_conv1d.weight", 8192, 4)
            file.vector(f"{layer}ssm_dt.bias", 32, value=0)
            file.vector(f"{layer}ssm_a", 32, value=-0.1)
            file.vector(f"{layer}ssm_norm.weight", 128)
            file.matrix(f"{layer}ssm_out.weight", 2560, 4096)
        file.mlp(layer, 9216)
    file.finish(KINDS.Q4_K, tied=True)


def lfm2(path: Path, layers: int) -> None:
    file = File(path, "lfm2", layers, 2048)
    attention = {2, 5, 8, 10, 12, 14}
    file.heads(32, [8 if i in attention else 0 for i in range(layers)], 64, 64, 1e6)
    file.writer.add_feed_forward_length(8192)
    file.writer.add_shortconv_l_cache(3)
    for i in range(layers):
        layer = f"blk.{i}."
        for norm in ("attn_norm", "ffn_norm"):
            file.vector(f"{layer}{norm}.weight", 2048)
        if i in attention:
            file.attention(layer, 32, 8, 64, KINDS.Q4_K)
            for norm in ("attn_q_norm", "attn_k_norm"):
                file.vector(f"{layer}{norm}.weight", 64)
        else:
            file.matrix(f"{layer}shortconv.in_proj.weight", 3 * 2048, 2048)
            file.plain(f"{layer}shortconv.conv.weight", 2048, 3)
            file.matrix(f"{layer}shortconv.out_proj.weight", 2048, 2048)
        file.mlp(layer, 8192)
    file.finish(KINDS.Q4_K, tied=True, norm="token_embd_norm")


MODELS = {"qwen3-30b-a3b": (qwen3_moe, 8), "gpt-oss-20b": (gpt_oss, 5), "qwen3.5-4b": (qwen3_5, 8), "lfm2-1.2b": (lfm2, 16)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("file", type=Path)
    parser.add_argument("layers", type=int, nargs="?")
    args = parser.parse_args()
    make, layers = MODELS[args.model]
    make(args.file, args.layers or layers)


if __name__ == "__main__":
    main()
