"""Measures PyTorch's operators at the shapes of `octavo bench ops --filter Llama-3-8B`: matrix products by cuBLASLt, and attention by the
fastest backend of PyTorch. Writes the seconds per operation and shape, and the limits of the device, as JSON.

    python torch_ops.py OUT.json

The calls alternate between several matrices and KV caches, so that no call reads from the L2 cache. They are captured as a CUDA graph.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F
import torch_decoder
from torch.nn.attention import SDPBackend, sdpa_kernel

DIM, HIDDEN, HEADS, KV_HEADS, HEAD, VOCABULARY = 4096, 14336, 32, 8, 128, 128256
MATRICES = {
    "qkv": ((HEADS + 2 * KV_HEADS) * HEAD, DIM),
    "out": (DIM, HEADS * HEAD),
    "gate_up": (2 * HIDDEN, DIM),
    "down": (DIM, HIDDEN),
    "lm_head": (VOCABULARY, DIM),
}
ROWS = (1, 4, 16, 64, 512, 4096)
# kind, sequences, queries, tokens
CONTEXTS = (("decode", 1, 1, 4096), ("decode", 16, 1, 4096), ("decode", 64, 1, 4096), ("prefill", 1, 512, 512), ("prefill", 1, 4096, 4096))
COLD_BYTES = 256e6


def seconds(calls: list) -> float:
    """Returns the seconds of one call, from the median of nine replays of a CUDA graph of all calls."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / len(calls))
    return statistics.median(times)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def product(rows: int, matrix: tuple[int, int]) -> float:
    copies = int(COLD_BYTES // (2 * matrix[0] * matrix[1])) + 1
    weights = [random(*matrix) for _ in range(copies)]
    x = random(rows, matrix[1])
    return seconds([lambda w=w: F.linear(x, w) for w in weights])


def attention(sequences: int, queries: int, tokens: int) -> float:
    copies = int(min(max(COLD_BYTES / (4 * sequences * tokens * KV_HEADS * HEAD), 1), 256))
    q = random(sequences, HEADS, queries, HEAD)
    caches = [(random(sequences, KV_HEADS, tokens, HEAD), random(sequences, KV_HEADS, tokens, HEAD)) for _ in range(copies)]
    found = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        try:
            with sdpa_kernel(backend):
                found.append(
                    seconds([
                        lambda k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=queries > 1, enable_gqa=True)
                        for k, v in caches
                    ])
                )  # fmt: skip
        except RuntimeError as error:
            print(backend, str(error).splitlines()[0])
    return min(found)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    found: dict = {"limits": torch_decoder.limits("cuda")}
    for name, matrix in MATRICES.items():
        for rows in ROWS:
            if rows <= 64 or name != "lm_head":
                found[f"matmul Llama-3-8B {name}, {rows} x {matrix[1]} x {matrix[0]}, bf16"] = product(rows, matrix)
    for kind, sequences, queries, tokens in CONTEXTS:
        name = f"attention Llama-3-8B {kind}, {sequences} x {queries} of {tokens}, bf16"
        found[name] = attention(sequences, queries, tokens)
    args.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
