"""A store of KV blocks that servers share: one server loads the blocks that another one has computed."""

import contextlib
import shutil
import subprocess

import pytest
from conftest import eventually, free_port, metric, serve
from redis_stand_in import redis_stand_in
from s3_stand_in import KEYS, s3_stand_in
from test_kv_tier import NAME, ask, at_rest, hits, same, shared_storage, stored


def failures(base):
    return metric(base, "vllm:nixl_num_failed_transfers_total")


@pytest.fixture(params=["redis", "s3"])
def a_store(request, monkeypatch):
    """Runs a stand-in, and yields (URL, Store). Servers have its keys."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with (redis_stand_in if request.param == "redis" else s3_stand_in)() as found:
        yield found


@pytest.fixture(scope="module")
def plain():
    with serve(NAME) as base:
        yield ask(base)


def one_computes_another_loads(url, plain):
    with serve(NAME, shared_storage(url)) as one, serve(NAME, shared_storage(url)) as another:
        assert same(ask(one), plain)
        assert eventually(lambda: stored(one) > 10) and at_rest(one)
        assert same(ask(another), plain)
        assert eventually(lambda: hits(another) > 500)
        assert at_rest(another) and stored(another) == 0
        assert failures(another) == 0


def test_one_server_computes_another_loads(plain, a_store):
    url, store = a_store
    one_computes_another_loads(url, plain)
    assert len(store.values) > 10


def test_an_s3_store_refuses_who_signs_with_another_key(plain, monkeypatch):
    for name, value in (KEYS | {"AWS_SECRET_ACCESS_KEY": "another"}).items():
        monkeypatch.setenv(name, value)
    with s3_stand_in() as (url, store), serve(NAME, shared_storage(url)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: store.refused > 0) and at_rest(base)
        assert stored(base) == 0 and not store.values


@pytest.mark.parametrize("program", ["redis-server", "valkey-server"])
def test_with_a_server_as_it_is(program, plain, tmp_path):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    port = free_port()
    process = subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path),
                                "--requirepass", "secret"], stdout=subprocess.PIPE, text=True)
    try:
        assert any("ready to accept connections" in line.lower() for line in process.stdout)
        one_computes_another_loads(f"redis://:secret@127.0.0.1:{port}/1", plain)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("mood", ["lying", "hanging"])
def test_a_bad_store_costs_no_token(mood, plain, a_store):
    url, store = a_store
    with serve(NAME, shared_storage(url)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
    with serve(NAME, shared_storage(url)) as base:
        store.mood = mood
        assert same(ask(base), plain)
        if mood == "lying":
            assert eventually(lambda: failures(base) > 0)
        assert metric(base, "vllm:kv_tier_off") == 0


def test_a_store_that_goes_away_costs_no_token(plain):
    with contextlib.ExitStack() as later:
        with redis_stand_in() as (url, _):
            base = later.enter_context(serve(NAME, shared_storage(url)))
        for _ in range(2):
            assert same(ask(base), plain)
        assert eventually(lambda: at_rest(base))


def test_a_url_that_is_none_is_refused():
    run = subprocess.run(["build/release/octavo", "serve", "--port", "0", shared_storage("redis://host:none")],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "shared_storage_path" in run.stdout + run.stderr
