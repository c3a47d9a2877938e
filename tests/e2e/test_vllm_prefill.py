"""Prefill on a vLLM server, decode on Octavo, by NIXL.

OCTAVO_VLLM: folder of a Python environment with vLLM's CPU server 0.32 and nixl-cu12 or nixl-cu13.
"""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import DEMO, PATIENCE, eventually, fetch, free_port, metric, serve
from test_kv_transfer import ASK, NAME, PROMPT, client_of, failures, moved

VLLM = Path(os.environ.get("OCTAVO_VLLM", ""))
LIBRARIES = sorted(VLLM.glob("lib/python*/site-packages/.nixl_cu*.mesonpy.libs/libnixl_capi.so")) if VLLM.name else []
NEEDS_VLLM = pytest.mark.skipif(not LIBRARIES, reason="OCTAVO_VLLM names no Python environment with vLLM and NIXL")
START = 900  # seconds in which vLLM starts on a busy machine


@contextlib.contextmanager
def vllm(dtype):
    port, side_channel = free_port(), free_port()
    command = [VLLM / "bin" / "python", "-m", "vllm.entrypoints.openai.api_server", "--model", DEMO, "--served-model-name", "demo",
               "--port", str(port), "--host", "127.0.0.1", "--max-model-len", "1024", "--dtype", dtype, "--enforce-eager",
               "--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_producer", "kv_buffer_device": "cpu"})]
    variables = {"VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1", "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_channel),
                 "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    process = subprocess.Popen(command, env=os.environ | variables, start_new_session=True)
    base = f"http://127.0.0.1:{port}"

    def is_ready():
        assert process.poll() is None, "vLLM ended before it was ready"
        with contextlib.suppress(OSError):
            return fetch(base + "/health") is not None

    try:
        assert eventually(is_ready, START), "vLLM is not ready"
        yield process, base
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def consumer(library):
    return "--kv-transfer-config=" + json.dumps({
        "kv_connector": "NixlConnector", "kv_role": "kv_consumer",
        "kv_connector_extra_config": {"transport": "nixl", "nixl_library": str(library)}})


def prefill_of(prefill, body):
    done = client_of(prefill).completions.create(**(body | {"max_tokens": 1}), extra_body={"kv_transfer_params": ASK})
    params = done.model_extra["kv_transfer_params"]
    assert params["do_remote_prefill"] is True and params["transfer_mode"] == "pull"
    return params


def decode_of(server, body, params=None):
    return client_of(server).completions.create(**body, extra_body={"kv_transfer_params": params}).choices[0]


def assert_alike(got, alone, dtype):
    """vLLM and Octavo round differently. With bfloat16, two tokens of similar probability may change places."""
    tokens, difference = (24, 1e-3) if dtype == "float32" else (8, 0.3)
    assert got.logprobs.tokens[:tokens] == alone.logprobs.tokens[:tokens]
    pairs = zip(got.logprobs.token_logprobs[:tokens], alone.logprobs.token_logprobs)
    assert max(abs(a - b) for a, b in pairs) < difference


@NEEDS_VLLM
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_answer_is_that_of_one_server(dtype):
    flags = (NAME, f"--dtype={dtype}")
    with (vllm(dtype) as (process, prefill), serve(*flags) as plain, serve(*flags, consumer(LIBRARIES[0])) as decode,
          serve(*flags, "--block-size=48", consumer(LIBRARIES[0])) as other_size):
        for count, server in enumerate((decode, other_size), 1):
            body = {"model": "demo", "prompt": f"{count}: {PROMPT}", "max_tokens": 24, "temperature": 0, "logprobs": 1}
            assert_alike(decode_of(server, body, prefill_of(prefill, body)), decode_of(plain, body), dtype)
            assert eventually(lambda: moved(server) > 0)
            assert failures(server) == 0
            assert metric(server, "vllm:external_prefix_cache_hits_total") > 600

        # A killed prefill server costs no answer.
        body = {"model": "demo", "prompt": "3: " + PROMPT, "max_tokens": 24, "temperature": 0, "logprobs": 1}
        params = prefill_of(prefill, body)
        # vLLM frees the blocks when it is notified, and counts no expired lease.
        assert metric(prefill, "vllm:nixl_num_kv_expired_reqs_total") == 0
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert decode_of(decode, body, params) == decode_of(plain, body)
        assert eventually(lambda: failures(decode) == 1)


def test_a_missing_library_is_an_error():
    config = consumer("/no/such/libnixl_capi.so")
    done = subprocess.run(["build/release/octavo", "serve", NAME, config], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "/no/such/libnixl_capi.so" in done.stderr
