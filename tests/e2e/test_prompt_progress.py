"""Progress of the prompt in streams, if the client requests it."""

import pytest

from conftest import serve

PROMPT = "Once upon a time there was a small dog. " * 40


@pytest.fixture(scope="module")
def client():
    import openai

    with serve("--max-num-batched-tokens", "64", "--served-model-name", "demo") as base:
        yield openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def progress(stream):
    chunks = list(stream)
    shown = [chunk.model_extra["prompt_progress"] for chunk in chunks if "prompt_progress" in (chunk.model_extra or {})]
    assert all(chunk.choices for chunk in chunks), "clients read choices[0]"
    return shown


def check(shown, cached):
    assert len(shown) > 3, "an event for each step"
    total = shown[0]["total"]
    assert all(list(each) == ["total", "cache", "processed", "time_ms"] and each["total"] == total for each in shown)
    assert (shown[0]["cache"] > 0) == cached and shown[0]["processed"] == shown[0]["cache"]
    steps = [each["processed"] for each in shown]
    assert steps == sorted(set(steps)) and steps[-1] == total
    assert [each["time_ms"] for each in shown] == sorted(each["time_ms"] for each in shown)


def test_chats_and_completions(client):
    ask = {"model": "demo", "max_tokens": 3, "stream": True}
    chat = {**ask, "messages": [{"role": "user", "content": "A " + PROMPT}]}
    check(progress(client.chat.completions.create(**chat, stream_options={"include_progress": True})), cached=False)
    completion = {**ask, "prompt": "B " + PROMPT}
    check(progress(client.completions.create(**completion, extra_body={"return_progress": True})), cached=False)
    longer = {**completion, "prompt": completion["prompt"] + PROMPT}
    check(progress(client.completions.create(**longer, extra_body={"return_progress": True})), cached=True)


def test_only_those_who_ask(client):
    chat = {"model": "demo", "max_tokens": 3, "messages": [{"role": "user", "content": PROMPT}]}
    assert progress(client.chat.completions.create(**chat, stream=True)) == []
    assert client.chat.completions.create(**chat, extra_body={"return_progress": True}).choices, "no stream, no effect"
