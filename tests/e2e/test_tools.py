"""Tool calls that the model may choose, strict tools, and calls in conversations, through the official client."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import openai
import pytest


def tool(function, strict=None, **parameters):
    schema = {
        "type": "object",
        "properties": {key: kind if isinstance(kind, dict) else {"type": kind} for key, kind in parameters.items()},
        "required": list(parameters),
        "additionalProperties": False,
    }
    out = {"name": function, "description": f"Call {function}.", "parameters": schema}
    return {"type": "function", "function": out if strict is None else out | {"strict": strict}}


WEATHER = tool("get_weather", city="string")
ADD = tool("add", a="integer", b="integer")


def ask(client, model, text, tools, stream=False, **fields):
    """Returns content, [(name, arguments)] and finish_reason."""
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    defaults = {"temperature": 0, "max_tokens": 200}
    reply = client.chat.completions.create(model=model, messages=messages, tools=tools, stream=stream, **(defaults | fields))
    if not stream:
        message = reply.choices[0].message
        calls = message.tool_calls or []
        assert all(call.id and call.type == "function" for call in calls)
        assert len({call.id for call in calls}) == len(calls)
        return message.content or "", [(c.function.name, c.function.arguments) for c in calls], reply.choices[0].finish_reason
    content, calls, finish = "", {}, None
    for chunk in reply:
        choice = chunk.choices[0]
        assert finish is None, "nothing comes behind the finish reason"
        finish = choice.finish_reason
        content += choice.delta.content or ""
        for piece in choice.delta.tool_calls or []:
            if piece.index not in calls:
                assert piece.index == len(calls) and piece.id and piece.type == "function" and piece.function.name
                calls[piece.index] = (piece.function.name, "")
            else:
                assert not piece.id and not piece.function.name
            name, arguments = calls[piece.index]
            calls[piece.index] = (name, arguments + (piece.function.arguments or ""))
    return content, list(calls.values()), finish


@pytest.mark.parametrize("stream", [False, True])
def test_the_model_calls_a_tool(client, model, stream):
    content, calls, finish = ask(client, model, "What is the weather in Elmford?", [WEATHER, ADD], stream)
    assert content == ""
    assert [(name, json.loads(arguments)) for name, arguments in calls] == [("get_weather", {"city": "Elmford"})]
    assert finish == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
def test_two_calls_in_one_answer(client, model, stream):
    text = "What is the weather in Paris? What is the weather in Rome?"
    answers = [ask(client, model, text, [WEATHER], stream, seed=seed, temperature=0.7) for seed in range(12)]
    two = [calls for _, calls, _ in answers if len(calls) == 2]
    assert two, answers
    assert all(json.loads(arguments).keys() == {"city"} for calls in two for _, arguments in calls)
    one = [ask(client, model, text, [WEATHER], stream, seed=seed, temperature=0.7, parallel_tool_calls=False) for seed in range(12)]
    assert all(len(calls) <= 1 for _, calls, _ in one)


def test_text_stays_text(client, model):
    for stream in (False, True):
        content, calls, finish = ask(client, model, "Tell me a short story about Mira.", [WEATHER], stream, max_tokens=40)
        assert content and not calls and finish in ("stop", "length")
    content, calls, _ = ask(client, model, "What is the weather in Elmford?", [WEATHER], tool_choice="none")
    assert not calls and content.startswith("<tool_call>")


def test_a_whole_conversation(client, model):
    question = {"role": "user", "content": "What is the weather in Elmford?"}
    reply = client.chat.completions.create(model=model, messages=[question], tools=[WEATHER], temperature=0)
    call = reply.choices[0].message.tool_calls[0]
    result = {"role": "tool", "tool_call_id": call.id, "content": '{"weather": "sunny", "temperature": 21}'}
    messages = [question, reply.choices[0].message.model_dump(exclude_none=True), result]
    content, calls, finish = ask(client, model, messages, [WEATHER])
    assert not calls and finish == "stop"
    assert "21" in content


def test_streamed_and_whole_answers_are_the_same(client, model):
    rng = random.Random(3)
    asks = ["What is the weather in Oslo?", "Use the tool to add 12 and 30.", "Tell me a story.", "Add 3 and 4, and tell me the weather in Rome."]
    for seed in range(16):
        text, fields = rng.choice(asks), {"seed": seed, "temperature": 1.3, "max_tokens": rng.randrange(5, 90)}
        whole = ask(client, model, text, [WEATHER, ADD], **fields)
        streamed = ask(client, model, text, [WEATHER, ADD], True, **fields)
        assert whole == streamed


def test_the_calls_of_strict_tools_are_valid(client, model):
    tools = [
        tool("get_weather", True, city={"enum": ["north", "south"]}, days={"type": "integer", "minimum": 1, "maximum": 7}),
        tool("add", True, a={"type": "integer", "minimum": 100}, why={"type": "string", "maxLength": 5}),
    ]
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in tools}
    asks = ["What is the weather in Elmford?", "Use the tool to add 3 and 4.", "Tell me the weather in Rome."]

    def calls_of(seed):
        return ask(client, model, asks[seed % 3], tools, seed % 2 == 1, seed=seed, temperature=1.2)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(calls_of, range(60)))
    seen = 0
    for _, calls, finish in answers:
        for name, arguments in calls:
            if finish == "length":
                continue
            jsonschema.validate(json.loads(arguments), schemas[name])
            seen += 1
    assert seen > 20, answers


def test_a_strict_tool_that_cannot_be_enforced_is_refused(client, model):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, "Hi", [tool("f", True, a={"type": "string", "pattern": "(?=x)"})])
    assert refused.value.body["param"] == "tools"
    assert ask(client, model, "Hi", [tool("f", False, a={"type": "string", "pattern": "(?=x)"})], max_tokens=5)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_call(client, model, stream, choice):
    _, calls, finish = ask(client, model, "Use the tool to add 3 and 4.", [ADD], stream, tool_choice=choice)
    assert {name for name, _ in calls} == {"add"}
    for _, arguments in calls:
        jsonschema.validate(json.loads(arguments), ADD["function"]["parameters"])
    assert finish == ("tool_calls" if choice == "required" else "stop")
