"""Structured outputs and forced tool calls, through the official client.

OCTAVO_SCHEMAS: number of random schemas to test (default: 60).
"""

import json
import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import openai
import pytest
from conftest import eventually, http_client, metric, serve

sys.path.append(str(Path(__file__).parents[2] / "tools" / "grammar"))
from random_schemas import schema as random_schema

MESSAGES = [{"role": "user", "content": "Describe Elmford as JSON."}]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
}
TOOLS = [
    {"type": "function", "function": {"name": "describe", "parameters": PERSON}},
    {
        "type": "function",
        "function": {
            "name": "count",
            "parameters": {
                "type": "object",
                "properties": {"to": {"$ref": "#/$defs/small"}},
                "required": ["to"],
                "$defs": {"small": {"type": "integer", "minimum": 1, "maximum": 9}},
            },
        },
    },
]


def ask(client, model, stream=False, **fields):
    reply = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=300, temperature=1.2, seed=1, stream=stream, **fields
    )
    if not stream:
        assert reply.choices[0].finish_reason in ("stop", "tool_calls")
        return reply.choices[0].message
    return list(reply)


@pytest.mark.parametrize("stream", [False, True])
def test_json_schema(client, model, stream):
    format = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    reply = ask(client, model, stream, response_format=format)
    text = "".join(c.choices[0].delta.content or "" for c in reply) if stream else reply.content
    jsonschema.validate(json.loads(text), PERSON)


def test_json_object(client, model):
    assert isinstance(json.loads(ask(client, model, response_format={"type": "json_object"}).content), dict)


@pytest.mark.parametrize(
    "constraint, valid",
    [
        ({"regex": "[a-f]{3}-[0-9]{2}"}, lambda text: re.fullmatch("[a-f]{3}-[0-9]{2}", text)),
        ({"choice": ["red", "light green", "blue"]}, lambda text: text in ("red", "light green", "blue")),
        ({"grammar": 'root ::= "a" pair{1,4} "c"\npair ::= "b" [0-9]'}, lambda text: re.fullmatch("a(b[0-9]){1,4}c", text)),
        ({"json": PERSON, "disable_any_whitespace": True}, lambda text: jsonschema.validate(json.loads(text), PERSON) or True),
        (
            {
                "structural_tag": json.dumps(
                    {
                        "type": "structural_tag",
                        "format": {"type": "tag", "begin": "<x>", "content": {"type": "regex", "pattern": "[0-9]{2}"}, "end": "</x>"},
                    }
                )
            },
            lambda text: re.fullmatch("<x>[0-9]{2}</x>", text),
        ),
    ],
)
def test_structured_outputs(client, model, constraint, valid):
    text = ask(client, model, extra_body={"structured_outputs": constraint}).content
    assert valid(text), text


def test_several_answers(client, model):
    reply = client.chat.completions.create(
        model=model, messages=MESSAGES, n=4, temperature=1.5, seed=1, max_tokens=60, extra_body={"structured_outputs": {"regex": "[a-z]{5,9}!"}}
    )
    texts = [choice.message.content for choice in reply.choices]
    assert len(texts) == 4 and all(re.fullmatch("[a-z]{5,9}!", text) for text in texts), texts


@pytest.mark.parametrize(
    "constraint, param, word",
    [
        ({"json": {"type": "object", "minProperties": -1}}, "structured_outputs.json", "minProperties"),
        ({"json": {"properties": {"a": {"pattern": "(?=x)"}}}}, "structured_outputs.json", "#/properties/a/pattern"),
        ({"regex": "a{3,1}"}, "structured_outputs.regex", "line 1, column 2"),
        ({"grammar": "root ::= foo"}, "structured_outputs.grammar", "foo"),
        ({"json": {"const": 1, "enum": [2]}}, "structured_outputs.json", ""),
        ({"choice": []}, "structured_outputs.choice", ""),
    ],
)
def test_what_cannot_be_enforced_is_refused(client, model, constraint, param, word):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, stream=True, extra_body={"structured_outputs": constraint})
    assert refused.value.body["param"] == param
    assert word in refused.value.body["message"]


def test_a_named_tool_is_called(client, model):
    choice = {"type": "function", "function": {"name": "count"}}
    (call,) = ask(client, model, tools=TOOLS, tool_choice=choice).tool_calls
    assert call.function.name == "count"
    assert 1 <= json.loads(call.function.arguments)["to"] <= 9
    chunks = ask(client, model, stream=True, tools=TOOLS, tool_choice=choice)
    pieces = [call for c in chunks for call in c.choices[0].delta.tool_calls or []]
    assert [piece.function.name for piece in pieces if piece.id] == ["count"]
    assert json.loads("".join(piece.function.arguments for piece in pieces)) == json.loads(call.function.arguments)


@pytest.mark.parametrize("stream", [False, True])
def test_some_tool_is_called(client, model, stream):
    reply = ask(client, model, stream, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    if stream:
        (call,) = [call for c in reply for call in c.choices[0].delta.tool_calls or []]
        assert reply[-1].choices[0].finish_reason == "tool_calls"
    else:
        (call,) = reply.tool_calls
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    jsonschema.validate(json.loads(call.function.arguments), schemas[call.function.name])


def test_random_schemas(server, client, model):
    rng = random.Random(int(os.environ.get("OCTAVO_SEED", "1")))
    schemas = [random_schema(rng) for _ in range(int(os.environ.get("OCTAVO_SCHEMAS", "60")))]

    def outcome(seed, schema):
        try:
            reply = client.chat.completions.create(
                model=model, messages=MESSAGES, max_tokens=400, temperature=1.5, seed=seed, extra_body={"structured_outputs": {"json": schema}}
            )
        except openai.BadRequestError:
            return "refused"
        choice = reply.choices[0]
        if choice.finish_reason != "stop":
            return choice.finish_reason
        try:
            jsonschema.Draft202012Validator(schema).validate(json.loads(choice.message.content))
        except (jsonschema.ValidationError, json.JSONDecodeError) as error:
            return f"INVALID: {json.dumps(schema)}: {choice.message.content!r}: {error}"
        except OverflowError:
            pass  # a limit of the validator: integers above a double's range with a fractional multipleOf
        return "valid"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(outcome, range(len(schemas)), schemas))
    counts = {key: outcomes.count(key) for key in ("valid", "refused", "length")}
    print(counts)
    wrong = [o for o in outcomes if o not in counts]
    assert not wrong, wrong[:5]
    assert counts["valid"] > len(schemas) // 3
    assert eventually(lambda: metric(server, "vllm:grammar_masks_total") > 0)


def test_a_text_may_end_with_the_end_token_of_the_tokenizer():
    """The checkpoint names its end token only in tokenizer_config.json. The engine's process must know it, too."""
    with serve("--model", "tests/data/vision/qwen3_5_vl", "--served-model-name", "ends", "--dtype", "float32") as base:
        reply = http_client.post(f"{base}/v1/chat/completions", json={
            "model": "ends", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "structured_outputs": {"choice": ["yes", "no"]}})
        assert reply.status_code == 200, reply.text
        choice = reply.json()["choices"][0]
        assert choice["message"]["content"] in ("yes", "no") and choice["finish_reason"] == "stop"
