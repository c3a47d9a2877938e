"""mistral.rs. It accepts only text, so that prompts here are random letters with the requested number of tokens."""

from __future__ import annotations

import importlib.metadata
import os
import random
import string
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mistralrs

from engines import SEQUENCES


class Engine:
    def __init__(self, model: str, threads: int, *isq: str) -> None:
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        if model.endswith(".gguf"):
            which = mistralrs.Which.GGUF(str(Path(model).parent), Path(model).name)
        else:
            which = mistralrs.Which.Plain(model)
        self.runner = mistralrs.Runner(which, max_seqs=SEQUENCES, in_situ_quant=isq[0] if isq else None, prefix_cache_n=0)
        self.random = random.Random(2)
        self.about = " ".join(["mistralrs", importlib.metadata.version("mistralrs"), *(f"ISQ {name}" for name in isq)])

    def pid(self) -> int:
        return os.getpid()

    def text(self, tokens: int) -> str:
        letters = ""
        while (missing := tokens - len(self.runner.tokenize_text(letters, False, None))) > 0:
            letters += "".join(self.random.choices(string.ascii_letters, k=missing))
        return letters

    def complete(self, text: str, tokens: int) -> None:
        request = mistralrs.CompletionRequest(text, "default", max_tokens=tokens, temperature=0, ignore_eos=True)
        usage = self.runner.send_completion_request(request).usage
        assert usage.completion_tokens == tokens, f"{usage.completion_tokens} tokens instead of {tokens}"

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        texts = [self.text(len(prompt)) for prompt in prompts]
        with ThreadPoolExecutor(len(texts)) as pool:
            began = time.perf_counter()
            list(pool.map(lambda text: self.complete(text, 1), texts[:1]))
            first = time.perf_counter() - began
            if len(texts) == tokens == 1:
                return first, first
            began = time.perf_counter()
            list(pool.map(lambda text: self.complete(text, tokens), texts))
        return first, time.perf_counter() - began
