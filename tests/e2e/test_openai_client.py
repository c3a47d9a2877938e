"""The official OpenAI client against a running `octavo serve`."""

import json
import urllib.request
from pathlib import Path

import openai
import pytest
from conftest import eventually, metric, serve

MESSAGES = [{"role": "user", "content": "Tell me a short story."}]


def test_models(client, model):
    assert client.models.retrieve(model).id == model


def test_chat(client, model):
    reply = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=16, temperature=0)
    choice = reply.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = reply.usage
    assert 0 < usage.completion_tokens <= 16
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_store_changes_nothing(client, model):
    fields = dict(model=model, messages=MESSAGES, max_tokens=8, temperature=0)
    kept, other = (client.chat.completions.create(**fields, store=store) for store in (True, False))
    assert kept.choices[0].message.content == other.choices[0].message.content


def test_stream_equals_whole(client, model):
    fields = dict(model=model, messages=MESSAGES, max_tokens=32, temperature=0)
    whole = client.chat.completions.create(**fields)
    text, finish, usage = "", None, None
    for chunk in client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert text == whole.choices[0].message.content
    assert finish == whole.choices[0].finish_reason
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_seeded_sampling_repeats(client, model):
    fields = dict(model=model, messages=MESSAGES, max_tokens=16, temperature=1, seed=7)
    texts = {client.chat.completions.create(**fields).choices[0].message.content for _ in range(3)}
    assert len(texts) == 1


def test_n(client, model):
    reply = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=8, n=3, temperature=1, seed=1)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]


def test_beam_search_is_that_of_transformers():
    with serve("--dtype", "float32") as base:
        compare_beams(openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0))


def compare_beams(client):
    model = client.models.list().data[0].id
    cases = json.loads((Path(__file__).parents[1] / "data/beam_search/demo.json").read_text())
    for case in cases:
        fields = dict(use_beam_search=True, length_penalty=0, ignore_eos=True, return_token_ids=True)
        reply = client.completions.create(model=model, prompt=case["prompt"], n=case["beams"], max_tokens=case["tokens"],
                                          logprobs=1, extra_body=fields)  # fmt: skip
        found = {tuple(c.token_ids): sum(c.logprobs.token_logprobs) for c in reply.choices}
        wanted = {tuple(tokens): score for tokens, score in zip(case["answers"], case["scores"])}
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert found == pytest.approx(wanted, abs=1e-3), case["prompt"]
        assert reply.usage.completion_tokens == case["beams"] * case["tokens"]


def test_beam_search_of_a_chat(client, model):
    fields = dict(model=model, messages=MESSAGES, max_tokens=12, n=3, extra_body={"use_beam_search": True})
    reply = client.chat.completions.create(**fields)
    texts = [choice.message.content for choice in reply.choices]
    assert len(set(texts)) == 3
    assert [c.message.content for c in client.chat.completions.create(**fields).choices] == texts
    with pytest.raises(openai.BadRequestError, match="beam search"):
        client.chat.completions.create(**fields, stream=True)


def test_chat_logprobs(client, model):
    reply = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=4, temperature=0, logprobs=True, top_logprobs=3
    )
    content = reply.choices[0].logprobs.content
    assert len(content) == reply.usage.completion_tokens
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert token.logprob == pytest.approx(max(t.logprob for t in token.top_logprobs))


def test_completion_logprobs_and_echo(client, model):
    reply = client.completions.create(model=model, prompt="Once upon", max_tokens=4, temperature=0, logprobs=2, echo=True)
    choice = reply.choices[0]
    assert choice.text.startswith("Once upon")
    assert len(choice.logprobs.tokens) == reply.usage.total_tokens
    assert choice.logprobs.token_logprobs[0] is None


def test_completion_prompts(client, model):
    reply = client.completions.create(model=model, prompt=["One", "Two"], max_tokens=2)
    assert [choice.index for choice in reply.choices] == [0, 1]


def test_stop(client, model):
    fields = dict(model=model, messages=MESSAGES, max_tokens=64, temperature=0)
    text = client.chat.completions.create(**fields).choices[0].message.content
    stop = text[len(text) // 2 :][:3]
    choice = client.chat.completions.create(**fields, stop=[stop]).choices[0]
    assert choice.message.content == text[: text.index(stop)]
    assert choice.finish_reason == "stop" and choice.stop_reason == stop


@pytest.mark.parametrize(
    "fields, param",
    [
        (dict(temperature=3), "temperature"),
        (dict(top_p=0), "top_p"),
        (dict(max_tokens=0), "max_tokens"),
        (dict(max_tokens=2**31), "max_tokens"),
        (dict(n=-1), "n"),
        (dict(extra_body={"min_p": 2}), "min_p"),
        (dict(response_format={"type": "xml"}), "response_format.type"),
    ],
)
def test_bad_requests_name_the_field(client, model, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=model, messages=MESSAGES, **fields)
    assert error.value.param == param


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="no such model", messages=MESSAGES)


def test_prompt_too_long(client, model):
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model=model, prompt="word " * 100_000)


def test_tokenize_round_trip(server):
    def post(path, body):
        request = urllib.request.Request(server + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=60))

    text = "Hello, world"
    tokens = post("/tokenize", {"prompt": text, "add_special_tokens": False})
    assert tokens["count"] == len(tokens["tokens"])
    assert post("/detokenize", {"tokens": tokens["tokens"]})["prompt"].strip() == text


def test_a_killed_client_frees_its_blocks(server, client, model):
    stream = client.chat.completions.create(
        model=model, messages=MESSAGES, stream=True, n=4, temperature=1, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    assert eventually(lambda: metric(server, "vllm:num_requests_running") >= 1)
    stream.close()
    assert eventually(lambda: metric(server, "vllm:num_requests_running") == 0)
    assert eventually(lambda: metric(server, "vllm:kv_cache_usage_perc") == 0)
