"""Ollama's API through its Python client."""

import base64
import json
import urllib.request

import ollama
import pytest

from conftest import serve
from test_embeddings import folder_of

TOOL = {"type": "function",
        "function": {"name": "weather", "description": "The weather in a city",
                     "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                                    "required": ["city"]}}}
QUESTION = [{"role": "user", "content": "Where does Mira live?"}]
GREEDY = {"temperature": 0, "num_predict": 16}


@pytest.fixture(scope="module")
def ours(server):
    return ollama.Client(host=server)


def test_a_chat_and_its_stream(ours, model):
    whole = ours.chat(model=model, messages=QUESTION, options=GREEDY)
    assert whole.message.role == "assistant" and whole.message.content
    assert whole.done and whole.done_reason in ("stop", "length")
    assert whole.eval_count > 0 and whole.prompt_eval_count > 0
    assert whole.total_duration >= whole.eval_duration > 0
    parts = list(ours.chat(model=f"{model}:latest", messages=QUESTION, options=GREEDY, stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count


def test_generate(ours, model):
    answer = ours.generate(model=model, prompt="Where does Mira live?", system="Be short.", options=GREEDY)
    assert answer.response and answer.done
    raw = ours.generate(model=model, prompt="Mira lives in", raw=True, options=GREEDY)
    assert raw.response != answer.response
    assert ours.generate(model=model).done_reason == "load"


def test_a_format_is_kept(ours, model):
    schema = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"],
              "additionalProperties": False}
    answer = ours.chat(model=model, messages=QUESTION, format=schema, options={"temperature": 0})
    assert json.loads(answer.message.content)["city"] in ("Rome", "Oslo")
    answer = ours.chat(model=model, messages=QUESTION, format="json", options={"temperature": 0, "num_predict": 64})
    assert answer.message.content.startswith("{")


def test_tools_and_their_results(ours, model):
    answer = ours.chat(model=model, messages=QUESTION, tools=[TOOL], options=GREEDY)
    assert answer.message.content or answer.message.tool_calls
    history = [*QUESTION,
               {"role": "assistant", "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
               {"role": "tool", "content": "sunny", "tool_name": "weather"}]
    assert ours.chat(model=model, messages=history, tools=[TOOL], options=GREEDY).done


def test_the_model_is_described(ours, model):
    assert model in [card.model for card in ours.list().models]
    shown = ours.show(model)
    assert "completion" in shown.capabilities
    assert ours.ps().models[0].size > 0
    assert ours.pull(model).status == "success"


def test_errors_are_the_clients(ours, model):
    with pytest.raises(ollama.ResponseError) as missing:
        ours.chat(model="llama9", messages=QUESTION)
    assert missing.value.status_code == 404 and "llama9" in missing.value.error
    with pytest.raises(ollama.ResponseError) as wrong:
        ours.generate(model=model, prompt="x", options={"top_p": 7})
    assert "options.top_p" in wrong.value.error
    with pytest.raises(ollama.ResponseError) as refused:
        ours.create(model="new", from_=model)
    assert "octavo pull" in refused.value.error
    with pytest.raises(ollama.ResponseError) as blind:
        ours.chat(model=model, messages=[{**QUESTION[0], "images": [base64.b64encode(b"x").decode()]}])
    assert blind.value.status_code == 400


def test_curls_own_content_type_is_taken(server, model):
    """curl in Ollama's documentation sends no Content-Type for JSON."""
    body = json.dumps({"model": model, "prompt": "Hi", "stream": False, "options": GREEDY}).encode()
    request = urllib.request.Request(f"{server}/api/generate", body,
                                     {"Content-Type": "application/x-www-form-urlencoded"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert json.load(reply)["done"]


def test_embed(tmp_path):
    folder = folder_of("roberta", tmp_path / "tiny")
    with serve("--model", str(folder), "--dtype", "float32") as base:
        client = ollama.Client(host=base)
        name = client.list().models[0].model
        answer = client.embed(model=name, input=["a b c", "x " * 400])
        assert len(answer.embeddings) == 2 and answer.prompt_eval_count > 3
        assert client.embeddings(model=name, prompt="a b c").embedding == answer.embeddings[0]
        assert client.show(name).capabilities == ["embedding"]
        with pytest.raises(ollama.ResponseError, match="402 tokens"):
            client.embed(model=name, input="x " * 400, truncate=False)


def test_an_image_is_seen():
    """An image in base64 without a type, as Ollama's clients send it, gets the same answer as on OpenAI's route."""
    case = "tests/data/vision/idefics3"
    with serve("--model", case, "--served-model-name", "see", "--dtype", "float32") as base:
        picture = open(f"{case}/rgb.png", "rb").read()
        question = "What is in this picture?"
        client = ollama.Client(host=base)
        assert "vision" in client.show("see").capabilities
        options = {"temperature": 0, "num_predict": 8}
        seen = client.chat(model="see", messages=[{"role": "user", "content": question, "images": [picture]}], options=options)
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
        body = {"model": "see", "messages": [{"role": "user", "content": parts}], "temperature": 0, "max_tokens": 8}
        with urllib.request.urlopen(urllib.request.Request(f"{base}/v1/chat/completions", json.dumps(body).encode(),
                                                           {"Content-Type": "application/json"}), timeout=60) as reply:
            assert json.load(reply)["choices"][0]["message"]["content"] == seen.message.content
        assert seen.prompt_eval_count > client.chat(model="see", messages=[{"role": "user", "content": question}], options=options).prompt_eval_count
