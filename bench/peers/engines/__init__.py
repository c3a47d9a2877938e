"""The engines of the comparison: one file each. `load` imports only the file of one engine, because each engine has its own interpreter.

A file has a class `Engine(model, threads, *flags)` with `about` (version and flags), `pid` (the process that computes) and
`run(prompts, tokens, shared)`. `run` returns the seconds until the first token and until the last token. Every answer has exactly `tokens`
tokens with greedy decoding. The first `shared` token ids of all prompts are equal.
"""

from __future__ import annotations

import importlib

CONTEXT = 8192  # tokens of the longest sequence
SEQUENCES = 64  # number of sequences at the same time

MODULES = {
    "octavo": "octavo",
    "llama.cpp": "llama_server",
    "ik_llama.cpp": "ik_llama_cpp",
    "openvino": "openvino_genai",
    "onnxruntime": "onnxruntime_genai",
    "mistral.rs": "mistralrs",
    "vllm": "vllm",
    "transformers": "transformers",
}


def load(name: str) -> type:
    return importlib.import_module(f"engines.{MODULES[name]}_engine").Engine
