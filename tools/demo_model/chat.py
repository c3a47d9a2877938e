"""The chat format: special tokens, the Jinja template and its Python twin.

The template is a part of tokenizer_config.json, which servers render. The twin renders the same text in pieces, so
that training knows which pieces the assistant writes. `export.py` checks that both give the same text.
"""

from __future__ import annotations

import json
from typing import Any

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
SPECIAL = [END_OF_TEXT, TURN_START, TURN_END]
# Each is one token, but ordinary text, so it stays visible in decoded output.
MARKUP = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]

Message = dict[str, Any]
# A piece of a document, and whether the model is trained to write it.
Piece = tuple[str, bool]

TOOLS_HEAD = (
    "# Tools\n\nYou may call these functions, listed inside <tools></tools>:\n<tools>"
)
TOOLS_TAIL = (
    "\n</tools>\n\nTo call one, write its name and arguments as JSON:\n"
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)

TEMPLATE = """\
{%- set has_system = messages and messages[0]['role'] == 'system' %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if has_system %}{{- messages[0]['content'] + '\\n\\n' }}{%- endif %}
    {{- TOOLS_HEAD }}
    {%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
    {{- TOOLS_TAIL }}
    {{- '<|im_end|>\\n' }}
{%- elif has_system %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message['role'] == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1]['role'] != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message['content'] + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + (message['content'] or '') }}
        {%- for call in message['tool_calls'] or [] %}
            {%- set function = call['function'] or call %}
            {%- if message['content'] or not loop.first %}{{- '\\n' }}{%- endif %}
            {{- '<tool_call>\\n{"name": "' + function['name'] + '", "arguments": ' }}
            {%- if function['arguments'] is string %}
                {{- function['arguments'] }}
            {%- else %}
                {{- function['arguments'] | tojson }}
            {%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif not (loop.first and has_system) %}
        {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def chat_template() -> str:
    """Returns the template, with the fixed texts of tools as Jinja string literals."""

    def literal(text: str) -> str:
        return "'" + text.replace("\n", "\\n") + "'"

    return TEMPLATE.replace("TOOLS_HEAD", literal(TOOLS_HEAD)).replace(
        "TOOLS_TAIL", literal(TOOLS_TAIL)
    )


def to_json(value: Any) -> str:
    """Returns JSON as the template's `tojson` filter writes it."""
    return json.dumps(value, ensure_ascii=False)


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """Returns one tool call as the assistant writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {to_json(arguments)}}}\n</tool_call>'


def render_chat(messages: list[Message], tools: list[dict] | None = None) -> list[Piece]:
    """Returns the pieces of a conversation. The assistant's contents and their ends are taught.

    The messages are: at most one system message, then user, assistant and tool messages.
    """
    pieces: list[Piece] = []
    rest = messages
    system = ""
    if messages[0]["role"] == "system":
        system, rest = messages[0]["content"], messages[1:]
    if tools:
        listing = "".join("\n" + to_json(tool) for tool in tools)
        system = (system + "\n\n" if system else "") + TOOLS_HEAD + listing + TOOLS_TAIL
    if system:
        pieces.append((f"{TURN_START}system\n{system}{TURN_END}\n", False))
    for index, message in enumerate(rest):
        role = message["role"]
        if role == "assistant":
            calls = message.get("tool_calls") or []
            parts = [message["content"]] if message["content"] else []
            parts += [call_text(call["function"]["name"], call["function"]["arguments"]) for call in calls]
            pieces.append((f"{TURN_START}assistant\n", False))
            pieces.append(("\n".join(parts) + TURN_END, True))
            pieces.append(("\n", False))
        elif role == "tool":
            opens = index == 0 or rest[index - 1]["role"] != "tool"
            closes = index + 1 == len(rest) or rest[index + 1]["role"] != "tool"
            text = f"\n<tool_response>\n{message['content']}\n</tool_response>"
            text = (f"{TURN_START}user" if opens else "") + text + (f"{TURN_END}\n" if closes else "")
            pieces.append((text, False))
        else:
            pieces.append((f"{TURN_START}{role}\n{message['content']}{TURN_END}\n", False))
    return pieces
