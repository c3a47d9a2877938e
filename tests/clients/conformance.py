"""What servers answer, whole and event by event, against OpenAI's published document (openapi.json of github.com/openai/openai-openapi):

    .venv/bin/python tests/clients/conformance.py openapi.json

Three servers are started as in run.py. Prints how many answers and events were looked at, and what of them is not as the document says.
"""

import collections
import contextlib
import json
import pathlib
import sys
import tempfile
import urllib.error
import urllib.request
import uuid

import jsonschema

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path += [str(HERE), str(ROOT / "tests/e2e")]

from conftest import running  # noqa: E402
from run import MODELS  # noqa: E402
from test_embeddings import folder_of  # noqa: E402

TOOL = {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
FLAT = {"type": "function", "name": "weather", "parameters": TOOL["function"]["parameters"], "strict": True}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
CHAT = {"model": "writes", "messages": [{"role": "user", "content": "Tell me a story."}], "max_completion_tokens": 12}
CHATS = [
    {},
    {"n": 2, "seed": 1, "logprobs": True, "top_logprobs": 3},
    {"stop": ["e"], "temperature": 0},
    {"tools": [TOOL], "tool_choice": "required", "max_completion_tokens": 60},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}, "max_completion_tokens": 60},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}},
]
COMPLETIONS = [{}, {"n": 2, "logprobs": 2}, {"echo": True, "logprobs": 1}, {"stop": ["e"]}, {"prompt": ["Once", "Twice"]}]
RESPONSES = [
    {},
    {"instructions": "Be brief.", "temperature": 0.5, "metadata": {"a": "b"}},
    {"tools": [FLAT], "tool_choice": "required", "max_output_tokens": 60},
    {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
    {"background": True},
    {"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
]
BAD = [{"temperature": 9}, {"messages": []}, {"model": "nobody"}, {"n": 0}]


# Features of the document that OpenAI's own service and vLLM lack.
KNOWN = {
    "CreateCompletionResponse: $.choices[0].finish_reason: None is not of type 'string'": "null until the last event",
    "CreateCompletionResponse: $.choices[0].logprobs.token_logprobs[0]: None is not of type 'number'": "nothing predicts the first token",
    "ErrorResponse: $.error.code: 400 is not valid under any of the given schemas": "vLLM's: the status, a number",
    "ErrorResponse: $.error.code: 404 is not valid under any of the given schemas": "the same",
    "CreateTranscriptionResponseVerboseJson: $.segments[1].no_speech_prob: None is not of type 'number'": "vLLM's: not computed",
}


def nullable(schema):
    """Says in OpenAPI 3.1's words what is left of 3.0's in the document."""
    if isinstance(schema, list):
        return [nullable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: nullable(part) for key, part in schema.items()}
    return {"anyOf": [schema, {"type": "null"}]} if schema.pop("nullable", False) is True else schema


class Document:
    def __init__(self, path):
        self.document = nullable(json.loads(pathlib.Path(path).read_text()))
        self.seen, self.wrong = collections.Counter(), collections.Counter()

    def check(self, value, name):
        self.seen[name] += 1
        schema = {"$ref": f"#/components/schemas/{name}", "components": self.document["components"]}
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(value))
        if error:
            self.wrong[f"{name}: {error.json_path}: {error.message[:300]}"] += 1


def call(base, path, body=None, data=None, content_type="application/json"):
    """Status and body; of a stream its events."""
    data = json.dumps(body).encode() if body is not None else data
    request = urllib.request.Request(base + path, data, {"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            status, text = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    if text.startswith(("data:", "event:")):
        lines = [line[len("data: ") :] for line in text.splitlines() if line.startswith("data: ")]
        return status, [json.loads(line) for line in lines if line != "[DONE]"]
    return status, json.loads(text)


def form(fields, name, sound):
    mark = uuid.uuid4().hex
    parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in fields.items()]
    parts.append(f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
    return "".join(parts).encode() + sound + f"\r\n--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def writes(base, document):
    def both(path, bodies, whole, event, fields):
        for body in bodies:
            status, answer = call(base, path, fields | body)
            assert status == 200, answer
            document.check(answer, whole)
            for usage in () if "background" in body else (False, True):
                extra = {"stream_options": {"include_usage": usage}} if "chat" in path or "completions" in path else {}
                status, events = call(base, path, fields | body | {"stream": True} | extra)
                assert status == 200 and len(events) > 1, events
                for one in events:
                    document.check(one, event)

    both("/v1/chat/completions", CHATS, "CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", CHAT)
    plain = {"model": "writes", "prompt": "Once upon a time", "max_tokens": 8}
    both("/v1/completions", COMPLETIONS, "CreateCompletionResponse", "CreateCompletionResponse", plain)
    both("/v1/responses", RESPONSES, "Response", "ResponseStreamEvent", {"model": "writes", "input": "Hello", "max_output_tokens": 12})
    _, stored = call(base, "/v1/responses", {"model": "writes", "input": "Hello", "max_output_tokens": 4})
    document.check(call(base, f"/v1/responses/{stored['id']}")[1], "Response")
    document.check(call(base, "/v1/models")[1], "ListModelsResponse")
    document.check(call(base, "/v1/models/writes")[1], "Model")
    for bad in BAD:
        for path in ("/v1/chat/completions", "/v1/responses"):
            status, answer = call(base, path, (CHAT if "chat" in path else {"model": "writes", "input": "Hello"}) | bad)
            if status >= 400:
                document.check(answer, "ErrorResponse")


def reads(base, document):
    for fields in ({"input": "One"}, {"input": ["One", "Two"], "encoding_format": "float"}, {"input": [5, 6]}):
        document.check(call(base, "/v1/embeddings", {"model": "reads"} | fields)[1], "CreateEmbeddingResponse")


def hears(base, document):
    sound = (ROOT / "tests/data/sound/chirp.wav").read_bytes()
    for kind, name in (("json", "CreateTranscriptionResponseJson"), ("verbose_json", "CreateTranscriptionResponseVerboseJson")):
        data, content_type = form({"model": "hears", "response_format": kind}, "a.wav", sound)
        document.check(call(base, "/v1/audio/transcriptions", data=data, content_type=content_type)[1], name)


def main():
    document = Document(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        vectors = folder_of("roberta", pathlib.Path(folder))
        for ask, (name, flags) in zip((writes, reads, hears), MODELS.items(), strict=True):
            flags = " ".join(flags).replace("{reads}", str(vectors))
            with contextlib.chdir(ROOT), running(f"build/release/octavo serve --port {{port}} --served-model-name {name.lower()} --model {flags}") as (_, base):
                ask(base, document)
    print(dict(document.seen))
    for what, count in document.wrong.most_common():
        print(f"{count} times {what} ({KNOWN.get(what, 'not known')})")
    sys.exit(bool(document.wrong.keys() - KNOWN.keys()))


if __name__ == "__main__":
    main()
