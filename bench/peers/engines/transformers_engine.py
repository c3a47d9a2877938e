"""transformers in eager mode. All prompts of a workload have one length and are one batch."""

from __future__ import annotations

import os
import time

import torch
import transformers


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()
        self.about = f"transformers {transformers.__version__}, torch {torch.__version__}, bf16"

    def pid(self) -> int:
        return os.getpid()

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        first = 0.0
        began = time.perf_counter()
        with torch.inference_mode():
            out = self.model(input_ids=torch.tensor(prompts), use_cache=True, logits_to_keep=1)
            for step in range(tokens):
                last = out.logits[:, -1].argmax(-1, keepdim=True)
                first = first or time.perf_counter() - began
                if step + 1 < tokens:
                    out = self.model(input_ids=last, past_key_values=out.past_key_values, use_cache=True)
        return first, time.perf_counter() - began
