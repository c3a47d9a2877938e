"""LiteLLM, which calls such servers hosted_vllm: chats, streams, tools, schemas, texts, vectors, Responses, sound, rerank."""

import json
import os

import litellm
from pydantic import BaseModel

litellm.suppress_debug_info = True
writes, reads, hears = (os.environ[name] for name in ("WRITES", "READS", "HEARS"))
to = {"model": "hosted_vllm/writes", "api_base": writes + "/v1", "api_key": "none", "num_retries": 0}
body = to | {"messages": [{"role": "user", "content": "Tell a story."}], "temperature": 0, "max_tokens": 8}
whole = litellm.completion(**body)
chunks = list(litellm.completion(**body, stream=True, stream_options={"include_usage": True}))
assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
assert litellm.stream_chunk_builder(chunks).usage.completion_tokens == whole.usage.completion_tokens == 8


class Place(BaseModel):
    town: str
    visits: int


answer = litellm.completion(**body | {"max_tokens": 400}, response_format=Place).choices[0]
if answer.finish_reason == "stop":
    Place.model_validate_json(answer.message.content)
tool = {"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "properties": {"at": {"enum": ["sky", "sea"]}}, "required": ["at"], "additionalProperties": False}}}
called = litellm.completion(**body | {"max_tokens": 200}, tools=[tool], tool_choice="required").choices[0].message
assert json.loads(called.tool_calls[0].function.arguments)["at"] in ("sky", "sea")
text = litellm.text_completion(**to | {"model": "text-completion-openai/writes"}, prompt="One rainy morning in", max_tokens=8)
assert text.choices[0].text
response = litellm.responses(**to | {"model": "openai/writes"}, input="Tell a story.", max_output_tokens=8)
assert response.output[0].content[0].text
sent = {"model": "anthropic/writes", "api_base": writes, "api_key": "none", "max_tokens": 8,
        "messages": [{"role": "user", "content": "Tell a story."}]}
assert litellm.completion(**sent).choices[0].message.content
vectors = litellm.embedding(model="hosted_vllm/reads", api_base=reads + "/v1", api_key="none", input=["a", "b"])
assert len(vectors.data) == 2
with open(os.environ["SOUND"], "rb") as sound:
    heard = litellm.transcription(model="hosted_vllm/hears", api_base=hears + "/v1", api_key="none", file=sound)
assert isinstance(heard.text, str)
try:
    litellm.completion(**body | {"temperature": 3})
except litellm.BadRequestError as error:
    assert "temperature" in str(error)
else:
    raise AssertionError("an invalid temperature was taken")
print("every answer is as the client wants it")
