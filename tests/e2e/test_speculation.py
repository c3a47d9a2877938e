"""Speculative decoding over HTTP: the answers are the same, and metrics count accepted draft tokens."""

import json
import re
import subprocess

import openai
import pytest
from conftest import eventually, fetch, serve, tiny
from test_adapters import write_adapter

PROMPTS = ["Once upon a time", "Who is the baker?", "Count from one to twenty: one, two,", "A list: apple, apple,"]
# Always uses the maximum number of draft tokens, whatever they cost on this machine.
METHODS = {name: config | {"num_speculative_tokens_per_batch_size": [[1, 64, config["num_speculative_tokens"]]]} for name, config in {
    "eagle3": {"method": "eagle3", "model": "models/demo-eagle3", "num_speculative_tokens": 3},
    "draft_model": {"model": "models/demo-draft", "num_speculative_tokens": 4},
    "suffix": {"method": "suffix", "num_speculative_tokens": 24},
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1},
}.items()}


def answers(base, model="demo"):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    found = []
    for prompt in PROMPTS:
        for temperature in (0, 0.8):
            completion = client.completions.create(
                model=model, prompt=prompt, max_tokens=48, temperature=temperature, seed=7, n=2 if temperature else 1)
            found += [choice.text for choice in completion.choices]
    messages = [{"role": "user", "content": "Tell me a story."}]
    chat = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=64)
    return [*found, chat.choices[0].message.content]


def sum_of(page, name):
    return sum(float(value) for value in re.findall(rf"^vllm:{name}{{.*}} (\S+)$", page, re.MULTILINE))


def metric(base, name):
    return sum_of(fetch(base + "/metrics"), name)


@pytest.fixture(scope="module")
def plain():
    with serve("--device", "cpu") as base:
        return answers(base)


@pytest.mark.parametrize("method", METHODS)
def test_draft_tokens_change_no_answer(method, plain):
    with serve("--device", "cpu", "--speculative-config", json.dumps(METHODS[method])) as base:
        assert answers(base) == plain
        assert eventually(lambda: metric(base, "spec_decode_num_accepted_tokens_total") > 0)
        page = fetch(base + "/metrics")  # all counters are read at the same time
        drafts, tokens, accepted, by_place = (
            sum_of(page, f"spec_decode_num_{what}_total") for what in ("drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos"))
        assert 0 < drafts <= tokens and accepted == by_place <= tokens
        if method == "draft_model":
            assert accepted > drafts  # more than one of four draft tokens is accepted


@pytest.mark.parametrize("method", ["draft_model", "eagle3"])
def test_two_ranks_guess(method):
    flags = ("--device", "cpu", "--dtype", "float32", "--tensor-parallel-size", "2")
    with serve(*flags) as base:
        plain = answers(base)
    with serve(*flags, "--speculative-config", json.dumps(METHODS[method])) as base:
        assert answers(base) == plain
        assert eventually(lambda: metric(base, "spec_decode_num_accepted_tokens_total") > 0)


@pytest.mark.parametrize("method", ["draft_model", "suffix"])
def test_two_stages_guess(method, plain):
    """Several steps are in flight at the same time."""
    with serve("--device", "cpu", "--pipeline-parallel-size", "2", "--speculative-config", json.dumps(METHODS[method])) as base:
        assert answers(base) == plain
        assert eventually(lambda: metric(base, "spec_decode_num_accepted_tokens_total") > 0)


@pytest.mark.parametrize("model, config", [
    ("markov", {"method": "eagle", "model": "tests/data/drafters/markov-eagle", "num_speculative_tokens": 3}),
    ("markov", {"method": "medusa", "model": "tests/data/drafters/markov-medusa", "num_speculative_tokens": 3}),
    ("mimo", {"method": "mtp", "num_speculative_tokens": 1}),
])
def test_heads_guess_in_the_last_stage(model, config, tmp_path):
    """The embedding is in the first stage, so the last stage loads it for its head."""
    flags = (tiny(model, tmp_path, "drafters"), "--device", "cpu", "--max-model-len", "256", "--kv-cache-memory-bytes", "16M")
    config = config | {"num_speculative_tokens_per_batch_size": [[1, 64, config["num_speculative_tokens"]]]}
    with serve(*flags) as base:
        expected = letters(base)
    with serve(*flags, "--pipeline-parallel-size", "2", "--speculative-config", json.dumps(config)) as base:
        assert letters(base) == expected
        assert eventually(lambda: metric(base, "spec_decode_num_draft_tokens_total") > 0)


def letters(base):
    """Returns answers of a golden checkpoint, several at a time."""
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    completion = client.completions.create(model=model, prompt=[[5, 9, 14, 3 + i] for i in range(6)], max_tokens=32, temperature=0)
    return [choice.text for choice in completion.choices]


def test_adapters_take_drafts(tmp_path):
    adapter = write_adapter(tmp_path / "adapter", 1, strength=0.3)
    flags = ("--device", "cpu", "--enable-lora", "--max-lora-rank", "8", "--lora-modules", f"adapted={adapter}")
    with serve(*flags) as base:
        plain = answers(base, "adapted")
    with serve(*flags, "--speculative-config", json.dumps(METHODS["draft_model"])) as base:
        assert answers(base, "adapted") == plain
        assert eventually(lambda: metric(base, "spec_decode_num_accepted_tokens_total") > 0)


@pytest.mark.parametrize("config, words", [
    ({"model": "tests/data/models/llama", "num_speculative_tokens": 4}, "vocabulary of"),
    ({"model": "no/such/draft/model", "num_speculative_tokens": 4}, "no/such/draft/model"),
    ({"model": "models/demo-draft"}, "num_speculative_tokens must be given"),
    ({"method": "lookahead", "num_speculative_tokens": 4}, '"eagle3", "medusa" or "mlp_speculator"'),
    ({"method": "medusa", "model": "models/demo-draft", "num_speculative_tokens": 4}, "the checkpoint has no Medusa heads"),
    ({"method": "mlp_speculator", "model": "tests/data/drafters/markov-mlp", "num_speculative_tokens": 3}, "vocabulary of 128 tokens"),
    ({"method": "eagle", "num_speculative_tokens": 4}, "model must be given"),
    ({"method": "deepseek_mtp", "num_speculative_tokens": 1}, "Qwen3ForCausalLM has no layers for multi-token prediction"),
])
def test_what_cannot_guess_is_refused(config, words):
    assert words in refusal(config)


def test_heads_that_read_several_stages_are_refused():
    assert "pipeline_parallel_size: must be 1 with the method eagle3" in refusal(METHODS["eagle3"], "--pipeline-parallel-size", "2")


def refusal(config, *flags):
    command = ["build/release/octavo", "serve", "--port", "0", "--device", "cpu", *flags, "--speculative-config", json.dumps(config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    return ended.stderr
