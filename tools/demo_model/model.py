"""The demo's language model: a compact decoder like Qwen3 in plain PyTorch.

Names and shapes of parameters are those of `transformers.Qwen3ForCausalLM`, so a state dict of this model is a valid
Hugging Face checkpoint. Shapes in comments: B = rows, T = positions, D = hidden size, H = query heads, K = key/value
heads, E = size of one head, V = vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


LOSS_BLOCK = 256


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of one model. Field names are those of the Hugging Face config."""

    vocab_size: int = 4096
    hidden_size: int = 256
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 32
    intermediate_size: int = 768
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048


MAIN = ModelConfig()
DRAFT = ModelConfig(
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=256,
)
CONFIGS = {"main": MAIN, "draft": DRAFT}


def rope_tables(config: ModelConfig, length: int) -> tuple[Tensor, Tensor]:
    """Returns cosine and sine tables [T, E]. Both halves of a head share frequencies."""
    half = config.head_dim // 2
    inverse = config.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), inverse)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates the pairs (i, i + E/2) of x [B, heads, T, E] by the angle of their position."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-high, low], dim=-1) * sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Computes causal attention for q, k, v [B, H, T, E], one block of queries at a time.

    For these sizes on a CPU, plain bfloat16 products of a few blocks are about three times as fast as PyTorch's fused
    kernel. A block also skips most of the keys after it.
    """
    size = 128 if q.shape[2] <= 512 else 256
    scale = q.shape[-1] ** -0.5
    future = torch.full((size, size), -torch.inf, dtype=q.dtype).triu(1)
    parts = []
    for start in range(0, q.shape[2], size):
        block = q[:, :, start : start + size] * scale
        rows = block.shape[2]
        scores = block @ k[:, :, : start + rows].transpose(-1, -2)
        # Only the last `rows` keys, those of the block, can be in the future.
        own = scores[..., start:] + future[:rows, :rows]
        weights = torch.cat([scores[..., :start], own], dim=-1).softmax(-1)
        parts.append(weights @ v[:, :, : start + rows])
    return torch.cat(parts, dim=2)


class RMSNorm(nn.Module):
    """Divides the last axis by its root mean square, then scales each channel."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class Attention(nn.Module):
    """Causal grouped-query attention with a norm of every query and key head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.group = config.num_attention_heads // config.num_key_value_heads
        width = config.num_attention_heads * config.head_dim
        kv_width = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows, length, _ = x.shape

        def heads(projected: Tensor) -> Tensor:
            return projected.view(rows, length, -1, self.head_dim)

        q = rotate(self.q_norm(heads(self.q_proj(x))).transpose(1, 2), cos, sin)
        k = rotate(self.k_norm(heads(self.k_proj(x))).transpose(1, 2), cos, sin)
        v = heads(self.v_proj(x)).transpose(1, 2)
        # Each key/value head serves `group` consecutive query heads.
        k = k.repeat_interleave(self.group, dim=1)
        v = v.repeat_interleave(self.group, dim=1)
        mixed = causal_attention(q, k, v)
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, length, -1))


class MLP(nn.Module):
    """SwiGLU feed-forward: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A decoder block with norms before attention and MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, blocks and last norm (the `model.` part of the names)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class LanguageModel(nn.Module):
    """Decoder whose output matrix is the embedding table (tied)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        cos, sin = rope_tables(config, config.max_position_embeddings)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.reset()

    def reset(self) -> None:
        """Sets small normal weights. Layers that write to the residual get smaller ones."""
        residual = (2 * self.config.num_hidden_layers) ** -0.5
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                shrink = residual if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(weight, std=0.04 * shrink)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Returns the final hidden states [B, T, D] of tokens [B, T]."""
        length = tokens.shape[1]
        x = self.model.embed_tokens(tokens)
        if torch.is_autocast_enabled("cpu"):
            x = x.to(torch.bfloat16)
        cos, sin = self.cos[:length].to(x.dtype), self.sin[:length].to(x.dtype)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.model.norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns the logits [B, T, V] of tokens [B, T]."""
        return F.linear(self.hidden(tokens), self.model.embed_tokens.weight)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean cross-entropy over the targets [B, T] that are not -100.

        Only positions with loss pass through the output layer. Their number is padded to a multiple of LOSS_BLOCK
        with positions without loss, because new matrix shapes in every step would fill the kernel cache.
        """
        taught = (targets.flatten() != -100).nonzero().squeeze(1)
        count = -(-len(taught) // LOSS_BLOCK) * LOSS_BLOCK
        free = (targets.flatten() == -100).nonzero().squeeze(1)
        picked = torch.cat([taught, free[: count - len(taught)]])
        hidden = self.hidden(tokens).flatten(0, 1)[picked]
        logits = F.linear(hidden, self.model.embed_tokens.weight)
        return F.cross_entropy(logits.float(), targets.flatten()[picked], ignore_index=-100)
