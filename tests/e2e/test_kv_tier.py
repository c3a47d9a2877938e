"""Tiers of the KV cache, in host memory and on disk: prompts are loaded after an eviction, and from disk also after a
restart or a kill -9."""

import concurrent.futures
import json
import os
import signal
import subprocess

import openai
import pytest
from conftest import eventually, fetch, http_client, metric, running, serve
from test_engine_process import engines

NAME = "--served-model-name=demo"
PROMPT = " ".join(f"word {i} of a long prompt about rivers, mountains and the sea;" for i in range(60))
BODY = {"model": "demo", "prompt": PROMPT, "max_tokens": 16, "temperature": 0.8, "seed": 3, "logprobs": 2}


def shared_storage(folder, **extra):
    return "--kv-transfer-config=" + json.dumps({
        "kv_connector": "SharedStorageConnector", "kv_role": "kv_both",
        "kv_connector_extra_config": {"shared_storage_path": str(folder), "load_always": True} | extra})


def offloading(**extra):
    return "--kv-transfer-config=" + json.dumps({"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"load_always": True} | extra})


def tier_metric(base, name, tier):
    """Returns the value of a metric for one tier: `CPU` or `STORAGE`."""
    for line in fetch(base + "/metrics").splitlines():
        if line.startswith(name + "{") and f'"{tier}"' in line:
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no {name} of {tier}")


def of_each_engine(base, name, tier=""):
    return [float(line.rsplit(" ", 1)[1]) for line in fetch(base + "/metrics").splitlines() if line.startswith(name + "{") and tier in line]


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
    """Waits until no block is being written."""
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


def test_two_servers_share_a_folder(plain, tmp_path):
    """One server computes the prompt, the other one decodes. Both have the folder open all the time."""
    with serve(NAME, shared_storage(tmp_path)) as decode:
        with serve(NAME, shared_storage(tmp_path)) as prefill:
            ask(prefill, max_tokens=1)
            assert eventually(lambda: stored(prefill) > 10) and at_rest(prefill)
            assert same(ask(decode), plain)
            assert eventually(lambda: hits(decode) > 500) and at_rest(decode)
            assert stored(decode) == 0, "the folder has these blocks"
        ask(decode, prompt="Another one: " + PROMPT)
        assert eventually(lambda: stored(decode) > 10) and at_rest(decode)


SMALL = ("--num-gpu-blocks-override=150", "--max-model-len=2048")


def evict(base, prompts=4):
    for i in range(prompts):
        ask(base, prompt=f"{i}: {PROMPT}", max_tokens=1)
    assert at_rest(base)


def test_an_evicted_prompt_comes_back_from_host_memory(plain):
    with serve(NAME, offloading(spec_name="CPUOffloadingSpec", cpu_bytes_to_use=256 << 20, eviction_policy="arc"), *SMALL) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
        evict(base)
        before = hits(base)
        assert same(ask(base), plain)
        assert eventually(lambda: hits(base) > before + 100)
        assert tier_metric(base, "vllm:kv_tier_blocks", "CPU") > 10
        assert metric(base, "vllm:kv_tier_size_bytes") == 256 << 20
        transferred = "vllm:kv_offload_total_bytes_total"
        assert eventually(lambda: tier_metric(base, transferred, "GPU_to_CPU") >= tier_metric(base, transferred, "CPU_to_GPU") > 0)
        with pytest.raises(AssertionError):
            tier_metric(base, "vllm:kv_tier_blocks", "STORAGE")


def test_what_host_memory_evicts_comes_back_from_disk_also_after_a_restart(plain, tmp_path):
    # Host memory has space for the blocks of this prompt and for few more.
    tiers = offloading(spec_name="TieringOffloadingSpec", cpu_bytes_to_use=6 << 20, secondary_tiers=[{"type": "fs", "root_dir": str(tmp_path)}])
    with serve(NAME, tiers, *SMALL) as base:
        assert same(ask(base), plain)
        for i in range(4):
            written = tier_metric(base, "vllm:kv_tier_stored_blocks_total", "STORAGE")
            ask(base, prompt=f"{i}: {PROMPT}", max_tokens=1)
            assert eventually(lambda: tier_metric(base, "vllm:kv_tier_stored_blocks_total", "STORAGE") > written) and at_rest(base)
        assert tier_metric(base, "vllm:kv_tier_evicted_blocks_total", "CPU") > 0
        assert same(ask(base), plain)
        assert eventually(lambda: tier_metric(base, "vllm:kv_offload_total_bytes_total", "STORAGE_to_CPU") > 0)
        assert eventually(lambda: tier_metric(base, "vllm:kv_offload_total_bytes_total", "CPU_to_GPU") > 0)
    with serve(NAME, tiers, *SMALL) as base:
        assert eventually(lambda: "vllm:kv_tier_blocks{" in fetch(base + "/metrics"))  # the engine reports these numbers shortly after its start
        assert tier_metric(base, "vllm:kv_tier_blocks", "CPU") == 0
        assert same(ask(base), plain)
        assert eventually(lambda: hits(base) > 100)


def test_an_engine_that_slept_finds_its_prompts_in_host_memory(plain):
    with serve(NAME, "--server-dev-mode", "--enable-sleep-mode", offloading(cpu_bytes_to_use=64 << 20)) as base:
        assert same(ask(base), plain)
        assert eventually(lambda: stored(base) > 10) and at_rest(base)
        for call in ("/sleep?level=1", "/wake_up", "/reset_prefix_cache"):
            assert http_client.post(base + call).status_code == 200
            if call != "/sleep?level=1":
                before = hits(base)
                assert same(ask(base), plain)
                assert eventually(lambda: hits(base) > before + 500)
        assert at_rest(base)


def test_engines_have_their_host_memory_and_share_the_folder(plain, tmp_path):
    tiers = offloading(cpu_bytes_to_use=16 << 20, secondary_tiers=[{"type": "fs", "root_dir": str(tmp_path)}])
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        with serve(NAME, "--data-parallel-size=2", tiers) as base:
            assert all(same(answer, plain) for answer in clients.map(lambda _: ask(base), range(8)))
            stored_blocks = lambda tier: of_each_engine(base, "vllm:kv_tier_stored_blocks_total", tier)

            def all_are_stored():
                blocks = stored_blocks("STORAGE")
                return len(blocks) == 2 and blocks[0] == blocks[1] > 10 and blocks == stored_blocks("CPU")

            assert eventually(all_are_stored)
            blocks = stored_blocks("STORAGE")
        files = list(tmp_path.rglob("*.kv"))
        assert len({file.parents[1].name for file in files}) == 1 and len(files) == blocks[0] == blocks[1]
        with serve(NAME, "--data-parallel-size=2", tiers) as base:
            assert all(same(answer, plain) for answer in clients.map(lambda _: ask(base), range(8)))
            assert eventually(lambda: min(of_each_engine(base, "vllm:external_prefix_cache_hits_total"), default=0) > 500)
            assert eventually(lambda: not any(of_each_engine(base, "vllm:kv_transfer_held_blocks")))


def test_ranks_have_a_tier_together(tmp_path):
    """Two ranks, or one, find the blocks that two ranks have written: a folder depends on the model, not on the
    layout."""
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
    with serve(NAME, shared_storage(tmp_path), "--num-gpu-blocks-override=150", "--max-model-len=2048",
               "--no-kv-survives-engine") as base:
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
        assert eventually(lambda: hits(base) > 500)  # counters of the new engine, which began at 0


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
    (["--kv-transfer-config", '{"kv_connector": "FlexKVConnectorV1", "kv_role": "kv_both"}'], "FlexKVConnectorV1"),
    (["--kv-transfer-config", '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'], "lmcache.max_local_cpu_size"),
    (["--kv-transfer-config", '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both"}'], "cpu_bytes_to_use"),
    ([offloading(spec_name="TieringOffloadingSpec", cpu_bytes_to_use=1 << 20)], "secondary_tiers"),
    ([offloading(cpu_bytes_to_use=-1)], "cpu_bytes_to_use"),
    ([offloading(cpu_bytes_to_use=1 << 60)], "1152921504606846976 bytes of host memory"),
    ([offloading(cpu_bytes_to_use=1000)], "1000 bytes of host memory are too few"),
    (["--kv-offloading-size", "1", "--kv-offloading-backend", "lmcache"], "kv-offloading-backend"),
    (["--kv-offloading-size", "1", "--kv-transfer-config",
      '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'], "one of them"),
])
def test_what_is_not_there_is_refused_by_name(flags, word):
    run = subprocess.run(["build/release/octavo", "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert word in run.stdout + run.stderr
