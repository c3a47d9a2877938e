"""/pause, /resume and /is_paused, enabled by the development flag, with the engine in a separate process."""

import concurrent.futures
import contextlib
import threading

import httpx
import openai
import pytest
from conftest import PATIENCE, eventually, http_client, serve

BODY = {"model": "demo", "prompt": "One rainy morning in", "max_tokens": 1500, "temperature": 0, "extra_body": {"ignore_eos": True}}


@pytest.fixture(scope="module")
def base():
    with serve("--served-model-name=demo", "--server-dev-mode") as base:
        yield base


@pytest.fixture(scope="module")
def whole(base):
    return ask(base).text


def ask(base, **changes):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    return client.completions.create(**(BODY | changes)).choices[0]


def pauses(base):
    return http_client.get(base + "/is_paused").json() == {"is_paused": True}


def post(base, what):
    response = http_client.post(base + what)
    assert response.status_code == 200, response.text
    return response.json()


@contextlib.contextmanager
def paused(base, query):
    """Pauses the server, and resumes it even if a test fails."""
    try:
        assert post(base, f"/pause?{query}") == {"status": "paused"}
        yield
    finally:
        assert post(base, "/resume") == {"status": "resumed"}


def beside(base, pool):
    """Starts an answer and returns when its first words have arrived. The future gives its text and finish reason."""
    begun = threading.Event()

    def read():
        text = ""
        for chunk in openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).completions.create(**BODY, stream=True):
            begun.set()
            text += chunk.choices[0].text
            finish_reason = chunk.choices[0].finish_reason
        return text, finish_reason

    future = pool.submit(read)
    assert begun.wait(PATIENCE)
    return future


@pytest.mark.parametrize("mode, reason", [("keep", "length"), ("wait", "length"), ("abort", "abort")])
def test_what_runs_and_what_comes(base, whole, mode, reason):
    def in_the_middle():
        """Returns whether the stream was unfinished when the server paused; with mode wait, when the pause was requested."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            running = beside(base, pool)
            begun = not running.done()
            with paused(base, f"mode={mode}"):
                assert pauses(base)
                waiting = pool.submit(ask, base, max_tokens=8)
                with pytest.raises(concurrent.futures.TimeoutError):
                    waiting.result(timeout=0.3)
                kept = not running.done()
                assert mode == "keep" or eventually(running.done)
            assert not pauses(base)
            text, finish_reason = running.result(timeout=PATIENCE)
            assert finish_reason in (reason, "length") and whole.startswith(text)
            assert finish_reason == "abort" or text == whole
            assert whole.startswith(waiting.result(timeout=PATIENCE).text)
            return {"keep": kept, "wait": begun, "abort": finish_reason == reason}[mode]

    assert eventually(in_the_middle), "all streams ended before the pause"


def test_who_leaves_does_not_wait(base):
    with paused(base, "mode=keep&clear_cache=false"):
        with pytest.raises(httpx.ReadTimeout):
            body = {"prompt": "Once", "max_tokens": 4}
            http_client.post(base + "/v1/completions", json=body, timeout=httpx.Timeout(PATIENCE, read=0.3))
        assert eventually(lambda: http_client.get(base + "/load").json() == {"server_load": 0})


@pytest.mark.parametrize("query, field", [("mode=soon", "mode"), ("clear_cache=1", "clear_cache")])
def test_mistakes(base, query, field):
    response = http_client.post(f"{base}/pause?{query}")
    assert response.status_code == 400 and response.json()["error"]["param"] == field
    assert not pauses(base)
