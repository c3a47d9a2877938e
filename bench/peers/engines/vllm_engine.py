"""vLLM's CPU build: its engine in this process, without a server."""

from __future__ import annotations

import os
import time

from engines import CONTEXT, SEQUENCES


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{threads - 1}"
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
        os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
        import vllm

        self.about = f"vLLM {vllm.__version__} CPU, bf16, max_num_batched_tokens 4096" + (", eager" if threads < 4 else "")
        self.engine = vllm.LLM(
            model, dtype="bfloat16", max_model_len=CONTEXT, max_num_seqs=SEQUENCES, max_num_batched_tokens=4096,
            gpu_memory_utilization=0.3,  # fraction of the machine's memory; the default, 0.92, is seldom free
            enforce_eager=threads < 4,  # on few cores, compilation takes many minutes
        )  # fmt: skip

    def pid(self) -> int:
        return os.getpid()

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        from vllm import SamplingParams

        sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        engine = self.engine.llm_engine
        began, first = time.perf_counter(), 0.0
        for i, prompt in enumerate(prompts):
            engine.add_request(f"{began}-{i}", {"prompt_token_ids": prompt}, sampling)
        while engine.has_unfinished_requests():
            if engine.step() and not first:
                first = time.perf_counter() - began
        return first, time.perf_counter() - began
