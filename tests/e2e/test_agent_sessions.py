"""Two turns of each coding agent, with the fields of its requests. The tool call is complete, the second turn finds the
first one in the prefix cache, and no field is refused.

The requests have the shape of Codex CLI 0.171 (Responses), Claude Code 2.1 (Messages), OpenCode 1.18 (chats;
Responses), Cline 3.0 and Aider 0.86 (chats). The texts are our own.
"""

import copy
import json

import pytest
from conftest import PATIENCE, http_client, serve

RULES = ("You work in a terminal. Read files before you change them, run the tests after each change, and keep changes small. " * 6
         + "Answer in one sentence.")
TASK = "List the files of this folder."
RESULT = "README.md\nmain.py\ntests\n"
ARGUMENTS = {"type": "object", "properties": {"command": {"enum": ["ls -1 \"a b\""]}}, "required": ["command"],
             "additionalProperties": False}
CALLED = {"command": "ls -1 \"a b\""}
DESCRIPTION = "Runs a command in a shell and returns its output. Commands of another folder need an absolute path."


class Chats:
    path = "/v1/chat/completions"
    forced = {"tool_choice": {"type": "function", "function": {"name": "shell"}}, "max_tokens": 64}
    short = {"tool_choice": "auto", "max_tokens": 4}

    @staticmethod
    def read(events):
        """Returns (tool call as the client sends it back, text, prompt tokens, cached tokens)."""
        text, calls = "", []
        for event in events:
            for choice in event["choices"]:
                delta = choice["delta"]
                text += delta.get("content") or ""
                for piece in delta.get("tool_calls") or []:
                    if "id" in piece:
                        calls.append({"id": piece["id"], "type": "function",
                                      "function": {"name": piece["function"]["name"], "arguments": ""}})
                    calls[piece["index"]]["function"]["arguments"] += piece["function"].get("arguments") or ""
        usage = events[-1]["usage"]
        return calls, text, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    @staticmethod
    def arguments(call):
        return call["function"]["name"], call["function"]["arguments"]

    @staticmethod
    def append(body, calls, text):
        if not calls:
            body["messages"] += [{"role": "assistant", "content": text}, {"role": "user", "content": "Continue."}]
            return
        body["messages"] += [{"role": "assistant", "content": None, "tool_calls": calls},
                             {"role": "tool", "tool_call_id": calls[0]["id"], "content": RESULT}]


class Messages:
    path = "/v1/messages?beta=true"
    forced = {"tool_choice": {"type": "tool", "name": "shell"}, "max_tokens": 64}
    short = {"tool_choice": {"type": "auto"}, "max_tokens": 4}

    @staticmethod
    def read(events):
        blocks = {}
        for event in events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = dict(event["content_block"], input="")
            if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
                blocks[event["index"]]["input"] += event["delta"]["partial_json"]
        usage = next(event for event in events if event["type"] == "message_delta")["usage"]
        calls = [block for block in blocks.values() if block["type"] == "tool_use"]
        return calls, "", usage["input_tokens"] + usage["cache_read_input_tokens"], usage["cache_read_input_tokens"]

    @staticmethod
    def arguments(call):
        return call["name"], call["input"]

    @staticmethod
    def append(body, calls, _):
        call = calls[0]
        body["messages"] += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call["id"], "name": call["name"],
                                               "input": json.loads(call["input"])}]},
            {"role": "user", "content": [{"tool_use_id": call["id"], "type": "tool_result", "content": RESULT, "is_error": False,
                                          "cache_control": {"type": "ephemeral"}}]}]


class Responses:
    path = "/v1/responses"
    forced = {"tool_choice": {"type": "function", "name": "shell"}, "max_output_tokens": 64}
    short = {"tool_choice": "auto", "max_output_tokens": 4}

    @staticmethod
    def read(events):
        response = events[-1]["response"]
        calls = [event["item"] for event in events if event["type"] == "response.output_item.done"
                 and event["item"]["type"].endswith("_call")]
        for call in calls:
            kind = "custom_tool_call_input" if call["type"] == "custom_tool_call" else "function_call_arguments"
            said = "".join(event["delta"] for event in events if event["type"] == f"response.{kind}.delta")
            assert said == call.get("arguments", call.get("input"))
        usage = response["usage"]
        return calls, "", usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]

    @staticmethod
    def arguments(call):
        return call["name"], call["arguments"]

    @staticmethod
    def append(body, calls, _):
        body["input"] += [calls[0], {"type": "function_call_output", "id": "fco_1", "call_id": calls[0]["call_id"],
                                     "output": RESULT}]


def function(name="shell", **more):
    return {"name": name, "description": DESCRIPTION, "parameters": ARGUMENTS, **more}


