"""Measures PyTorch for a comparison with Octavo. Models have the same shapes and are compiled modules with SDPA and a static KV cache.

    python torch_decoder.py OUT.json [--device cuda] [--shapes llama-3.2-1b ..] [--workloads prefill ..] [--eager]

Needs only PyTorch. Weights are random. Each time is the median of three runs, after two runs that compile and warm up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from workloads import SHAPES, WORKLOADS

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))
import models  # noqa: E402


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def median_seconds(device: str, work, warm_ups: int = 2, repeats: int = 3) -> float:
    times = []
    for i in range(warm_ups + repeats):
        wait(device)
        began = time.perf_counter()
        work()
        wait(device)
        if i >= warm_ups:
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def limits(device: str) -> dict[str, float]:
    """Returns the bytes per second of a copy (reads and writes count), and the operations per second of a large bf16 product."""
    count, side = (1 << 30, 8192) if device == "cuda" else (1 << 24, 512)
    source = torch.ones(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    a = torch.randn(side, side, device=device).bfloat16()
    b = torch.randn(side, side, device=device).bfloat16()

    def copies() -> None:
        for _ in range(10):
            target.copy_(source)

    def products() -> None:
        for _ in range(10):
            a @ b

    return {
        "copy_bytes_per_second": 20 * count / median_seconds(device, copies),
        "bf16_flops": 20 * side**3 / median_seconds(device, products),
    }


class Decoder(torch.nn.Module):
    """A Llama with these dimensions, in which all sequences are at the same position."""

    def __init__(self, config: dict, batch: int, length: int, device: str) -> None:
        super().__init__()
        self.c, self.device = config, device
        random = torch.Generator(device).manual_seed(0)

        def matrix(rows: int, columns: int) -> torch.nn.Parameter:
            numbers = torch.randn((rows, columns), generator=random, device=device, dtype=torch.float32)
            return torch.nn.Parameter((numbers * columns**-0.5).bfloat16(), requires_grad=False)

        dim, hidden, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
        self.heads, self.kv_heads, self.head = config["num_attention_heads"], config["num_key_value_heads"], head
        rows = (self.heads + 2 * self.kv_heads) * head
        layers = range(config["num_hidden_layers"])
        self.embedding = matrix(config["vocab_size"], dim)
        self.lm_head = self.embedding if config["tie_word_embeddings"] else matrix(config["vocab_size"], dim)
        self.qkv = torch.nn.ParameterList(matrix(rows, dim) for _ in layers)
        self.out = torch.nn.ParameterList(matrix(dim, self.heads * head) for _ in layers)
        self.up = torch.nn.ParameterList(matrix(2 * hidden, dim) for _ in layers)
        self.down = torch.nn.ParameterList(matrix(dim, hidden) for _ in layers)
        self.norm = torch.nn.Parameter(torch.ones(dim, dtype=torch.bfloat16, device=device), requires_grad=False)
        angles = torch.outer(
            torch.arange(length, dtype=torch.float32),
            config["rope_theta"] ** (-torch.arange(0, head, 2, dtype=torch.float32) / head),
        ).to(device)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        cache = (len(layers), 2, batch, self.kv_heads, length, head)
        self.register_buffer("cache", torch.zeros(cache, dtype=torch.bfloat16, device=device))
        self.register_buffer("places", torch.arange(length, device=device))

    def rotate(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        cos, sin = self.cos[positions], self.sin[positions]
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).bfloat16()

    def forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Returns the next token of each sequence. `ids` [batch, n] are the tokens at `positions`."""
        batch, n = ids.shape
        x = F.embedding(ids, self.embedding)
        mask = self.places[None, :] <= positions[:, None]
        for layer in range(self.c["num_hidden_layers"]):
            y = F.rms_norm(x, (x.shape[-1],), self.norm, self.c["rms_norm_eps"])
            y = (y @ self.qkv[layer].T).view(batch, n, -1, self.head).transpose(1, 2)
            q, k, v = y.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
            self.cache[layer, 0, :, :, positions] = self.rotate(k, positions)
            self.cache[layer, 1, :, :, positions] = v
            q = self.rotate(q, positions)
            if n > 1:  # a whole prompt
                y = F.scaled_dot_product_attention(q, self.rotate(k, positions), v, is_causal=True, enable_gqa=True)
            else:
                keys, values = self.cache[layer, 0], self.cache[layer, 1]
                y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
            x = x + y.transpose(1, 2).reshape(batch, n, -1) @ self.out[layer].T
            y = F.rms_norm(x, (x.shape[-1],), self.norm, self.c["rms_norm_eps"])
            gate, up = (y @ self.up[layer].T).chunk(2, dim=-1)
            x = x + (F.silu(gate) * up) @ self.down[layer].T
        x = F.rms_norm(x[:, -1], (x.shape[-1],), self.norm, self.c["rms_norm_eps"])
        return (x @ self.lm_head.T).argmax(dim=-1)


@torch.inference_mode()
def workload_seconds(config: dict, workload: str, device: str, compiled: bool) -> float:
    batch, prompt, tokens = WORKLOADS[workload]
    model = Decoder(config, batch, prompt + tokens, device)
    prefill = torch.compile(model) if compiled else model
    decode = torch.compile(model, mode="reduce-overhead") if compiled else model
    ids = torch.randint(0, config["vocab_size"], (batch, prompt), device=device)
    positions = torch.arange(prompt + tokens, device=device)

    def run() -> None:
        token = prefill(ids, positions[:prompt])
        for place in range(prompt, prompt + tokens - 1):
            token = decode(token[:, None].clone(), positions[place : place + 1].clone())

    found = median_seconds(device, run)
    torch.compiler.reset()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    args = parser.parse_args()
    found: dict[str, dict] = {"torch": {"version": torch.__version__}}
    for shape in args.shapes:
        config = models.config_of(shape)
        found[shape] = {}
        for workload in SHAPES.get(shape, WORKLOADS):
            if workload not in args.workloads:
                continue
            found[shape][workload] = workload_seconds(config, workload, args.device, not args.eager)
            print(shape, workload, found[shape][workload], flush=True)
            args.out.write_text(json.dumps(found))  # saves results before the time limit ends the run
    args.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
