"""Sessions move: from a server to a file and to another server, and between the replicas of a router."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import eventually, fetch, http_client, running, serve_command

DEMO = Path(__file__).parents[2] / "models" / "demo"
FLAGS = ["--served-model-name=demo", "--num-gpu-blocks-override=400", "--max-model-len=2048", "--enable-session-import"]


def some_tokens(seed, count):
    return [random.Random(seed * 10_007 + i).randrange(4, 4000) for i in range(count)]


def turn(base, prompt, session=None):
    """Returns (token ids, cached tokens)."""
    body = {"model": "demo", "prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True, "return_token_ids": True}
    if session:
        body["session_id"] = session
    response = http_client.post(base + "/v1/completions", json=body)
    assert response.status_code == 200, response.text
    usage = response.json()["usage"].get("prompt_tokens_details") or {}
    return response.json()["choices"][0]["token_ids"], usage.get("cached_tokens", 0)


def octavo(*arguments):
    return subprocess.run(["build/release/octavo", "session", *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def servers():
    with running(serve_command(*FLAGS)) as (_, first), running(serve_command(*FLAGS, "--data-parallel-size=2")) as (_, second):
        yield first, second


def test_a_file_moves_a_session_to_another_server(servers, tmp_path):
    first, second = servers
    text = some_tokens(1, 1500)
    ids, _ = turn(first, text, "a/b")
    file = tmp_path / "session"
    done = octavo("export", "a/b", str(file), "--url", first)
    assert done.returncode == 0, done.stderr
    assert "1504 tokens" in done.stdout
    done = octavo("import", "moved", str(file), "--url", second)
    assert done.returncode == 0, done.stderr
    session = http_client.get(second + "/v1/sessions/moved").json()
    assert session["state"] == "retained" and session["held_tokens"] == 1504
    text += ids + some_tokens(2, 30)
    wanted, cached = turn(first, text, "a/b")
    assert cached == 1504
    assert turn(second, text, "moved") == (wanted, 1504)
    assert "moved" in octavo("list", "--url", second).stdout


def test_one_changed_byte_of_the_weights_makes_another_model(servers, tmp_path):
    first, _ = servers
    shutil.copytree(DEMO, tmp_path / "changed")
    weights = tmp_path / "changed" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2 + 3000] ^= 1  # not in a sample of the file (model/fingerprint.h)
    weights.write_bytes(content)
    file = tmp_path / "session"
    turn(first, some_tokens(4, 500), "s")
    assert octavo("export", "s", str(file), "--url", first).returncode == 0
    with running(serve_command(f"--model={DEMO}", *FLAGS, "--server-dev-mode")) as (_, other):
        assert octavo("import", "s", str(file), "--url", other).returncode == 0
        change = {"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path / "changed")}}
        assert http_client.post(other + "/collective_rpc", json=change).status_code == 200
        refused = octavo("import", "s", str(file), "--url", other)
        assert refused.returncode == 2 and "the models are" in refused.stderr
        turn(other, some_tokens(4, 500), "t")
        assert octavo("export", "t", str(tmp_path / "later"), "--url", other).returncode == 0
    refused = octavo("import", "t", str(tmp_path / "later"), "--url", first)
    assert refused.returncode == 2 and "the models are" in refused.stderr


def test_files_that_are_damaged_or_of_another_model_are_refused(servers, tmp_path):
    first, second = servers
    turn(first, some_tokens(3, 500), "s")
    file, bad = tmp_path / "session", tmp_path / "bad"
    assert octavo("export", "s", str(file), "--url", first).returncode == 0
    content = bytearray(file.read_bytes())
    content[-1000] ^= 1
    bad.write_bytes(content)
    done = octavo("import", "s", str(bad), "--url", second)
    assert done.returncode == 2 and "is damaged: piece" in done.stderr
    bad.write_bytes(content[:-10])
    assert "is incomplete: 10 bytes are missing" in octavo("import", "s", str(bad), "--url", second).stderr
    bad.write_bytes(b"something else" * 10)
    assert "is not an exported session" in octavo("import", "s", str(bad), "--url", second).stderr
    with running(serve_command("--served-model-name=demo", "--enable-session-import", "--block-size=32")) as (_, other):
        assert "the block sizes are 16 and 32" in octavo("import", "s", str(file), "--url", other).stderr
    with running(serve_command("--served-model-name=demo")) as (_, other):
        assert "--enable-session-import" in octavo("import", "s", str(file), "--url", other).stderr
        turn(other, some_tokens(3, 500), "s")
        assert "--enable-session-import" in octavo("export", "s", str(bad), "--url", other).stderr
    assert octavo("export", "missing", str(tmp_path / "none"), "--url", first).returncode == 2
    assert not (tmp_path / "none").exists()


def test_a_router_follows_sessions_and_moves_them(servers):
    first, second = servers
    with running(f"build/release/octavo route --port {{port}} --policy round_robin --worker-urls {first} {second}") as (_, router):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in http_client.get(router + "/workers").json()["workers"]))
        text = some_tokens(5, 1000)
        ids, _ = turn(router, text, "r")
        for _ in range(3):
            assert turn(router, text, "r") == (ids, 992)
        home = next(base for base in servers if http_client.get(base + "/v1/sessions/r").status_code == 200)
        other = next(base for base in servers if base != home)
        assert http_client.get(other + "/v1/sessions/r").status_code == 404
        assert http_client.get(router + "/v1/sessions/r").json()["turns"] == 4
        turn(other, some_tokens(6, 100), "elsewhere")
        listed = {s["id"]: s["worker"] for s in http_client.get(router + "/v1/sessions").json()["data"]}
        assert listed["r"] == home and listed["elsewhere"] == other
        assert http_client.get(router + "/v1/sessions/elsewhere").status_code == 200
        page = http_client.get(router + "/v1/sessions?limit=1").json()
        assert len(page["data"]) == 1 and page["has_more"]
        # The drained replica's session moves with its next turn.
        workers = http_client.get(router + "/workers").json()["workers"]
        drained = next(w for w in workers if w["url"] == home)
        assert http_client.delete(router + f"/workers/{drained['id']}").status_code == 202
        text += ids + some_tokens(7, 40)
        moved, cached = turn(router, text, "r")
        assert cached == 992
        assert http_client.get(other + "/v1/sessions/r").status_code == 200
        assert eventually(lambda: http_client.get(home + "/v1/sessions/r").status_code == 404)
        assert 'octavo_route_session_moves_total{outcome="moved"} 1' in fetch(router + "/metrics")
        assert turn(home, text)[0] == moved
