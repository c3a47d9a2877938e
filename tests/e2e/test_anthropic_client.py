"""/v1/messages through the official Anthropic client."""

import anthropic
import pytest

from conftest import serve

TOOL = {"name": "weather", "description": "The weather in a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
                         "required": ["city"], "additionalProperties": False}}


@pytest.fixture(scope="module")
def claude(server):
    return anthropic.Anthropic(base_url=server, api_key="none", max_retries=0)


def test_a_message(claude, model):
    message = claude.messages.create(model=model, max_tokens=24, system="Be short.", extra_body={"temperature": 0},
                                     messages=[{"role": "user", "content": "Where does Mira live?"}])
    anthropic.types.Message.model_validate(message.to_dict())
    assert message.content[0].type == "text" and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.output_tokens > 0


def test_a_stream_is_the_same_message(claude, model):
    ask = {"model": model, "max_tokens": 12, "extra_body": {"temperature": 0},
           "messages": [{"role": "user", "content": [{"type": "text", "text": "Once upon a time"}]}]}
    whole = claude.messages.create(**ask)
    with claude.messages.stream(**ask) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.usage.input_tokens == whole.usage.input_tokens


def test_tools(claude, model):
    ask = {"model": model, "max_tokens": 60, "tools": [TOOL], "tool_choice": {"type": "tool", "name": "weather"}, "extra_body": {"temperature": 0},
           "messages": [{"role": "user", "content": "Weather in Oslo?"}]}
    message = claude.messages.create(**ask)
    call = message.content[0]
    assert call.type == "tool_use" and call.name == "weather" and message.stop_reason == "tool_use"
    with claude.messages.stream(**ask) as stream:
        assert stream.get_final_message().content[0].type == "tool_use"
    after = claude.messages.create(
        model=model, max_tokens=4, tools=[TOOL], tool_choice={"type": "none"},
        messages=[*ask["messages"], {"role": "assistant", "content": [call.to_dict()]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                                "content": "Rain"}]}])
    assert after.usage.output_tokens > 0


def test_count_tokens_is_what_a_message_takes(claude, model):
    messages = [{"role": "user", "content": "Where does Mira live?"}]
    count = claude.messages.count_tokens(model=model, messages=messages)
    message = claude.messages.create(model=model, max_tokens=1, messages=messages)
    assert count.input_tokens == message.usage.input_tokens


def test_errors_are_of_its_kinds(claude, model):
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(model="nope", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    with pytest.raises(anthropic.BadRequestError) as error:
        claude.messages.create(model=model, max_tokens=0, messages=[{"role": "user", "content": "x"}])
    assert error.value.body["error"]["type"] == "invalid_request_error"
    assert "max_tokens" in error.value.body["error"]["message"]


def test_models_are_in_its_form(claude, model):
    listed = claude.models.list()
    assert model in [card.id for card in listed] and listed.has_more is False
    card = claude.models.retrieve(model)
    assert (card.type, card.id, card.display_name) == ("model", model, model) and card.created_at.year > 2000
    with pytest.raises(anthropic.NotFoundError) as error:
        claude.models.retrieve("nope")
    assert error.value.body["error"]["type"] == "not_found_error"


def test_requests_have_ids(claude, model):
    messages = [{"role": "user", "content": "x"}]
    message = claude.messages.create(model=model, max_tokens=1, messages=messages)
    assert message._request_id and message.usage.cache_creation_input_tokens == 0
    with pytest.raises(anthropic.NotFoundError) as error:
        claude.messages.create(model="nope", max_tokens=1, messages=messages)
    assert error.value.request_id == error.value.body["request_id"]


def test_keys():
    with serve("--api-key", "secret") as base:
        ask = {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
        right = anthropic.Anthropic(base_url=base, api_key="secret", max_retries=0)
        assert right.messages.create(**ask).role == "assistant"
        with pytest.raises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=base, api_key="wrong", max_retries=0).messages.create(**ask)
