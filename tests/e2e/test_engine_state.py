"""Figures that an engine measures only on request (residency of KV blocks, estimated work), and its state in the
log."""

import os
import re
import signal
import threading

import openai
from conftest import at_rest, eventually, fetch, running, serve, serve_command


def value(base, name, **labels):
    """Returns the value of a series of engine 0."""
    for line in fetch(base + "/metrics").splitlines():
        if re.match(rf"vllm:{name}\{{", line) and all(f'{key}="{text}"' in line for key, text in labels.items()):
            return float(line.rsplit(" ", 1)[1])
    return None


def ask(base, prompt, tokens=8):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    return client.completions.create(model="demo", prompt=prompt, max_tokens=tokens, temperature=0, extra_body={"ignore_eos": True})


def test_residency_and_work_are_measured_on_request():
    flags = ("--device", "cpu", "--num-gpu-blocks-override", "24", "--max-model-len", "256", "--kv-cache-metrics",
             "--kv-cache-metrics-sample", "1", "--enable-mfu-metrics")
    with serve(*flags) as base:
        same = "Once upon a time there was a fox " * 4
        for i in range(12):
            ask(base, same)  # reuses the blocks of the first request
            ask(base, f"{i} " * 60)  # new blocks evict others
        assert eventually(lambda: (value(base, "kv_block_lifetime_seconds_count") or 0) > 10)
        assert at_rest(base)  # the two series are read one after the other
        assert value(base, "kv_block_idle_before_evict_seconds_count") == value(base, "kv_block_lifetime_seconds_count")
        assert 0 < value(base, "kv_block_idle_before_evict_seconds_sum") <= value(base, "kv_block_lifetime_seconds_sum")
        before = value(base, "estimated_flops_per_gpu_total")
        assert before > 0 and value(base, "estimated_read_bytes_per_gpu_total") > 0
        assert value(base, "estimated_write_bytes_per_gpu_total") > 0
        ask(base, "One more")
        assert eventually(lambda: value(base, "estimated_flops_per_gpu_total") > before)
        assert value(base, "prompt_tokens_cached_by_source_total", source="device") == value(base, "prompt_tokens_cached_total")
        assert value(base, "prompt_tokens_cached_by_source_total", source="host") == 0
        assert value(base, "mm_cache_queries_total") == 0


def test_they_cost_nothing_without_the_flags():
    with serve("--device", "cpu") as base:
        ask(base, "Once")
        assert value(base, "kv_block_lifetime_seconds_count") is None
        assert value(base, "estimated_flops_per_gpu_total") is None


def test_a_signal_writes_the_state_of_the_engines_to_the_log(capfd):
    secret = "Xylophone"
    seen = []

    def log():
        seen.append("".join(capfd.readouterr()))
        return "".join(seen)

    command = serve_command("--device", "cpu", "--data-parallel-size", "2", "--log-level", "debug")
    with running(command) as (process, base):
        asking = threading.Thread(target=ask, args=(base, secret, 600))
        asking.start()
        assert eventually(lambda: value(base, "num_requests_running") or "sequences: [" in log())
        os.kill(process.pid, signal.SIGUSR1)
        assert eventually(lambda: all(f"state of engine {i}: " in log() for i in (0, 1)))
        asking.join()
        assert re.search(r"\d+ unfinished answers: \d running, \d waiting, \d deferred; \d+ KV blocks: \d+ used", log())
        assert re.search(r"step \d+: \d+ tokens of 1 sequences: \[\d+, \d+\)", log()), "the plan of each step"
        assert secret not in log()
        assert ask(base, "The server goes on").choices[0].text
