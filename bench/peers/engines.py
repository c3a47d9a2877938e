"""Runs one engine that reads JSON lines from a pipe and writes JSON lines. compare.py starts one such process for each engine.

    python engines.py octavo|llama.cpp|vllm|transformers MODEL THREADS [OCTAVO_BINARY]

Prints {"ready": seconds since the start} once. Then it answers each line {"prompts": [[ids]], "tokens": n, "shared": k} with
{"first": s, "end": s}, the times of the first token of all answers and of the last token. Each answer has exactly n tokens, with greedy
decoding. The first k token ids of all prompts are equal. Prompts are new each time, so that no engine has them in its prefix cache,
except in workloads that measure this cache.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CONTEXT = 8192
SEQUENCES = 64


class Octavo:
    """Sends requests to the engine's server over HTTP, as a user does."""

    def __init__(self, model: str, threads: int, binary: str, *flags: str) -> None:
        port = 20000 + os.getpid() % 20000
        self.base = f"http://127.0.0.1:{port}"
        command = [binary, "serve", model, "--port", str(port), "--cpu-threads", str(threads), *flags]
        command += ["--max-model-len", str(CONTEXT), "--max-num-batched-tokens", "4096"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.terminate)
        while True:
            try:
                urllib.request.urlopen(self.base + "/health").close()
                return
            except OSError:
                time.sleep(0.005)

    def pid(self) -> int:
        return self.process.pid

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        began = time.perf_counter()

        def one(prompt: list[int]) -> float:
            body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
            request = urllib.request.Request(
                self.base + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            first = 0.0
            with urllib.request.urlopen(request) as response:
                for line in response:
                    if not first and line.startswith(b"data: {"):
                        first = time.perf_counter() - began
            return first

        with ThreadPoolExecutor(len(prompts)) as pool:
            firsts = list(pool.map(one, prompts))
        return min(firsts), time.perf_counter() - began


class LlamaCpp:
    """Uses the library's batches without a server: one sequence per prompt, and all sequences decode together."""

    def __init__(self, model: str, threads: int) -> None:
        import llama_cpp
        import numpy as np

        self.llama, self.np = llama_cpp, np
        params = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(model.encode(), params)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = CONTEXT * 2 + SEQUENCES * 256
        context.n_batch = context.n_ubatch = 512
        context.n_seq_max = SEQUENCES
        context.n_threads = context.n_threads_batch = threads
        context.kv_unified = True
        self.context = llama_cpp.llama_init_from_model(self.model, context)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(512, 0, SEQUENCES)

    def pid(self) -> int:
        return os.getpid()

    def decode(self, entries: list[tuple[int, int, int, bool]]) -> list[int]:
        """Decodes entries (token, position, sequence, wants logits). Returns the most likely token for each entry that wants logits."""
        chosen = []
        for start in range(0, len(entries), 512):
            part = entries[start : start + 512]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, logits) in enumerate(part):
                self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = token, position, 1
                self.batch.seq_id[i][0], self.batch.logits[i] = sequence, logits
            assert self.llama.llama_decode(self.context, self.batch) == 0
            for i, entry in enumerate(part):
                if entry[3]:
                    row = self.llama.llama_get_logits_ith(self.context, i)
                    chosen.append(int(self.np.ctypeslib.as_array(row, (self.vocabulary,)).argmax()))
        return chosen

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        memory = self.llama.llama_get_memory(self.context)
        self.llama.llama_memory_clear(memory, True)
        began = time.perf_counter()
        if shared:
            self.decode([(token, i, 0, False) for i, token in enumerate(prompts[0][:shared])])
            for s in range(1, len(prompts)):
                self.llama.llama_memory_seq_cp(memory, 0, s, 0, shared)
        entries = [
            (token, shared + i, s, shared + i + 1 == len(prompt))
            for s, prompt in enumerate(prompts)
            for i, token in enumerate(prompt[shared:])
        ]
        last = self.decode(entries)
        first = time.perf_counter() - began
        for step in range(tokens - 1):
            last = self.decode([(last[s], len(prompt) + step, s, True) for s, prompt in enumerate(prompts)])
        return first, time.perf_counter() - began


class Vllm:
    def __init__(self, model: str, threads: int) -> None:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{threads - 1}"
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
        os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
        from vllm import LLM

        self.engine = LLM(
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


class Transformers:
    def __init__(self, model: str, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(threads)
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()

    def pid(self) -> int:
        return os.getpid()

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        first = 0.0
        began = time.perf_counter()
        with self.torch.inference_mode():
            out = self.model(input_ids=self.torch.tensor(prompts), use_cache=True, logits_to_keep=1)
            for step in range(tokens):
                last = out.logits[:, -1].argmax(-1, keepdim=True)
                first = first or time.perf_counter() - began
                if step + 1 < tokens:
                    out = self.model(input_ids=last, past_key_values=out.past_key_values, use_cache=True)
        return first, time.perf_counter() - began


def peak_bytes(pid: int) -> int:
    """Returns the sum of the peak memory of a process and of the processes that it started."""
    with open(f"/proc/{pid}/status") as status:
        own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    children = {int(child) for tasks in Path(f"/proc/{pid}/task").glob("*/children") for child in tasks.read_text().split()}
    return own + sum(peak_bytes(child) for child in children)


def main() -> None:
    began = time.perf_counter()
    name, model, threads, *rest = sys.argv[1:]
    engines = {"octavo": Octavo, "llama.cpp": LlamaCpp, "vllm": Vllm, "transformers": Transformers}
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # sends the output of libraries to stderr, because stdout has the answers
    engine = engines[name](model, int(threads), *rest)
    print(json.dumps({"ready": time.perf_counter() - began, "bytes": peak_bytes(engine.pid())}), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        first, end = engine.run(asked["prompts"], asked["tokens"], asked["shared"])
        print(json.dumps({"first": first, "end": end, "bytes": peak_bytes(engine.pid())}), file=out, flush=True)


if __name__ == "__main__":
    main()
