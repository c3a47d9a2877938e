"""ik_llama.cpp's batches without a server: one sequence per prompt, and all sequences decode together. Its wheel uses AVX2 only: build its source
package for this processor."""

from __future__ import annotations

import importlib.metadata
import os
import time

import ik_llama_cpp._ctypes_api as llama
import numpy as np

from engines import CONTEXT, SEQUENCES

BATCH = 512


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(model.encode(), llama.llama_model_default_params())
        context = llama.llama_context_default_params()
        context.n_ctx = CONTEXT * 2 + SEQUENCES * 256
        context.n_batch = context.n_ubatch = BATCH
        context.n_seq_max = SEQUENCES
        context.n_threads = context.n_threads_batch = threads
        context.flash_attn = True
        self.context = llama.llama_init_from_model(self.model, context)
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        self.batch = llama.llama_batch_init(BATCH, 0, SEQUENCES)
        self.about = f"ik-llama-cpp-python {importlib.metadata.version('ik-llama-cpp-python')}, native, n_ubatch {BATCH}"

    def pid(self) -> int:
        return os.getpid()

    def decode(self, entries: list[tuple[int, int, int, bool]]) -> list[int]:
        """Decodes entries (token, position, sequence, wants logits). Returns the most likely token for each entry that wants logits."""
        chosen = []
        for start in range(0, len(entries), BATCH):
            part = entries[start : start + BATCH]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, logits) in enumerate(part):
                self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = token, position, 1
                self.batch.seq_id[i][0], self.batch.logits[i] = sequence, logits
            assert llama.llama_decode(self.context, self.batch) == 0
            for i, entry in enumerate(part):
                if entry[3]:
                    row = llama.llama_get_logits_ith(self.context, i)
                    chosen.append(int(np.ctypeslib.as_array(row, (self.vocabulary,)).argmax()))
        return chosen

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        """Computes every prompt in full, because the bindings cannot copy sequences."""
        llama.llama_kv_cache_clear(self.context)
        began = time.perf_counter()
        last = self.decode([(token, i, s, i + 1 == len(prompt)) for s, prompt in enumerate(prompts) for i, token in enumerate(prompt)])
        first = time.perf_counter() - began
        for step in range(tokens - 1):
            last = self.decode([(last[s], len(prompt) + step, s, True) for s, prompt in enumerate(prompts)])
        return first, time.perf_counter() - began