def chat_tools():
    return [{"type": "function", "function": function()}, {"type": "function", "function": function("read")}]


CODEX = {
    "input": [{"type": "message", "id": "msg_1", "role": "developer", "content": [{"type": "input_text", "text": RULES}]},
              {"type": "message", "id": "msg_4", "role": "developer", "content": [
                  {"type": "input_text", "text": "The sandbox is off."}, {"type": "input_text", "text": "No skills exist."}]},
              {"type": "message", "id": "msg_2", "role": "user", "content": [
                  {"type": "input_text", "text": "<environment_context><cwd>/src</cwd></environment_context>"}]},
              {"type": "message", "id": "msg_3", "role": "user", "content": [{"type": "input_text", "text": TASK}]}],
    "tools": [{"type": "function", **function(), "strict": False},
              {"type": "namespace", "name": "agents", "description": "Sub-agents",
               "tools": [{"type": "function", **function("close"), "strict": False}]},
              {"type": "custom", "name": "apply_patch", "description": "Edits files",
               "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"***\""}},
              {"type": "web_search", "external_web_access": True}],
    "parallel_tool_calls": True, "reasoning": {"summary": "auto"}, "store": False, "stream": True,
    "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session", "client_metadata": {"session_id": "session", "thread_id": "session", "turn_id": "1", "x-codex-turn-metadata": "{}"},
}
CLAUDE_CODE = {
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cc_entrypoint=cli;"},
               {"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nIt is Sunday.\n</system-reminder>\n"},
                                              {"type": "text", "text": TASK, "cache_control": {"type": "ephemeral"}}]},
                 {"role": "system", "content": "No other agents can be called."}],
    "tools": [{"name": name, "description": DESCRIPTION,
               "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", **ARGUMENTS}} for name in ("shell", "read")],
    "metadata": {"user_id": "{\"session_id\":\"session\"}"}, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "stream": True,
}
OPENCODE = {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": TASK}], "tools": chat_tools(),
            "stream": True, "stream_options": {"include_usage": True}}
OPENCODE_RESPONSES = {
    "input": [{"role": "system", "content": RULES}, {"role": "user", "content": [{"type": "input_text", "text": TASK}]}],
    "tools": [{"type": "function", **function(), "strict": False}], "store": False, "prompt_cache_key": "session", "stream": True}
AIDER = {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": "Here are files:\n\nnotes.txt\n```\nhello\n```"},
                      {"role": "assistant", "content": "Ok."}, {"role": "user", "content": TASK}],
         "stream": True, "temperature": 0, "stream_options": {"include_usage": True}}

SESSIONS = {"codex": (Responses, CODEX), "claude-code": (Messages, CLAUDE_CODE), "opencode": (Chats, OPENCODE),
            "opencode-responses": (Responses, OPENCODE_RESPONSES), "cline": (Chats, OPENCODE), "aider": (Chats, AIDER)}


@pytest.fixture(scope="module")
def agents_server():
    with serve("--enable-prompt-tokens-details") as base:
        yield base


def ask(base, protocol, body):
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "interleaved-thinking-2025-05-14"}
    answer = http_client.post(base + protocol.path, json=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_of_an_agent(agents_server, name):
    protocol, shape = SESSIONS[name]
    body = copy.deepcopy(shape) | {"model": "demo", "temperature": 0}
    tools = "tools" in body
    # The first text contains the name of the session, so no other session has cached its prompt.
    text = json.dumps(body).replace("terminal", f"terminal ({name})")
    body = json.loads(text)
    calls, said, first_prompt, _ = protocol.read(ask(agents_server, protocol, body | (protocol.forced if tools else {"max_tokens": 8})))
    if tools:
        assert len(calls) == 1
        called, arguments = protocol.arguments(calls[0])
        assert called == "shell" and json.loads(arguments) == CALLED
    protocol.append(body, calls, said)
    short = protocol.short if tools else {"max_tokens": 4}
    _, _, prompt, cached = protocol.read(ask(agents_server, protocol, body | short))
    assert prompt > first_prompt
    assert cached >= 0.9 * first_prompt, f"{cached} of {first_prompt} tokens were cached"


def test_claude_code_sees_that_the_server_answers(agents_server):
    assert http_client.head(agents_server + "/").status_code == 200


def test_calls_of_codex_keep_their_kind(agents_server):
    """Calls keep their namespace and type, and the next turn accepts their items."""
    body = copy.deepcopy(CODEX) | {"model": "demo", "temperature": 0, "max_output_tokens": 64}
    chosen = {"tool_choice": {"type": "function", "name": "close", "namespace": "agents"}}
    [call], *_ = Responses.read(ask(agents_server, Responses, body | chosen))
    assert (call["type"], call["name"], call["namespace"]) == ("function_call", "close", "agents")
    assert json.loads(call["arguments"]) == CALLED
    chosen = {"tool_choice": {"type": "custom", "name": "apply_patch"}}
    [patch], *_ = Responses.read(ask(agents_server, Responses, body | chosen))
    assert patch["type"] == "custom_tool_call" and patch["name"] == "apply_patch"
    body["input"] += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "closed"},
                      patch, {"type": "custom_tool_call_output", "call_id": patch["call_id"], "output": "Done"}]
    ask(agents_server, Responses, body | Responses.short)


