"""/v1/responses through the official OpenAI client. Every event is validated with the client's types."""

import openai
import pytest
from conftest import at_rest, serve
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

EVENT = TypeAdapter(ResponseStreamEvent)

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
                   "required": ["city"], "additionalProperties": False},
    "strict": True,
}


def checked(response):
    return Response.model_validate(response.to_dict(), strict=False)


def test_create_retrieve_and_go_on(client, model):
    first = client.responses.create(model=model, input="Where does Mira live?", instructions="Be short.",
                                    max_output_tokens=24, temperature=0)
    checked(first)
    assert first.status in ("completed", "incomplete") and first.output_text
    assert first.usage.total_tokens == first.usage.input_tokens + first.usage.output_tokens
    again = client.responses.retrieve(first.id)
    assert again.output_text == first.output_text
    second = client.responses.create(model=model, input="And then?", previous_response_id=first.id,
                                     max_output_tokens=8)
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.output_tokens
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_a_stream_is_the_same_answer(client, model):
    ask = {"model": model, "input": "Once upon a time", "max_output_tokens": 12, "temperature": 0}
    whole = client.responses.create(**ask)
    events = list(client.responses.create(**ask, stream=True))
    for event in events:
        EVENT.validate_python(event.to_dict())
    assert [e.sequence_number for e in events] == list(range(len(events)))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == whole.output_text
    assert events[-1].type in ("response.completed", "response.incomplete")
    assert events[-1].response.output_text == text


def test_the_clients_own_stream_helper(client, model):
    with client.responses.stream(model=model, input="Where does Mira live?", temperature=0) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and final.output_text


def test_json_schema_and_tools(client, model):
    answer = client.responses.create(
        model=model, input="A city", max_output_tokens=60, temperature=0,
        text={"format": {"type": "json_schema", "name": "city", "strict": True,
                         "schema": WEATHER["parameters"]}})
    assert answer.output_text.startswith("{")
    call = client.responses.create(model=model, input="Weather in Oslo?", tools=[WEATHER],
                                   tool_choice={"type": "function", "name": "weather"}, max_output_tokens=60, temperature=0)
    item = call.output[0]
    assert item.type == "function_call" and item.name == "weather"
    after = client.responses.create(
        model=model, max_output_tokens=4, temperature=0, tools=[WEATHER], tool_choice="none",
        input=[{"role": "user", "content": "Weather in Oslo?"}, item.to_dict(),
               {"type": "function_call_output", "call_id": item.call_id, "output": "Rain"}])
    assert after.output_text


def test_items_of_the_input(client, model):
    first = client.responses.create(model=model, input="Where does Mira live?", max_output_tokens=4)
    second = client.responses.create(model=model, input="And then?", previous_response_id=first.id, max_output_tokens=4)
    items = list(client.responses.input_items.list(second.id, order="asc", limit=2))
    assert [item.role for item in items] == ["user", "assistant", "user"]
    assert items[2].content[0].text == "And then?" and len({item.id for item in items}) == 3


def test_background_and_cancel(slow_engine):
    with serve("--executor", slow_engine) as base:
        responses = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).responses
        pending = responses.create(model="demo", input="Tell me a story", background=True,
                                   max_output_tokens=1800, extra_body={"ignore_eos": True})
        assert pending.status == "queued"
        assert responses.cancel(pending.id).status == "cancelled"
        assert responses.retrieve(pending.id).status == "cancelled"
        assert at_rest(base)


def test_a_background_stream_is_read_again(client, model):
    events = list(client.responses.create(model=model, input="Tell me a story", background=True, stream=True, max_output_tokens=20))
    assert events[-1].type in ("response.completed", "response.incomplete")
    rest = list(client.responses.retrieve(events[0].response.id, stream=True, starting_after=events[1].sequence_number))
    assert rest == events[2:]


def test_mistakes_are_400_and_name_the_field(client, model):
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(model=model, input=[{"role": "user", "content": [
            {"type": "input_image", "image_url": "http://x", "detail": "auto"}]}])
    assert error.value.param == "input[0].content[0].image_url"
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=model, input="x", previous_response_id="resp_none")
