"""/pause, /resume and /is_paused behind the development switch, through the engine's process."""

import concurrent.futures

import httpx
import openai
import pytest
from conftest import eventually, metric, serve

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
    return httpx.get(base + "/is_paused").json() == {"is_paused": True}


def post(base, what):
    response = httpx.post(base + what, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


def beside(base, pool):
    """An answer that is being made."""
    future = pool.submit(ask, base)
    assert eventually(lambda: metric(base, "vllm:num_requests_running") == 1)
    return future


@pytest.mark.parametrize("mode, reason", [("keep", "length"), ("wait", "length"), ("abort", "abort")])
def test_what_runs_and_what_comes(base, whole, mode, reason):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = beside(base, pool)
        assert post(base, f"/pause?mode={mode}") == {"status": "paused"}
        assert pauses(base)
        assert not running.done() if mode == "keep" else eventually(running.done)
        waiting = pool.submit(ask, base, max_tokens=8)
        with pytest.raises(concurrent.futures.TimeoutError):
            waiting.result(timeout=0.3)
        assert post(base, "/resume") == {"status": "resumed"} and not pauses(base)
        choice = running.result(timeout=60)
        assert choice.finish_reason == reason and whole.startswith(choice.text)
        assert reason == "abort" or choice.text == whole
        assert whole.startswith(waiting.result(timeout=60).text)


def test_who_leaves_does_not_wait(base):
    post(base, "/pause?mode=keep&clear_cache=false")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(base + "/v1/completions", json={"prompt": "Once", "max_tokens": 4}, timeout=0.3)
    assert eventually(lambda: httpx.get(base + "/load").json() == {"server_load": 0})
    post(base, "/resume")


@pytest.mark.parametrize("query, field", [("mode=soon", "mode"), ("clear_cache=1", "clear_cache")])
def test_mistakes(base, query, field):
    response = httpx.post(f"{base}/pause?{query}")
    assert response.status_code == 400 and response.json()["error"]["param"] == field
    assert not pauses(base)
