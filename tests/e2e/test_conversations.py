"""/v1/conversations through the official OpenAI client."""

import openai
import pytest


def text_of(item):
    return item.content[0].text


def test_responses_continue_a_conversation(client, model):
    conversation = client.conversations.create(
        metadata={"topic": "dogs"}, items=[{"type": "message", "role": "user", "content": "My name is Mira."}])
    assert conversation.id.startswith("conv_") and conversation.metadata == {"topic": "dogs"}
    first = client.responses.create(model=model, conversation=conversation.id, input="Hello!", max_output_tokens=8)
    assert first.conversation.id == conversation.id
    second = client.responses.create(model=model, conversation={"id": conversation.id}, input="Again", max_output_tokens=8,
                                     store=False)
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens, "it has the first turn"
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    assert [text_of(item) for item in items[:2]] == ["My name is Mira.", "Hello!"]
    assert [item.role for item in items if item.type == "message"].count("assistant") == 2
    assert text_of(items[-1]) == second.output_text
    newest = client.conversations.items.list(conversation.id, limit=1)
    assert newest.data[0].id == items[-1].id and newest.has_more


def test_a_stream_extends_it_too(client, model):
    conversation = client.conversations.create()
    *_, last = client.responses.create(model=model, conversation=conversation.id, input="Hi", max_output_tokens=8, stream=True)
    text = last.response.output_text
    assert [text_of(item) for item in client.conversations.items.list(conversation.id)] == [text, "Hi"]


def test_items_and_metadata_change(client):
    conversation = client.conversations.create()
    assert client.conversations.update(conversation.id, metadata={"a": "b"}).metadata == {"a": "b"}
    added = client.conversations.items.create(
        conversation.id, items=[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}])
    item = client.conversations.items.retrieve(added.data[0].id, conversation_id=conversation.id)
    assert text_of(item) == "x"
    client.conversations.items.delete(item.id, conversation_id=conversation.id)
    assert not list(client.conversations.items.list(conversation.id))
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conversation.id)


def test_wrong_requests_are_named(client, model):
    with pytest.raises(openai.NotFoundError, match="conversation"):
        client.responses.create(model=model, conversation="conv_none", input="Hi")
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(model=model, conversation="conv_none", previous_response_id="resp_none", input="Hi")
    with pytest.raises(openai.BadRequestError, match="items"):
        client.conversations.create(items=[{"type": "message", "role": "user", "content": "x"}] * 21)
