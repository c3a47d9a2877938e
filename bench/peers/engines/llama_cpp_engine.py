"""llama.cpp's batches without a server: one sequence per prompt, and all sequences decode together."""

from __future__ import annotations

import importlib.metadata
import os
import time

import numpy as np

from engines import CONTEXT, SEQUENCES

BATCH = 512


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        self.llama = self.library()
        self.model = self.llama.llama_model_load_from_file(model.encode(), self.llama.llama_model_default_params())
        context = self.llama.llama_context_default_params()
        context.n_ctx = CONTEXT * 2 + SEQUENCES * 256
        context.n_batch = context.n_ubatch = BATCH
        context.n_seq_max = SEQUENCES
        context.n_threads = context.n_threads_batch = threads
        self.adjust(context)
        self.context = self.llama.llama_init_from_model(self.model, context)
        self.vocabulary = self.llama.llama_vocab_n_tokens(self.llama.llama_model_get_vocab(self.model))
        self.batch = self.llama.llama_batch_init(BATCH, 0, SEQUENCES)

    def library(self):
        import llama_cpp

        self.about = f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}, native, n_ubatch {BATCH}"
        return llama_cpp

    def adjust(self, context) -> None:
        context.kv_unified = True

    def pid(self) -> int:
        return os.getpid()

    def clear(self) -> None:
        self.llama.llama_memory_clear(self.llama.llama_get_memory(self.context), True)

    def share(self, prompts: int, length: int) -> None:
        """Gives the first `length` positions of sequence 0 to all sequences."""
        for sequence in range(1, prompts):
            self.llama.llama_memory_seq_cp(self.llama.llama_get_memory(self.context), 0, sequence, 0, length)

    def decode(self, entries: list[tuple[int, int, int, bool]]) -> list[int]:
        """Decodes entries (token, position, sequence, wants logits). Returns the most likely token for each entry that wants logits."""
        chosen = []
        for start in range(0, len(entries), BATCH):
            part = entries[start : start + BATCH]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, logits) in enumerate(part):
                self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = token, position, 1
                self.batch.seq_id[i][0], self.batch.logits[i] = sequence, logits
            assert self.llama.llama_decode(self.context, self.batch) == 0
            for i, entry in enumerate(part):
                if entry[3]:
                    row = self.llama.llama_get_logits_ith(self.context, i)
                    chosen.append(int(np.ctypeslib.as_array(row, (self.vocabulary,)).argmax()))
        return chosen

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        self.clear()
        began = time.perf_counter()
        if shared:
            self.decode([(token, i, 0, False) for i, token in enumerate(prompts[0][:shared])])
            self.share(len(prompts), shared)
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
