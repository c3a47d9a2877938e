"""Tests `octavo chat` with a scripted server: reasoning, tool calls and their results, images."""

import base64
import contextlib
import http.server
import json
import os
import pty
import signal
import socket
import subprocess
import threading

import pytest

from conftest import PATIENCE

OCTAVO = "build/release/octavo"
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
TOOL = {"name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}


def call(index, name=None, arguments=""):
    head = {"id": f"call_{index}", "type": "function"} if name else {}
    return {"tool_calls": [{"index": index, **head, "function": ({"name": name} if name else {}) | {"arguments": arguments}}]}


THINKS = [{"role": "assistant", "content": ""}, {"reasoning": "Let me "}, {"reasoning": "look."}, {"content": "I run it."},
          call(0, "shell", ""), call(0, None, '{"command": '), call(0, None, '"ls"}'), call(1, "shell", "{}")]


@pytest.fixture
def scripted():
    """Yields the URL of a server that sends the deltas of `answers` in order, its list of answers, and the bodies that it got."""
    answers, bodies = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"data": [{"id": "scripted"}]}')

        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            events = [{"choices": [{"index": 0, "delta": delta}]} for delta in answers.pop(0)]
            events.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
            for event in [*map(json.dumps, events), "[DONE]"]:
                self.wfile.write(f"data: {event}\n\n".encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", answers, bodies
    server.shutdown()


def test_thoughts_and_calls_are_shown_and_results_are_sent(scripted, tmp_path):
    url, answers, bodies = scripted
    answers += [THINKS, [{"content": "Two files."}]]
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))
    lines = "List them.\n/result a.txt\n/result b.txt\n"
    done = subprocess.run([OCTAVO, "chat", "--url", url, "--tools", str(tmp_path / "tools.json")], input=lines, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'I run it.\ncall: shell({"command": "ls"})\ncall: shell({})\nTwo files.\n'
    assert "thoughts: Let me look." in done.stderr and "9 prompt tokens, 4 tokens" in done.stderr
    assert bodies[0]["tools"] == [{"type": "function", "function": TOOL}]
    question, answer, first, second = bodies[1]["messages"]
    assert question == {"role": "user", "content": "List them."}
    assert answer["reasoning"] == "Let me look." and answer["content"] == "I run it."
    assert [each["function"] for each in answer["tool_calls"]] == [{"name": "shell", "arguments": '{"command": "ls"}'}, {"name": "shell", "arguments": "{}"}]
    assert first == {"role": "tool", "tool_call_id": "call_0", "content": "a.txt"}
    assert second == {"role": "tool", "tool_call_id": "call_1", "content": "b.txt"}


def test_a_question_after_calls_leaves_them_without_result(scripted):
    url, answers, bodies = scripted
    answers += [THINKS, [{"content": "Fine."}]]
    done = subprocess.run([OCTAVO, "chat", "--url", url], input="/result x\nA\nB\n", capture_output=True, text=True, timeout=PATIENCE)
    assert "the model has not called a tool, so no result is needed" in done.stderr
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "tool", "tool", "user"]


def test_images_are_sent_with_the_next_message(scripted, tmp_path):
    url, answers, bodies = scripted
    answers += [[{"content": "A dot."}]] * 3
    image, text = tmp_path / "dot.png", tmp_path / "text.png"
    image.write_bytes(PNG)
    text.write_text("no image")
    done = subprocess.run([OCTAVO, "chat", "--url", url, "--image", str(image)], input=f"What?\nAnd?\n/image {image}\n/image {text}\n/image nothing.png\nNow?\n",
                          capture_output=True, text=True, timeout=PATIENCE)
    assert "must be a PNG, JPEG, WebP or GIF image" in done.stderr and "nothing.png" in done.stderr
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG).decode()}}
    asked = [body["messages"][-1]["content"] for body in bodies]
    assert asked == [[part, {"type": "text", "text": "What?"}], "And?", [part, {"type": "text", "text": "Now?"}]]


def test_a_terminal_dims_thoughts(scripted):
    url, answers, _ = scripted
    answers.append([{"reasoning": "Hm."}, {"content": "Yes."}])
    terminal, inner = pty.openpty()
    done = subprocess.run([OCTAVO, "chat", "--url", url, "-q", "Well?"], stdout=inner, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    os.close(inner)
    seen = b""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            seen += piece
    assert done.returncode == 0 and b"\x1b[2mHm.\x1b[0m\r\nYes.\r\n" in seen, seen


@pytest.mark.parametrize("head", ["", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"])
def test_an_interrupt_before_the_first_token_ends_the_answer_of_a_server(head):
    models = '{"data": [{"id": "slow"}]}'
    with socket.create_server(("127.0.0.1", 0)) as listening:
        chat = subprocess.Popen([OCTAVO, "chat", "--url", f"127.0.0.1:{listening.getsockname()[1]}", "-q", "Well?"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            listening.settimeout(PATIENCE)
            first, _ = listening.accept()
            with first:
                first.recv(1 << 16)
                first.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(models)}\r\n\r\n{models}".encode())
            asked, _ = listening.accept()
            with asked:
                asked.settimeout(PATIENCE)
                received = b""
                while b"Well?" not in received:
                    received += asked.recv(1 << 16)
                asked.sendall(head.encode())
                chat.send_signal(signal.SIGINT)
                with contextlib.suppress(ConnectionResetError):  # the head was not read before the interrupt
                    assert asked.recv(1 << 16) == b"", "the connection is closed, so that the server ends the answer"
            chat.wait(PATIENCE)
        finally:
            chat.kill()
