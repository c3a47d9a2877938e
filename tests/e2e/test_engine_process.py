"""The engine in a separate process: streams survive its kill -9, and no process remains."""

import os
import signal
import threading
from pathlib import Path

import openai
import pytest
from conftest import at_once, eventually, fetch, running, serve, serve_command

STREAMS = 12


def processes(*words):
    """Returns the processes of this machine whose command line contains all the words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode().split("\0")
            if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(int(folder.name))
    return found


def engines(base):
    return processes("--run-engine", base.rsplit(":", 1)[1])


def streams(base, each=lambda: None):
    """Returns the texts of all streams. Calls `each` for every piece of text."""
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)

    def run(i):
        text = ""
        fields = {"temperature": 0 if i % 3 == 0 else 1.0, "seed": i, "extra_body": {"ignore_eos": True}}
        if i % 4 == 1:
            fields["extra_body"] = {"structured_outputs": {"regex": "([a-z]{2,9} ){200}"}}
        if i % 4 == 2:
            fields["presence_penalty"] = 0.7
        for chunk in client.completions.create(model="demo", prompt=f"Story number {i}:", max_tokens=400, stream=True, **fields):
            text += chunk.choices[0].text
            each()
        return text

    return at_once(run, range(STREAMS))


def test_streams_survive_the_engine():
    with serve() as base:
        undisturbed = streams(base)
        assert all(undisturbed)
        killed = []
        pieces = [0]

        def kill_now_and_then():
            pieces[0] += 1
            if pieces[0] < 100 * (len(killed) + 1) or len(killed) == 4:
                return
            pids = engines(base)
            if len(pids) == 1 and pids[0] not in killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        lock = threading.Lock()

        def each():
            with lock:
                kill_now_and_then()

        assert streams(base, each) == undisturbed
        assert len(killed) >= 3
        assert fetch(base + "/health") == ""
    assert eventually(lambda: not engines(base))


def test_the_engine_dies_with_its_server():
    with running(serve_command()) as (server, base):
        assert len(engines(base)) == 1
        server.kill()
        assert eventually(lambda: not engines(base))


def test_a_model_that_does_not_load_says_so():
    with pytest.raises(AssertionError, match="ended before it was ready"), serve("--max-model-len", "9999999"):
        pass
