"""gpt-oss' format from end to end: the demo model with renamed special tokens. Grammars enforce the format."""

import json
import shutil
from pathlib import Path

import jsonschema
import openai
import pytest
from conftest import serve

DEMO = Path(__file__).parents[2] / "models" / "demo"
MARKS = {"<|endoftext|>": "<|return|>", "<|im_start|>": "<|start|>", "<|im_end|>": "<|end|>", "<tool_call>": "<|channel|>",
         "</tool_call>": "<|message|>", "<tool_response>": "<|constrain|>", "</tool_response>": "<|call|>"}  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
COLOUR = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"],
          "additionalProperties": False}  # fmt: skip
PAINT = {"type": "function", "function": {"name": "paint", "parameters": COLOUR, "strict": True}}
STOP = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("harmony") / "model"
    shutil.copytree(DEMO, folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    ids = {}
    for token in tokenizer["added_tokens"]:
        token["content"], token["special"] = MARKS[token["content"]], True
        ids[token["content"]] = token["id"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config |= {"chat_template": TEMPLATE, "eos_token": "<|return|>", "pad_token": "<|return|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for name in ["config.json", "generation_config.json"]:
        config = json.loads((folder / name).read_text())
        config |= {"eos_token_id": [ids["<|return|>"], ids["<|call|>"]], "pad_token_id": ids["<|return|>"]}
        (folder / name).write_text(json.dumps(config))
    # Without --reasoning-parser, the tokenizer selects the format.
    with serve("--model", str(folder), "--enable-auto-tool-choice", "--tool-call-parser", "openai") as base:
        yield openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def ask(gpt, **fields):
    """Returns eight answers, each as (reasoning, content, [(name, arguments)], finish reason). Requests them with and
    without a stream; both must be equal."""
    client = gpt
    asked = {"model": client.models.list().data[0].id, "messages": [{"role": "user", "content": "Tell me about Mira."}], "n": 8,
             "temperature": 1, "seed": 3, "max_tokens": 400} | fields  # fmt: skip
    reply = client.chat.completions.create(**asked)
    whole = [
        (getattr(c.message, "reasoning", None) or "", c.message.content or "",
         [(t.function.name, t.function.arguments) for t in c.message.tool_calls or []], c.finish_reason)
        for c in reply.choices
    ]  # fmt: skip
    parts = [["", "", {}, None] for _ in range(8)]
    for chunk in client.chat.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            part = parts[choice.index]
            part[0] += getattr(choice.delta, "reasoning", None) or ""
            part[1] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                name, arguments = part[2].get(call.index, ("", ""))
                part[2][call.index] = (name or call.function.name, arguments + call.function.arguments)
            part[3] = choice.finish_reason or part[3]
    finished = [i for i in range(8) if whole[i][3] != "length"]
    assert finished
    for i in finished:
        assert (parts[i][0], parts[i][1], list(parts[i][2].values()), parts[i][3]) == whole[i]
    return [whole[i] for i in finished]


def test_a_schema_binds_the_final_message(gpt):
    response_format = {"type": "json_schema", "json_schema": {"name": "colour", "schema": COLOUR}}
    answers = [answer for seed in (3, 4) for answer in ask(gpt, seed=seed, response_format=response_format)]
    for _, content, _, _ in answers:
        jsonschema.validate(json.loads(content), COLOUR)
    assert any(reasoning for reasoning, *_ in answers)


def test_a_forced_call(gpt):
    for _, content, calls, finish in ask(gpt, tools=[PAINT, STOP], tool_choice="required"):
        assert calls and not content and finish == "tool_calls"
        for name, arguments in calls:
            assert name in ("paint", "stop")
            if name == "paint":
                jsonschema.validate(json.loads(arguments), COLOUR)


def test_strict_tools_under_auto(gpt):
    answers = ask(gpt, tools=[PAINT])
    for _, content, calls, finish in answers:
        assert (finish == "tool_calls") == bool(calls)
        for name, arguments in calls:
            assert name == "paint"
            jsonschema.validate(json.loads(arguments), COLOUR)
    assert "<|" not in json.dumps(answers)