HI = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
USE = {"type": "tool_use", "id": "t", "name": "shell", "input": {}}
TOOL = {"name": "shell", "input_schema": {"type": "object"}}
# Requests of agents for which reports of 2026 name an error of vLLM, SGLang, llama.cpp or a proxy.
REPORTED = {
    "a tool's output is output_text": ("/v1/responses", [HI, CALL, {"type": "function_call_output", "call_id": "c", "output": [{"type": "output_text", "text": "x"}]}]),
    "an answer without content": ("/v1/responses", [HI, {"type": "message", "role": "assistant", "content": []}, HI]),
    "arguments that are no JSON": ("/v1/responses", [HI, CALL | {"arguments": "{} and more"}, {"type": "function_call_output", "call_id": "c", "output": "x"}]),
    "types of output in the input": ("/v1/responses", [HI, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "output_text", "text": "t"}]},
                                                     {"role": "assistant", "content": [{"type": "input_text", "text": "t"}]}, HI]),
    "encrypted thoughts": ("/v1/responses", [HI, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}, HI]),
    "a search of another server": ("/v1/responses", [HI, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "other"}}, HI]),
    "empty thoughts": ("/v1/messages", [HI, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}, {"type": "text", "text": "A"}]}, HI]),
    "a blank text and no result": ("/v1/messages", [HI, {"role": "assistant", "content": [{"type": "text", "text": ""}, USE]},
                                                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]),
    "a message of the system later": ("/v1/messages", [HI, {"role": "system", "content": [
        {"type": "text", "text": "x"}, {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "shell"}}]}]),
    "an empty list of calls": ("/v1/chat/completions", [HI, {"role": "assistant", "content": "", "tool_calls": []}, HI]),
    "a call without content": ("/v1/chat/completions", [HI, {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "shell", "arguments": ""}}]},
                                                        {"role": "tool", "tool_call_id": "c", "content": []}]),
}


@pytest.mark.parametrize("name", REPORTED)
def test_requests_that_other_servers_refuse(agents_server, name):
    path, items = REPORTED[name]
    body = {"/v1/responses": {"input": items, "max_output_tokens": 4}, "/v1/messages": {"messages": items, "max_tokens": 4, "tools": [TOOL, TOOL | {"name": "other"}]},
            "/v1/chat/completions": {"messages": items, "max_tokens": 4}}[path]
    answer = http_client.post(agents_server + path, json=body | {"model": "demo"}, headers={"anthropic-version": "2023-06-01"})
    assert answer.status_code == 200, answer.text


def test_items_of_a_stream_are_those_of_its_response(agents_server):
    body = {"model": "demo", "temperature": 0, "input": [HI], "stream": True, "tools": [{"type": "function", **function()}], **Responses.forced}
    events = ask(agents_server, Responses, body)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert done == events[-1]["response"]["output"] and added == [item["id"] for item in done]


# Prints roles and contents, as the templates of small models do.
PLAIN = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Call get_weather.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}}


def test_a_template_without_tools_needs_no_flags(agents_server, tmp_path):
    """The server writes the tools as text. The prompt is that of the demo model's own template, which reads tools."""
    (tmp_path / "plain.jinja").write_text(PLAIN)
    chat = {"model": "demo", "temperature": 0, "max_tokens": 100, "tools": [WEATHER],
            "messages": [{"role": "user", "content": "What is the weather in Elmford?"}]}
    with serve("--chat-template", str(tmp_path / "plain.jinja")) as base:
        first = http_client.post(base + "/v1/chat/completions", json=chat).json()["choices"][0]
        assert first["finish_reason"] == "tool_calls"
        [call] = first["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"city": "Elmford"}
        second = chat | {"messages": [*chat["messages"], first["message"],
                                      {"role": "tool", "tool_call_id": call["id"], "content": "{\"sky\": \"clear\"}"}]}
        for body in (chat, second):
            own, plain = (http_client.post(server + "/tokenize", json=body).json()["tokens"] for server in (agents_server, base))
            assert plain == own
