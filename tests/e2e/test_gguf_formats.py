"""Servers with GGUF files: the newest formats of matrices, and LoRA adapters. Answers are those of transformers."""

import math
from pathlib import Path

import openai
import pytest

from conftest import serve, tiny
from test_embeddings import tensors

DATA = Path(__file__).parents[1] / "data"


def log_probabilities(golden):
    """Returns the prompt's ids, and the reference's log-probabilities of the next token."""
    vocab = len(golden["logits"]) // len(golden["ids"])
    last = golden["logits"][-vocab:]
    total = math.log(sum(map(math.exp, last)))
    return list(golden["ids"]), [logit - total for logit in last]


def next_token(base, model, prompt):
    """Returns the log-probability of the most likely token after a prompt, and its id."""
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    reply = client.completions.create(model=model, prompt=prompt, max_tokens=1, temperature=0, logprobs=1,
                                      extra_body={"return_token_ids": True, "ignore_eos": True})
    choice = reply.choices[0]
    return choice.logprobs.token_logprobs[0], choice.token_ids[0]


@pytest.mark.parametrize("case", ["llama-float4", "qwen3moe-nvfp4"])
def test_the_newest_formats_answer_as_transformers_does(case, tmp_path):
    folder = DATA / "gguf" / case
    prompt, expected = log_probabilities(tensors(folder / "golden.safetensors"))
    with serve(str(folder / "model.gguf"), "--tokenizer", tiny("llama", tmp_path), "--served-model-name", "m") as base:
        logprob, token = next_token(base, "m", prompt)
    assert token == expected.index(max(expected))
    assert abs(logprob - max(expected)) < 0.1  # activations have 8 bits


def test_gguf_adapters_of_gguf_models(tmp_path):
    folder = DATA / "adapters" / "llama-gguf"
    prompt, expected = log_probabilities(tensors(folder / "golden.safetensors"))
    with serve(str(folder / "model.gguf"), "--tokenizer", tiny("llama", tmp_path), "--served-model-name", "m",
               "--enable-lora", "--lora-modules", f"a={folder / 'adapter.gguf'}", "--dtype", "float32") as base:
        logprob, token = next_token(base, "a", prompt)
        assert token == expected.index(max(expected))
        assert abs(logprob - max(expected)) < 1e-4
        assert next_token(base, "m", prompt) != (logprob, token)
