"""mistral.rs. It accepts only text, so that prompts here are random letters with the requested number of tokens."""

from __future__ import annotations

import importlib.metadata
import os
import random
import string
import tempfile
import time
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
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write("{{ messages[0].content }}")
            template.flush()
            self.runner = mistralrs.Runner(
                which, max_seqs=SEQUENCES, in_situ_quant=isq[0] if isq else None, prefix_cache_n=0, jinja_explicit=template.name
            )
        self.random = random.Random(2)
        self.about = " ".join(["mistralrs", importlib.metadata.version("mistralrs"), *(f"ISQ {name}" for name in isq)])

    def pid(self) -> int:
        return os.getpid()

    def text(self, tokens: int) -> str:
        letters = ""
        while (missing := tokens - len(self.runner.tokenize_text(letters, False, None))) > 0:
            letters += "".join(self.random.choices(string.ascii_letters, k=missing))
        return letters

    def send(self, text: str, tokens: int):
        """Returns an iterator over the tokens. Only chats can be streamed, and streams run at the same time."""
        messages = [{"role": "user", "content": text}]
        request = mistralrs.ChatCompletionRequest(messages, "default", max_tokens=tokens, temperature=0, ignore_eos=True, stream=True)
        return self.runner.send_chat_completion_request(request)

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        texts = [self.text(len(prompt)) for prompt in prompts]
        began = time.perf_counter()
        answers = [self.send(text, tokens) for text in texts]
        try:
            next(answers[0])
            first = time.perf_counter() - began
            counts = [sum(1 for _ in answer) for answer in answers]
        except ValueError as error:
            raise SystemExit(str(error).splitlines()[0]) from None  # without its backtrace, which has 20 lines
        end = time.perf_counter() - began
        assert counts[0] + 1 >= tokens and min(counts) >= tokens - 1, f"{counts} tokens instead of {tokens}"
        return first, end
