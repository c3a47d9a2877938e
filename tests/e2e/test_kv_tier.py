"""A tier of the KV cache on disk: prompts come back from it after eviction, a restart, a kill -9."""

import json
import os
import signal
import subprocess

import openai
import pytest
from conftest import eventually, metric, running, serve
from test_engine_process import engines

NAME = "--served-model-name=demo"
PROMPT = " ".join(f"word {i} of a long prompt about rivers, mountains and the sea;" for i in range(60))
BODY = {"model": "demo", "prompt": PROMPT, "max_tokens": 16, "temperature": 0.8, "seed": 3, "logprobs": 2}


def shared_storage(folder, **extra):
    return "--kv-transfer-config=" + json.dumps({
        "kv_connector": "SharedStorageConnector", "kv_role": "kv_both",
        "kv_connector_extra_config": {"shared_storage_path": str(folder), "load_always": True} | extra})


def ask(base, **changes):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    return client.completions.create(**(BODY | changes)).choices[0]


def same(a, b):
    return a.text == b.text and a.logprobs == b.logprobs


def stored(base):
    return metric(base, "vllm:kv_tier_stored_blocks_total")


def hits(base):
    return metric(base, "vllm:external_prefix_cache_hits_total")


def at_rest(base):
    """Nothing is being written any more."""
    return eventually(lambda: metric(base, "vllm:kv_transfer_held_blocks") == 0)


@pytest.fixture(scope="module")
def plain():
    with serve(NAME) as base:
        yield ask(base)


def test_a_restart_finds_the_prompt_on_disk(plain, tmp_path):
    with serve(NAME, shared_storage(tmp_path)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
    with serve(NAME, shared_storage(tmp_path)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: hits(base) > 500)
        assert at_rest(base) and stored(base) == 0


def test_ranks_have_a_tier_together(tmp_path):
    """What two ranks have written two find again, and one as well: a folder is of the model, not of a layout."""
    ranks = (NAME, "--device=cpu", "--dtype=float32", "--tensor-parallel-size=2")
    with serve(*ranks) as base:
        alone = ask(base)
    with serve(*ranks, shared_storage(tmp_path)) as base:
        assert same(ask(base), alone)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
    with serve(*ranks, shared_storage(tmp_path)) as base:
        assert same(ask(base), alone)
        assert eventually(lambda: hits(base) > 500)
    with serve(NAME, "--device=cpu", "--dtype=float32", shared_storage(tmp_path)) as base:
        assert ask(base).text == alone.text
        assert eventually(lambda: hits(base) > 500)


def test_an_evicted_prompt_comes_back_also_to_an_engine_that_was_killed(plain, tmp_path):
    with serve(NAME, shared_storage(tmp_path), "--num-gpu-blocks-override=150", "--max-model-len=2048") as base:
        assert same(ask(base), plain)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
        for i in range(4):
            ask(base, prompt=f"{i}: {PROMPT}")
        before = hits(base)
        assert same(ask(base), plain)
        assert eventually(lambda: hits(base) > before)
        (engine,) = engines(base)
        os.kill(engine, signal.SIGKILL)
        assert eventually(lambda: engines(base) not in ([], [engine]))
        assert same(ask(base), plain)
        assert eventually(lambda: hits(base) > 500)  # of the new engine, whose counters began at 0


def test_spoilt_files_cost_nothing_but_time(plain, tmp_path):
    with serve(NAME, shared_storage(tmp_path)) as base:
        ask(base)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
    files = sorted(tmp_path.rglob("*.kv"))
    for i, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2] if i % 2 else content[:-40] + bytes(40))
    with serve(NAME, shared_storage(tmp_path)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: metric(base, "vllm:nixl_num_failed_transfers_total") > 0)
        assert metric(base, "vllm:kv_tier_off") == 0


def test_the_size_flag_makes_a_tier_in_the_cache_folder(plain, tmp_path):
    command = f"env XDG_CACHE_HOME={tmp_path} build/release/octavo serve --port {{port}} {NAME} --kv-offloading-size 0.001"
    with running(command) as (_, base):
        assert same(ask(base), plain)
        assert eventually(lambda: metric(base, "vllm:kv_tier_size_bytes") == 2**30 // 1000)
        assert eventually(lambda: stored(base) > 0) and at_rest(base)
        assert metric(base, "vllm:kv_tier_usage_bytes") <= 2**30 // 1000
        assert list((tmp_path / "octavo" / "kv").rglob("*.kv"))


@pytest.mark.parametrize("flags, word", [
    (["--kv-transfer-config", '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'], "LMCacheConnectorV1"),
    (["--kv-transfer-config", '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}'], "secondary_tiers"),
    (["--kv-offloading-size", "1", "--kv-offloading-backend", "lmcache"], "kv-offloading-backend"),
    (["--kv-offloading-size", "1", "--kv-transfer-config",
      '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'], "one of them"),
])
def test_what_is_not_there_is_refused_by_name(flags, word):
    run = subprocess.run(["build/release/octavo", "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert word in run.stdout + run.stderr
