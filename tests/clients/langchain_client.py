"""LangChain through its packages for OpenAI and Anthropic: chats, streams, tools, structured outputs, texts, vectors."""

import os
from typing import Literal

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

writes, reads = os.environ["WRITES"], os.environ["READS"]
to = {"base_url": writes + "/v1", "api_key": "none", "model": "writes", "temperature": 0, "max_retries": 0}


class Place(BaseModel):
    town: Literal["Rome", "Oslo"]
    visits: Literal[1, 2, 3]


@tool
def look(at: Literal["sky", "sea"]) -> str:
    """The keys that exist."""
    return at + " is blue"


for responses in (False, True):
    chat = ChatOpenAI(**to, max_tokens=200, stream_usage=True, use_responses_api=responses)
    whole = chat.invoke("Tell a story.")
    pieces = list(chat.stream("Tell a story."))
    assert "".join(p.text for p in pieces) == whole.text
    assert sum((p.usage_metadata or {}).get("output_tokens", 0) for p in pieces) == whole.usage_metadata["output_tokens"]
    chat.with_structured_output(Place, method="json_schema").invoke("Where?")
    called = chat.bind_tools([look], tool_choice="look").invoke("Where?")
    result = look.invoke(called.tool_calls[0])
    assert isinstance(result, ToolMessage)
    chat.bind_tools([look]).invoke([HumanMessage("Where?"), called, result])
assert len(ChatOpenAI(**to, max_tokens=8).batch(["a", "b", "c"])) == 3
assert OpenAI(**to, max_tokens=8).invoke("One rainy morning in")
vectors = OpenAIEmbeddings(base_url=reads + "/v1", api_key="none", model="reads", check_embedding_ctx_length=False)
assert len(vectors.embed_documents(["a", "b"])) == 2

claude = ChatAnthropic(base_url=writes, api_key="none", model="writes", max_tokens=200, temperature=0, max_retries=0)
whole = claude.invoke("Tell a story.")
assert "".join(p.text for p in claude.stream("Tell a story.")) == whole.text
called = claude.bind_tools([look], tool_choice="look").invoke("Where?")
assert called.tool_calls[0]["args"]["at"] in ("sky", "sea")
print("every answer is as the client wants it")
