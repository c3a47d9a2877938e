"""Tools of MCP servers in /v1/responses, with the server of the `mcp` package and OpenAI's client."""

import http.server
import json
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from conftest import PATIENCE, eventually, free_port, serve
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

EVENT = TypeAdapter(ResponseStreamEvent)
NO_SPACES = '{"disable_any_whitespace": true}'  # otherwise the demo model writes spaces until max_tokens

# The arguments are constants and the schemas are closed, so the demo model can write only these calls.
SERVER = '''
import sys
from typing import Literal
from mcp.server import MCPServer

server = MCPServer("tools")

@server.tool()
def add(a: Literal[2], b: Literal[3]) -> str:
    """Adds two numbers"""
    return f"the sum is {a + b}"

@server.tool()
def broken(a: Literal[1]) -> str:
    """Fails"""
    raise ValueError("no such number")

@server.tool()
def long(a: Literal[1]) -> str:
    """Returns a long text"""
    return "x" * 100_000

for tool in server._tool_manager.list_tools():
    tool.parameters["additionalProperties"] = False
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response=sys.argv[2] == "json")
'''


def accepts(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module", params=["events", "json"])
def tools_port(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("mcp") / "server.py"
    program.write_text(SERVER)
    port = free_port()
    process = subprocess.Popen([sys.executable, str(program), str(port), request.param], stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: accepts(port), PATIENCE)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def mcp_client():
    with serve("--mcp-allow", "127.0.0.1", "--structured-outputs-config", NO_SPACES) as base:
        yield openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def ask(client, port, tool, **fields):
    server = {"type": "mcp", "server_label": "math", "server_url": f"http://127.0.0.1:{port}/mcp", "allowed_tools": [tool],
              "require_approval": "never"} | fields.pop("server", {})
    return client.responses.create(**{"model": "demo", "input": "Add 2 and 3.", "tools": [server], "tool_choice": "required",
                                      "parallel_tool_calls": False, "temperature": 0, "max_output_tokens": 60} | fields)


def test_the_server_runs_the_calls_of_the_model(mcp_client, tools_port):
    response = ask(mcp_client, tools_port, "add")
    Response.model_validate(response.to_dict())
    listed, call, *rest = response.output
    assert listed.type == "mcp_list_tools" and {tool.name for tool in listed.tools} == {"add", "broken", "long"}
    assert (call.type, call.name, call.server_label, call.status) == ("mcp_call", "add", "math", "completed")
    assert call.output == "the sum is 5" and call.error is None
    assert rest and rest[-1].type == "message"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response.tools[0].type == "mcp"
    assert mcp_client.responses.retrieve(response.id).output == response.output
    after = mcp_client.responses.create(model="demo", input="Thanks.", previous_response_id=response.id, max_output_tokens=4)
    assert after.usage.input_tokens > response.usage.output_tokens


def test_a_stream_has_the_events_of_calls(mcp_client, tools_port):
    events = list(ask(mcp_client, tools_port, "add", stream=True))
    for event in events:
        EVENT.validate_python(event.to_dict())
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    assert types[:2] == ["response.created", "response.in_progress"] and types[-1] in ("response.completed", "response.incomplete")
    order = ["response.mcp_list_tools.completed", "response.mcp_call.in_progress", "response.mcp_call_arguments.done",
             "response.mcp_call.completed", "response.output_text.delta"]
    assert [types.index(kind) for kind in order] == sorted(types.index(kind) for kind in order)
    done = {event.output_index: event.item for event in events if event.type == "response.output_item.done"}
    assert [done[i].to_dict() for i in range(len(done))] == [item.to_dict() for item in events[-1].response.output]
    added = [event.output_index for event in events if event.type == "response.output_item.added"]
    assert added == list(range(len(done)))


def test_a_failed_call_is_a_result(mcp_client, tools_port):
    call = ask(mcp_client, tools_port, "broken").output[1]
    assert call.status == "failed" and call.output is None and "Error executing tool broken" in str(call.error)


def test_long_results_are_cut(mcp_client, tools_port):
    with pytest.raises(openai.BadRequestError):  # the cut result is longer than the demo model's context
        ask(mcp_client, tools_port, "long")


def test_calls_wait_for_approval(mcp_client, tools_port):
    always = {"require_approval": {"always": {"tool_names": ["add"]}}}
    first = ask(mcp_client, tools_port, "add", server=always)
    request = first.output[-1]
    assert (request.type, request.name) == ("mcp_approval_request", "add") and '"a"' in request.arguments

    def answer(approve):
        return ask(mcp_client, tools_port, "add", server=always, tool_choice="auto", previous_response_id=first.id, max_output_tokens=8,
                   input=[{"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}])

    call = answer(True).output[0]
    assert (call.type, call.output, call.approval_request_id) == ("mcp_call", "the sum is 5", request.id)
    refused = answer(False).output[0]
    assert refused.status == "failed" and "the user did not approve this call" in str(refused.error)


def test_only_allowed_hosts_are_used(mcp_client, tools_port):
    with pytest.raises(openai.BadRequestError, match="--mcp-allow") as error:
        ask(mcp_client, tools_port, "add", server={"server_url": f"http://localhost:{tools_port}/mcp"})
    assert error.value.param == "tools[0].server_url"
    with pytest.raises(openai.InternalServerError, match="MCP server 127.0.0.1:1 failed: cannot connect"):
        ask(mcp_client, tools_port, "add", server={"server_url": "http://127.0.0.1:1/mcp"})
    with pytest.raises(openai.BadRequestError, match="server_label"):
        ask(mcp_client, tools_port, "add", server={"server_label": "a b"})


def test_servers_are_off_by_default(client, tools_port):
    with pytest.raises(openai.BadRequestError, match="--mcp-allow") as error:
        ask(client, tools_port, "add", tool_choice="auto", max_output_tokens=4)
    assert error.value.param == "tools[0].type"


class RecordingServer:
    """An MCP server in this process, which records methods and sessions. While `slow` is set, it does not respond."""

    def __init__(self, slow=False):
        self.seen, self.released, self.port = [], threading.Event(), free_port()
        if not slow:
            self.released.set()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                message = json.loads(body) if body else {"method": "DELETE"}
                recorder.seen.append((message["method"], self.headers.get("Mcp-Session-Id")))
                recorder.released.wait()
                result = {"protocolVersion": "2025-06-18", "tools": []}
                text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() if "id" in message else b""
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Mcp-Session-Id", "session-1")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_DELETE = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.server.shutdown()


def listed(port):
    tools = [{"type": "mcp", "server_label": "m", "server_url": f"http://127.0.0.1:{port}/mcp"}]
    return {"model": "demo", "input": "Hi", "tools": tools, "max_output_tokens": 4}


def test_a_slow_server_delays_no_other_and_sessions_end():
    slow, quick = RecordingServer(slow=True), RecordingServer()
    try:
        with serve("--mcp-allow", f"127.0.0.1:{slow.port}", f"127.0.0.1:{quick.port}") as base, ThreadPoolExecutor(16) as pool:
            client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
            waiting = [pool.submit(client.responses.create, **listed(slow.port)) for _ in range(16)]
            assert eventually(lambda: len(slow.seen) == 4, PATIENCE), "a server has four threads"
            assert client.responses.create(**listed(quick.port)).output
            assert len(slow.seen) == 4 and not any(answer.done() for answer in waiting)
            assert eventually(lambda: ("DELETE", "session-1") in quick.seen, PATIENCE)
            slow.released.set()
            assert all(answer.result().output for answer in waiting)
    finally:
        slow.close()
        quick.close()
