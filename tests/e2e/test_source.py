"""Encoder-decoder models, with OpenAI's client: small random T5, Flan-T5, BART and mBART (tests/data/source),
compared with transformers' answers."""

import json
import pathlib
import struct

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from conftest import http_client, serve

ROOT = pathlib.Path("tests/data/source")
TEXT = "summarize: the encoder reads all of a prompt at once."  # also in tools/goldens/make_source_goldens.py
END = {"t5": 1, "flan-t5": 1, "bart": 2, "mbart": 2}
BEGIN = {"t5": 1, "flan-t5": 1, "bart": 2, "mbart": 1}  # first token of the decoder's text


def tokens(case, name):
    """Returns an I32 tensor of the golden file."""
    data = (ROOT / case / "golden.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return list(struct.unpack(f"<{(end - begin) // 4}i", data[8 + size + begin:8 + size + end]))


def said(case, name):
    ids = tokens(case, name)
    return ids[:ids.index(END[case])] if END[case] in ids else ids


@pytest.fixture(scope="module", params=list(END))
def served(request):
    with serve("--model", str(ROOT / request.param), "--served-model-name", "reader", "--dtype", "float32", "--max-num-seqs", "4") as base:
        yield request.param, base


@pytest.fixture
def client(served):
    return openai.OpenAI(base_url=f"{served[1]}/v1", api_key="none", max_retries=0)


def complete(client, prompt, **options):
    extra = {"return_token_ids": True, **options.pop("extra_body", {})}
    return client.completions.create(**{"model": "reader", "prompt": prompt, "temperature": 0, "max_tokens": 24, "extra_body": extra, **options})


def test_answers_are_those_of_transformers(served, client):
    case = served[0]
    reply = complete(client, TEXT, max_tokens=len(tokens(case, "said")))
    assert [id for id in reply.choices[0].token_ids if id != END[case]] == said(case, "said")
    assert reply.choices[0].finish_reason == ("stop" if END[case] in tokens(case, "said") else "length")
    assert reply.usage.prompt_tokens == len(tokens(case, "text")) + BEGIN[case]
    for name in ("short", "long"):
        reply = complete(client, tokens(case, f"source.{name}"), max_tokens=len(tokens(case, f"greedy.{name}")))
        assert [id for id in reply.choices[0].token_ids if id != END[case]] == said(case, f"greedy.{name}")


def test_streams_and_lists_say_the_same(served, client):
    whole = complete(client, [TEXT, "the house"])
    assert whole.choices[0].text == complete(client, TEXT).choices[0].text
    streamed = "".join(chunk.choices[0].text for chunk in complete(client, TEXT, stream=True))
    assert streamed == whole.choices[0].text
    with ThreadPoolExecutor(6) as pool:
        texts = list(pool.map(lambda _: complete(client, TEXT).choices[0].text, range(12)))
    assert set(texts) == {streamed}


def test_sampled_answers_depend_on_the_seed_alone(served, client):
    def sampled(seed):
        return [choice.text for choice in complete(client, TEXT, temperature=1, seed=seed, n=3).choices]

    assert sampled(5) == sampled(5) != sampled(6)


def test_prompts_may_be_cut(served, client):
    case = served[0]
    text = tokens(case, "text")
    cut = complete(client, text, extra_body={"truncate_prompt_tokens": 5})
    assert cut.usage.prompt_tokens == 5 + BEGIN[case]
    assert cut.choices[0].token_ids == complete(client, text[-5:]).choices[0].token_ids


@pytest.mark.parametrize("body, message", [
    ({"prompt": [5] * 321}, "the prompt has 321 tokens; the encoder reads at most 320"),
    ({"prompt": []}, "prompt"),
    ({"prompt": TEXT, "echo": True}, "the answer does not continue the prompt's text"),
    ({"prompt": TEXT, "suffix": "the end"}, "suffix"),
    ({"prompt": [5, 120]}, "must be in [0, 120)"),
    ({"prompt": TEXT, "max_tokens": 1000}, "1000 is too large"),
])
def test_bad_requests_are_told_why(served, body, message):
    reply = http_client.post(f"{served[1]}/v1/completions", json={"model": "reader", **body})
    assert reply.status_code == 400
    assert message in reply.json()["error"]["message"]


def test_chats_need_a_template(served):
    reply = http_client.post(f"{served[1]}/v1/chat/completions", json={"model": "reader", "messages": [{"role": "user", "content": "hi"}]})
    assert reply.status_code == 400
    assert "/v1/completions" in reply.json()["error"]["message"]
