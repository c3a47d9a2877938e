"""Known failures of other servers (docs/failures.md), each tested with a few requests."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import PATIENCE, eventually, fetch, free_port, running, serve
from test_engine_process import engines

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "build" / "release" / "octavo"


def post(base, path, body, headers={}):
    """Returns the status and the body of the response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    "prompt", ["", " ", "\n", [], [[]], [""], [0], "x", "<|endoftext|>" * 50, [5] * 2047, [5] * 2048, [5] * 2049, [-1]]
)
def test_trivial_prompts(server, prompt):
    status, body = post(server, "/v1/completions", {"prompt": prompt, "max_tokens": 1})
    assert status in (200, 400), body
    assert post(server, "/v1/completions", {"prompt": "Once", "max_tokens": 1})[0] == 200


@pytest.mark.parametrize("field", ["n", "max_tokens", "logprobs", "prompt_logprobs", "top_k", "seed", "min_tokens"])
def test_extreme_numbers(server, field):
    for value in [-1, 0, 1, 2**31 - 1, 2**31, 2**53, 2**63, 1e308, 1.5, "1", None]:
        status, body = post(server, "/v1/completions", {"prompt": "Once", "max_tokens": 2, field: value})
        assert status in (200, 400), (value, body)


def test_errors_tell_nothing_of_the_machine(server):
    bodies = [
        b"{", b"\xff\xfe", b"[]", b'{"prompt": 1}', b'{"prompt": "x", "n": "many"}', b'{"messages": [{"role": 1}]}',
        b'{"prompt": "x", "structured_outputs": {"regex": "("}}', b'{"prompt": "x", "model": "/etc/passwd"}',
        b'{"prompt": "x", "chat_template": "{{ x }}"}', b'{"prompt": "x", "structured_outputs": {"json": {"type": 3}}}',
    ]  # fmt: skip
    for body in bodies:
        for path in ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/tokenize"]:
            status, text = post(server, path, body)
            assert status < 500, (path, body, text)
            text = text.replace("/etc/passwd", "")  # the error repeats the model's name, which the client
                                                    # sent
            assert not re.search(r"0x[0-9a-f]{6}|/home|/usr|/tmp|std::|\.cc\b|\.h\b|/etc/", text), text


def test_nothing_is_fetched(server):
    asked = []

    class Bait(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)

    bait = HTTPServer(("127.0.0.1", 0), Bait)
    threading.Thread(target=bait.serve_forever, daemon=True).start()
    for url in [f"http://127.0.0.1:{bait.server_port}/x.png", "file:///etc/passwd", "http://[::ffff:127.0.0.1]/"]:
        content = [{"type": "image_url", "image_url": {"url": url}}]
        status, body = post(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
        assert status == 400, body
    bait.shutdown()
    assert not asked


def listening(pid):
    """Returns the ports on which a process listens."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(link.readlink()))
        except OSError:
            continue
    ports = set()
    for table in ["tcp", "tcp6"]:
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def test_one_port_is_open():
    with running(f"{BINARY} serve --port {{port}}") as (process, base):
        children = set()
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread may have just ended
                children |= set((task / "children").read_text().split())
        assert children
        everything = set().union(*(listening(pid) for pid in {str(process.pid), *children}))
        assert everything == {int(base.rsplit(":", 1)[1])}


def test_texts_of_others_are_quoted():
    """Texts of other parties are formatted with base/quoted_text.h, because fmt's {:?} ends the process at bytes that
    are not UTF-8."""
    files = [path for path in (ROOT / "src").rglob("*.cc") if not path.stem.endswith("_test")]
    assert len(files) > 400
    assert not [str(path) for path in files if "{:?}" in path.read_text()]


@pytest.mark.skipif(not shutil.which("nm"), reason="nm (binutils) is not installed")
def test_no_backtracking_regex_engine():
    """The exception is the tokenizer library, which splits text with the patterns of tokenizer.json, and with no
    pattern of a request."""
    symbols = subprocess.run(["nm", "-DC", BINARY], capture_output=True, text=True, check=True).stdout
    symbols += subprocess.run(["nm", "-C", BINARY], capture_output=True, text=True).stdout
    assert not re.search(r"\b(pcre2?_|regcomp|regexec)", symbols)
    assert "std::__detail::_Executor" not in symbols


def test_log_probabilities_are_json(server):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    asked = {"prompt": "Once", "max_tokens": 5, "top_k": 1, "logprobs": 20, "prompt_logprobs": 5, "logit_bias": {"5": -100}}
    status, body = post(server, "/v1/completions", asked)
    assert status == 200
    json.loads(body, parse_constant=refuse)


def answers(base):
    with contextlib.suppress(OSError):
        return fetch(base + "/health") == ""


def test_killed_and_started_again_on_the_same_port():
    port = free_port()
    for _ in range(4):
        process = subprocess.Popen([BINARY, "serve", "--port", str(port)])
        base = f"http://127.0.0.1:{port}"
        try:
            assert eventually(lambda: answers(base), PATIENCE)
            for i in range(20):
                assert post(base, "/v1/completions", {"prompt": f"{i}", "max_tokens": 3})[0] == 200
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def test_a_frozen_engine_is_seen():
    """After SIGSTOP of the engine's process, a new process replaces it and answers, and the server is ready."""
    with running(f"{BINARY} serve --port {{port}}") as (_, base):
        (engine,) = engines(base)
        subprocess.run(["kill", "-STOP", str(engine)], check=True)
        status, text = post(base, "/v1/completions", {"prompt": "Once", "max_tokens": 5, "temperature": 0})
        assert status == 200, text  # from the engine that replaced the frozen one
        assert engine not in engines(base)
        assert fetch(base + "/ready") == ""


def test_a_tenants_prefix_is_its_own():
    """Cached tokens are reported only to the tenant that cached them."""
    flags = ["--client-header", "X-Tenant", "--isolate-prefix-cache", "--enable-prompt-tokens-details"]
    with serve(*flags) as base:
        prompt = "Once upon a time there was a fox who lived in the forest and had many friends there. " * 4

        def cached(tenant):
            status, body = post(base, "/v1/completions", {"prompt": prompt, "max_tokens": 1}, {"X-Tenant": tenant})
            assert status == 200
            return json.loads(body)["usage"]["prompt_tokens_details"]["cached_tokens"]

        assert cached("a") == 0
        assert cached("a") > 0
        assert cached("b") == 0
        assert cached("b") > 0
