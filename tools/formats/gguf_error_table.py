#!/usr/bin/env python3
"""Prints the error of GGUF's formats for the demo model, as computed by Octavo and by llama.cpp from the same file.

    gguf_error_table.py [--program build/release/format_error] [--model models/demo] [--rows 24]

KL divergence to f32 and perplexity on held-out text, as in error_table.py. For Octavo, the f32 reference is Octavo's;
for llama.cpp, it is transformers'. Needs torch, transformers, gguf and llama-cpp-python.
"""
import tempfile
from pathlib import Path

import llama_cpp
import numpy as np
import torch
from transformers import AutoModelForCausalLM

from error_table import argument_parser, held_out, measure
from write_formats import OWN_GGUF_FORMATS, write_gguf


def log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class LlamaCpp:
    def __init__(self, path: Path, length: int) -> None:
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = length
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(length, 0, 1)

    def __del__(self) -> None:
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)

    def logits(self, row: list[int]) -> np.ndarray:
        """Returns logits [tokens, vocabulary]."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        self.batch.n_tokens = len(row)
        for i, token in enumerate(row):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = int(token), i, 1
            self.batch.seq_id[i][0], self.batch.logits[i] = 0, True
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama.cpp could not compute a row")
        rows = [llama_cpp.llama_get_logits_ith(self.context, i) for i in range(len(row))]
        return np.stack([np.ctypeslib.as_array(logits, (self.vocabulary,)).copy() for logits in rows])


def compare(golden, logits_of, tokens, taught) -> tuple[float, float, float]:
    """Returns the mean KL to the reference, the share of equal first choices, and the perplexity."""
    kl, same, surprise = [], [], []
    for reference, row, counts in zip(golden, tokens, taught):
        places = np.flatnonzero(counts)
        made = log_softmax(logits_of(row)[places - 1])
        kl.append((np.exp(reference) * (reference - made)).sum(-1))
        same.append(reference.argmax(-1) == made.argmax(-1))
        surprise.append(-made[np.arange(len(places)), row[places]])
    return np.concatenate(kl).mean(), np.concatenate(same).mean(), np.exp(np.concatenate(surprise).mean())


def main() -> None:
    arguments = argument_parser(__doc__).parse_args()
    tokens, taught = held_out(arguments.model, arguments.rows)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).eval()
    with torch.inference_mode():
        golden = [
            log_softmax(model(torch.tensor(row[None].astype(np.int64))).logits[0, np.flatnonzero(counts) - 1].numpy())
            for row, counts in zip(tokens, taught)
        ]
    with tempfile.TemporaryDirectory() as folder:
        files = write_gguf(arguments.model, Path(folder))
        ours = measure(arguments.program, tokens, taught, [str(path) for path in files.values()])
        print(f"{taught.sum()} predictions in {tokens.shape[0]} rows of {tokens.shape[1]} tokens\n")
        print("| file | KL to f32, Octavo | llama.cpp | same most likely token | | perplexity | |\n|---|---|---|---|---|---|---|")
        for name, path in files.items():
            kl, same, perplexity, _ = ours[str(path)]
            if name in OWN_GGUF_FORMATS:  # llama-cpp-python may lack them
                print(f"| {name} | {kl:.1e} | | {same:.2%} | | {perplexity:.3f} | |")
                continue
            their_kl, their_same, their_perplexity = compare(golden, LlamaCpp(path, tokens.shape[1]).logits, tokens, taught)
            print(f"| {name} | {kl:.1e} | {their_kl:.1e} | {same:.2%} | {their_same:.2%} | {perplexity:.3f} | {their_perplexity:.3f} |")


if __name__ == "__main__":
    main()
