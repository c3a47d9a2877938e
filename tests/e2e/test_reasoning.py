"""A reasoning model: the demo model with two renamed tokens, and a template that begins the reasoning."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import openai
import pytest
from conftest import serve

DEMO = Path(__file__).parents[2] / "models" / "demo"
MARKS = {"<tool_response>": "<think>", "</tool_response>": "</think>"}
COLOUR = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "n": {"type": "integer", "maximum": 9, "minimum": 0}},
          "required": ["colour", "n"], "additionalProperties": False}
COLOUR_TOOL = {"type": "function", "function": {"name": "paint", "parameters": COLOUR, "strict": True}}
MESSAGES = [{"role": "user", "content": "Tell me a short story about Mira."}]


@pytest.fixture(scope="module")
def thinking(tmp_path_factory):
    """Yields a client, and the id of the token that ends the reasoning."""
    folder = tmp_path_factory.mktemp("thinking") / "model"
    shutil.copytree(DEMO, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    ids = {}
    for token in tokenizer["added_tokens"]:
        token["content"] = MARKS.get(token["content"], token["content"])
        ids[token["content"]] = token["id"]
    for old, new in MARKS.items():
        if old in tokenizer["model"]["vocab"]:
            tokenizer["model"]["vocab"][new] = tokenizer["model"]["vocab"].pop(old)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    opened = "{%- if add_generation_prompt %}{{- '<think>\\n' if enable_thinking is not defined or enable_thinking else '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    (folder / "think.jinja").write_text(template + opened)
    flags = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    with serve("--model", str(folder), "--chat-template", str(folder / "think.jinja"), *flags) as base:
        yield openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0), ids["</think>"]


def ask(thinking, stream=False, bias=13, extra=None, **fields):
    """Returns [(reasoning, content, calls)] of eight answers, and the usage. The bias makes the end of the reasoning
    likely."""
    client, end = thinking
    reply = client.chat.completions.create(
        model=client.models.list().data[0].id, messages=MESSAGES, n=8, temperature=1, seed=5, max_tokens=120, stream=stream,
        extra_body={"logit_bias": {str(end): bias}} | (extra or {}), **({"stream_options": {"include_usage": True}} if stream else {}), **fields,
    )
    if not stream:
        answers = [(getattr(c.message, "reasoning", None) or "", c.message.content or "", [t.function.arguments for t in c.message.tool_calls or []], c.finish_reason) for c in reply.choices]
        return answers, reply.usage
    parts = {i: ["", "", {}, None] for i in range(8)}
    usage = None
    for chunk in reply:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            part = parts[choice.index]
            part[0] += getattr(choice.delta, "reasoning", None) or ""
            part[1] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                part[2][call.index] = part[2].get(call.index, "") + call.function.arguments
            part[3] = choice.finish_reason or part[3]
    return [(r, c, list(calls.values()), finish) for r, c, calls, finish in parts.values()], usage


def test_thoughts_and_text_are_apart(thinking):
    whole, usage = ask(thinking)
    assert any(reasoning for reasoning, *_ in whole) and any(content for _, content, *_ in whole)
    assert not any("think>" in reasoning for reasoning, *_ in whole)
    assert 0 < usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens
    streamed, streamed_usage = ask(thinking, stream=True)
    assert streamed == whole
    assert streamed_usage.completion_tokens_details.reasoning_tokens == usage.completion_tokens_details.reasoning_tokens


def test_thoughts_can_be_left_out(thinking):
    whole, usage = ask(thinking)
    hidden, hidden_usage = ask(thinking, extra={"include_reasoning": False})
    assert hidden == [("", *rest) for _, *rest in whole]
    assert usage.completion_tokens == hidden_usage.completion_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_a_grammar_begins_behind_the_thoughts(thinking, stream):
    format = {"type": "json_schema", "json_schema": {"name": "colour", "schema": COLOUR}}
    answers, _ = ask(thinking, stream, response_format=format)
    valid = 0
    for reasoning, content, _, finish in answers:
        assert not (content and finish == "length")
        if content:
            jsonschema.validate(json.loads(content), COLOUR)
            valid += 1
    assert valid >= 2, answers
    assert any(reasoning and content for reasoning, content, *_ in answers), answers
    answers, _ = ask(thinking, stream, extra={"structured_outputs": {"regex": "[a-f]{3}!"}})
    assert any(re.fullmatch("[a-f]{3}!", content) for _, content, *_ in answers), answers


def test_a_prompt_that_closes_the_thoughts(thinking):
    format = {"type": "json_schema", "json_schema": {"name": "colour", "schema": COLOUR}}
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    for fields in (off, {"reasoning_effort": "none"}):
        answers, usage = ask(thinking, bias=0, extra=fields, response_format=format)
        assert usage.completion_tokens_details.reasoning_tokens == 0
        for reasoning, content, *_ in answers:
            assert reasoning == ""
            jsonschema.validate(json.loads(content), COLOUR)
    assert all(content and not reasoning for reasoning, content, *_ in ask(thinking, bias=0, extra=off)[0])


def test_calls_behind_the_thoughts(thinking):
    for choice in ("required", {"type": "function", "function": {"name": "paint"}}):
        answers, _ = ask(thinking, tools=[COLOUR_TOOL], tool_choice=choice)
        calls = [call for _, _, calls, finish in answers for call in calls if finish != "length"]
        assert calls, answers
        for call in calls:
            jsonschema.validate(json.loads(call), COLOUR)
    assert ask(thinking, True, tools=[COLOUR_TOOL])[0] == ask(thinking, tools=[COLOUR_TOOL])[0]


def test_only_a_tokenizer_with_the_marks(tmp_path):
    with pytest.raises(AssertionError, match="ended before it was ready"), serve("--reasoning-parser", "qwen3"):
        pass
