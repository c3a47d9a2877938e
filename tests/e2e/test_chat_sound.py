"""Audio models in chats, with OpenAI's client: small random models (tests/data/sound), compared with transformers."""

import base64
import pathlib

import openai
import pytest

from conftest import serve
from test_vision import tensor

SOUNDS = pathlib.Path("tests/data/sound")
# audio files of the golden conversation; the second has two windows
FIRST = {"qwen2_audio": "chirp.wav", "voxtral": "long.wav"}


def sound(name):
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode((SOUNDS / name).read_bytes()).decode(), "format": name[-3:]}}


def text(words):
    return {"type": "text", "text": words}


def conversation(case):
    return [
        {"role": "user", "content": [sound(FIRST[case.name]), text("What is this sound?")]},
        {"role": "assistant", "content": "A chirp."},
        {"role": "user", "content": [text("And this?"), sound("short.wav")]},
    ]


@pytest.fixture(scope="module", params=list(FIRST))
def case(request):
    return SOUNDS / request.param


@pytest.fixture(scope="module")
def client(case):
    with serve("--model", str(case), "--served-model-name", "hear", "--dtype", "float32", "--max-num-seqs", "4", "--max-num-batched-tokens", "32",
               "--limit-mm-per-prompt", '{"audio": 2}', "--enable-prompt-tokens-details") as base:
        yield openai.OpenAI(base_url=f"{base}/v1", api_key="none")


def ask(client, messages, **options):
    return client.chat.completions.create(model="hear", messages=messages, **{"temperature": 0, "max_tokens": 8, **options})


def test_greedy_answers_are_those_of_transformers(client, case):
    ids, _ = tensor("ids", case)
    answer, _ = tensor("answer", case)
    for again in (False, True):
        reply = ask(client, conversation(case), max_tokens=len(answer), extra_body={"ignore_eos": True, "return_token_ids": True})
        assert reply.choices[0].token_ids == list(answer)
        assert reply.usage.prompt_tokens == len(ids)
        cached = reply.usage.prompt_tokens_details
        assert (cached is not None and cached.cached_tokens > 0) == again


def test_other_formats_and_streams(client):
    messages = [{"role": "user", "content": [sound("stereo.flac"), text("And this?")]}]
    whole = ask(client, messages).choices[0].message.content
    stream = ask(client, messages, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == whole


def test_limits_are_told(client):
    with pytest.raises(openai.BadRequestError, match=r"At most 2 audio\(s\)"):
        ask(client, [{"role": "user", "content": [sound("short.wav")] * 3}])
    with pytest.raises(openai.BadRequestError, match="messages.0..content.0..input_audio"):
        ask(client, [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}])


def test_text_alone(case):
    with serve("--model", str(case), "--served-model-name", "hear", "--language-model-only") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        with pytest.raises(openai.BadRequestError, match="hear is not a multimodal model"):
            ask(client, conversation(case))
        assert ask(client, [{"role": "user", "content": "Text."}]).usage.completion_tokens > 0
