"""A running `octavo serve` for all tests of this folder.

OCTAVO_SERVE: the command that starts the server, `{port}` in it replaced (default: build/release/octavo serve --port {port}).
OCTAVO_BASE_URL: use a server that runs already, with the flags below.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import time
import urllib.request

import openai
import pytest


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read().decode()


@contextlib.contextmanager
def running(command):
    """A server process and its base URL, from the moment it is ready until the end of the block; `{port}` in the command
    is replaced by a free port."""
    port = free_port()
    process = subprocess.Popen(shlex.split(command.replace("{port}", str(port))))
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, "the server ended before it was ready"
            try:
                fetch(base + "/health")
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise AssertionError("the server was not ready within a minute")
        yield process, base
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def serve(*flags):
    """The base URL of a server with these flags, ended behind the block."""
    command = os.environ.get("OCTAVO_SERVE", "build/release/octavo serve --port {port}")
    with running(shlex.join([*shlex.split(command), *flags])) as (process, base):
        yield base
        process.terminate()
        assert process.wait(timeout=30) == 0


@pytest.fixture(scope="session")
def server():
    if base := os.environ.get("OCTAVO_BASE_URL"):
        yield base.rstrip("/")
        return
    with serve("--enable-auto-tool-choice", "--tool-call-parser", "hermes") as base:
        yield base


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(base_url=server + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id


def metric(server, name):
    for line in fetch(server + "/metrics").splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


def eventually(condition, seconds=30):
    """Whether the condition comes to hold: metrics follow what they tell of by a step."""
    deadline = time.time() + seconds
    while not condition():
        if time.time() > deadline:
            return False
        time.sleep(0.02)
    return True
