"""Sessions: a named conversation stays in the KV cache while other prompts evict each other."""

import os
import random
import re
import signal

import pytest
from conftest import engine_of, eventually, fetch, http_client, running, serve_command

FLAGS = ["--served-model-name=demo", "--server-dev-mode", "--num-gpu-blocks-override=200", "--max-model-len=1024", "--client-header=X-Tenant"]
BLOCK = 16


def some_tokens(seed, count):
    return [random.Random(seed * 10_007 + i).randrange(4, 4000) for i in range(count)]


def turn(base, prompt, session=None, tenant="a", tokens=8, **fields):
    """Returns (token ids, usage)."""
    body = {"model": "demo", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "return_token_ids": True, **fields}
    if session:
        body["session_id"] = session
    response = http_client.post(base + "/v1/completions", json=body, headers={"X-Tenant": tenant})
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["token_ids"], response.json()["usage"]


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def call(base, method, path, body=None, tenant="a"):
    return http_client.request(method, base + "/v1/sessions" + path, json=body, headers={"X-Tenant": tenant})


def sum_of(base, name):
    return sum(float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", fetch(base + "/metrics"), re.MULTILINE))


def evict(base, seed, prompts=8):
    for i in range(prompts):
        turn(base, some_tokens(seed + i, 900), tenant="other")


@pytest.fixture(scope="module", params=[1, 2], ids=["one engine", "two engines"])
def server(request):
    with running(serve_command(*FLAGS, f"--data-parallel-size={request.param}")) as (process, base):
        yield process, base


def test_a_session_outlives_other_prompts(server):
    _, base = server
    text = some_tokens(1, 300)
    ids, usage = turn(base, text, "kept")
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0, "cache_creation_input_tokens": 300 // BLOCK * BLOCK}
    evict(base, 100)
    again, usage = turn(base, text, "kept")
    assert again == ids
    assert cached(usage) == 288
    text += ids + some_tokens(2, 40)
    assert cached(turn(base, text, "kept")[1]) >= 288
    session = call(base, "GET", "/kept").json()
    assert session["turns"] == 3 and session["state"] == "retained" and session["held_blocks"] >= 20
    assert [s["id"] for s in call(base, "GET", "").json()["data"]] == ["kept"]
    assert call(base, "GET", "", tenant="b").json()["data"] == []
    assert call(base, "DELETE", "/kept", tenant="b").status_code == 404
    assert call(base, "DELETE", "/kept").status_code == 200
    assert call(base, "GET", "/kept").status_code == 404


def test_pins_are_kept_and_limited(server):
    _, base = server
    turn(base, some_tokens(3, 300), "pinned")
    turn(base, some_tokens(4, 300), "second")
    assert call(base, "POST", "/pinned/pin", {"ttl_seconds": 600}).json()["state"] == "pinned"
    refused = call(base, "POST", "/second/pin", {"ttl_seconds": 600})
    if refused.status_code != 429:  # with two engines, the sessions may be on different ones
        assert refused.json()["engine"] != call(base, "GET", "/pinned").json()["engine"]
    else:
        assert "--session-pin-fraction" in refused.json()["error"]["message"]
    evict(base, 200, 12)
    assert cached(turn(base, some_tokens(3, 300), "pinned")[1]) == 288
    assert eventually(lambda: sum_of(base, "octavo:sessions_pinned") >= 1)
    for name in ("pinned", "second"):
        assert call(base, "POST", f"/{name}/release").status_code == 200


def test_a_fork_and_a_prefill(server):
    _, base = server
    text = some_tokens(5, 300)
    turn(base, text, "trunk")
    assert call(base, "POST", "/trunk/fork", {"session_id": "branch"}).json()["held_blocks"] >= 18
    assert call(base, "POST", "/trunk/fork", {"session_id": "branch"}).status_code == 400
    assert call(base, "DELETE", "/trunk").status_code == 200
    evict(base, 300)
    longer = text + some_tokens(6, 200)
    prefill = call(base, "POST", "/branch/prefill", {"prompt": longer})
    assert prefill.status_code == 200, prefill.text
    assert prefill.json()["object"] == "session.prefill"
    assert prefill.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 288
    evict(base, 400)
    assert cached(turn(base, longer, "branch")[1]) == 496
    assert call(base, "DELETE", "/branch").status_code == 200


def test_a_crash_leaves_sessions_and_pins(server):
    process, base = server
    text = some_tokens(7, 300)
    ids, _ = turn(base, text, "crash")
    engine = call(base, "POST", "/crash/pin", {"ttl_seconds": 600}).json()["engine"]
    before = engine_of(process)
    os.kill(before, signal.SIGKILL)
    assert eventually(lambda: engine_of(process) not in (None, before))
    session = call(base, "GET", "/crash").json()
    assert session["engine"] == engine and session["state"] == "pinned" and session["held_tokens"] == 304
    evict(base, 500, 12)
    again, usage = turn(base, text, "crash")
    assert again == ids
    assert cached(usage) == 288
    assert call(base, "DELETE", "/crash").status_code == 200
