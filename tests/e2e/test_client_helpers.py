"""The types and schemas that helpers of clients send: pydantic models through the official client, and captured requests
of other helpers (zod, instructor, LangChain, MCP). tools/grammar/capture_helpers.py writes
tests/data/tools/helpers.json.
"""

import datetime
import enum
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Optional, Union

import jsonschema
import openai
import pydantic
import pytest

HELPERS = json.loads((Path(__file__).parents[1] / "data" / "tools" / "helpers.json").read_text())
MESSAGES = [{"role": "user", "content": "Describe Elmford as JSON."}]


class State(enum.Enum):
    NEW = "new"
    PAID = "paid"


class Circle(pydantic.BaseModel):
    kind: Literal["circle"]
    radius: float


class Box(pydantic.BaseModel):
    kind: Literal["box"]
    width: float
    height: Optional[float]


class Order(pydantic.BaseModel):
    id: uuid.UUID
    state: State
    placed: datetime.datetime
    due: Optional[datetime.date]
    total: Decimal
    count: Annotated[int, pydantic.Field(ge=1, le=9)]
    shape: Annotated[Union[Circle, Box], pydantic.Field(discriminator="kind")]
    tags: Annotated[set[Annotated[str, pydantic.Field(max_length=8)]], pydantic.Field(max_length=3)]


class Node(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(max_length=8)]
    children: Annotated[list["Node"], pydantic.Field(max_length=1)]


# The schemas do not limit these numbers and texts, so max_tokens cuts some answers.
FIELDS = {"max_tokens": 500, "temperature": 1.2, "messages": MESSAGES}


def finished(ask):
    """Returns the first answers that end without being cut. The seeds of such answers depend on the processor's
    rounding, so the test runs eight at a time."""
    with ThreadPoolExecutor(8) as pool:
        for first in range(0, 96, 8):
            if answers := [answer for answer in pool.map(ask, range(first, first + 8)) if answer is not None]:
                return answers
    raise AssertionError("every answer was cut off")


@pytest.mark.parametrize("kind", [Order, Circle, Node])
def test_parsed_models(client, model, kind):
    def ask(seed):
        try:
            reply = client.chat.completions.parse(model=model, response_format=kind, seed=seed, **FIELDS)
        except openai.LengthFinishReasonError:
            return None
        return reply.choices[0].message.parsed

    for parsed in finished(ask):
        assert isinstance(parsed, kind)


def test_parsed_tools(client, model):
    tools = [openai.pydantic_function_tool(Order, name="order")]

    def ask(seed):
        try:
            reply = client.chat.completions.parse(
                model=model, tools=tools, tool_choice="required", parallel_tool_calls=False, seed=seed, **FIELDS
            )
        except openai.LengthFinishReasonError:
            return None
        return reply.choices[0].message.tool_calls

    for calls in finished(ask):
        (call,) = calls
        assert isinstance(call.function.parsed_arguments, Order)


@pytest.mark.parametrize("name", HELPERS)
def test_requests_of_other_helpers(client, model, name):
    """The request has a response format, or tools one of which must be called."""
    fields = HELPERS[name]
    single = {"parallel_tool_calls": False} if "tools" in fields else {}

    def ask(seed):
        reply = client.chat.completions.create(model=model, seed=seed, extra_body={**fields, **single}, **FIELDS)
        return None if reply.choices[0].finish_reason == "length" else reply.choices[0].message

    for message in finished(ask):
        if "tools" in fields:
            (call,) = message.tool_calls
            schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in fields["tools"]}
            schema, text = schemas[call.function.name], call.function.arguments
        else:
            schema, text = fields["response_format"]["json_schema"]["schema"], message.content
        value = json.loads(text)
        problems = jsonschema.validators.validator_for(schema)(schema).iter_errors(value)
        assert [p.message for p in problems if p.validator != "uniqueItems"] == []
