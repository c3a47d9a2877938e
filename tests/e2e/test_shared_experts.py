"""Engines of one server that share the experts of a mixture: answers equal those of engines with all experts."""

import concurrent.futures
import contextlib
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import eventually, fetch, free_port, serve, serve_command
from test_data_parallel import ended
from test_engine_process import processes
from test_tensor_parallel import PROMPTS, answers, client_of, ranks

MODEL = ("models/demo-moe", "--served-model-name", "demo", "--device", "cpu", "--dtype", "float32")
SHARED = ("--data-parallel-size", "2", "--enable-expert-parallel")
MANY = [f"{prompt} {i}" for i in range(3) for prompt in PROMPTS]


def engines(base):
    return processes("--engine-index", base.rsplit(":", 1)[1])


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(base, engine, prompt):
    choice = client_of(base).completions.create(
        model="demo", prompt=prompt, max_tokens=24, temperature=0, logprobs=2, extra_headers={"X-data-parallel-rank": str(engine)}
    ).choices[0]
    return choice.text, choice.logprobs.token_logprobs


@pytest.mark.parametrize("tensor", [1, 2])
def test_engines_answer_to_the_bit_as_one_with_all_experts(tensor):
    layout = ("--tensor-parallel-size", str(tensor))
    with serve(*MODEL, *layout, "--enable-expert-parallel") as base:
        expected = answers(base, MANY)
        alone = ask(base, 0, PROMPTS[0])
    with serve(*MODEL, *layout, *SHARED) as base:
        assert len(ranks(base)) == 2 * (tensor - 1)
        assert answers(base, MANY) == expected
        assert eventually(lambda: sorted(ended(base)) == ["0", "1"]), "both engines have worked"
        for engine in (0, 1):  # one engine computes, the other one assists
            assert ask(base, engine, PROMPTS[0]) == alone

        pids = engines(base)

        def idle():
            before, began = sum(map(cpu_seconds, pids)), time.monotonic()
            time.sleep(2)  # the measured interval
            return sum(map(cpu_seconds, pids)) - before < 0.01 * len(pids) * (time.monotonic() - began)

        assert eventually(idle)
    assert eventually(lambda: not engines(base))


def ports_in_a_row():
    """Returns the first of two consecutive free ports, which no other caller of free_port() gets."""
    first, second = free_port(), free_port()
    while second != first + 1:
        first, second = second, free_port()
    return first


@contextlib.contextmanager
def two_servers(*flags):
    """Runs engine 0 and engine 1 of one model, each with a server. Neither is ready before the other one has
    started."""
    flags = (*MODEL, *SHARED, "--tensor-parallel-size", "2", "--data-parallel-rpc-port", str(ports_in_a_row()), *flags)
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(2) as pool:
        servers = [serve(*flags, "--data-parallel-rank" if "--data-parallel-hybrid-lb" not in flags else
                         "--data-parallel-start-rank", str(rank)) for rank in range(2)]
        yield list(pool.map(stack.enter_context, servers))


@pytest.mark.parametrize("balancer", [(), ("--data-parallel-external-lb",), ("--data-parallel-hybrid-lb", "--data-parallel-size-local", "1")])
def test_engines_of_several_servers_share_experts(balancer):
    with serve(*MODEL, "--tensor-parallel-size", "2", "--enable-expert-parallel") as base:
        expected = answers(base, MANY)
    with two_servers(*balancer) as bases:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda base: answers(base, MANY), bases)) == [expected] * 2
        assert [list(ended(base)) for base in bases] == [["0"], ["1"]]
        assert answers(bases[1], MANY) == expected, "the engine of the other server assists"
        if not balancer:
            before = set(engines(bases[0]))
            os.kill(ranks(bases[1])[0], signal.SIGKILL)
            assert eventually(lambda: len(engines(bases[0])) == 2 and not before & set(engines(bases[0]))), "all ranks are new"
            assert answers(bases[0], MANY) == expected


def test_engines_of_a_headless_host_share_experts():
    with serve(*MODEL, "--tensor-parallel-size", "2", "--enable-expert-parallel") as base:
        expected = answers(base, MANY)
    flags = (*MODEL, *SHARED, "--tensor-parallel-size", "2", "--data-parallel-size-local", "1", "--data-parallel-rpc-port", str(ports_in_a_row()))
    command = shlex.split(serve_command(*flags, "--headless", "--data-parallel-start-rank", "1").replace("{port}", "0"))
    with subprocess.Popen(command) as headless:
        try:
            with serve(*flags) as base:
                assert answers(base, MANY) == expected
                assert eventually(lambda: sorted(ended(base)) == ["0", "1"]), "both engines have worked"
        finally:
            headless.terminate()


def running(base):
    lines = fetch(base + "/metrics").splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("vllm:num_requests_running{"))


@pytest.mark.parametrize("victim", ["an engine", "a rank"])
def test_a_rank_dies_and_no_stream_ends(victim):
    with serve(*MODEL, "--tensor-parallel-size", "2", *SHARED) as base:
        expected = [text for text, _ in answers(base, MANY)]
        before = set(engines(base))
        assert len(before) == 4
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(answers, base, MANY)
            assert eventually(lambda: running(base) > 0 or asked.done())
            os.kill(ranks(base)[0] if victim == "a rank" else min(before - set(ranks(base))), signal.SIGKILL)
            assert [text for text, _ in asked.result()] == expected
        assert eventually(lambda: len(engines(base)) == 4 and not before & set(engines(base))), "all ranks are new"
        for engine in (0, 1):
            assert ask(base, engine, PROMPTS[0])[0]


@pytest.mark.parametrize("flags, message", [
    (("models/demo", *SHARED), "enable_expert_parallel: Qwen3ForCausalLM has no experts to share among 2 engines: remove the flag"),
    (("models/demo-moe", *SHARED, "--enable-lora"), "enable_lora: LoRA cannot be combined with --enable-expert-parallel"),
    (("models/demo-moe", *SHARED, "--pipeline-parallel-size", "2"), "pipeline_parallel_size: is 2; it cannot be combined with --enable-expert-parallel"),
    (("models/demo-moe", *SHARED, "--enable-elastic-ep"), "enable_elastic_ep: is not supported with --enable-expert-parallel"),
    (("models/demo-moe", *SHARED, "--data-parallel-size-local", "0"), "data_parallel_start_rank: engines that share experts connect to the host of engine 0"),
    (("models/demo-moe", *SHARED, "--data-parallel-size-local", "1", "--data-parallel-start-rank", "1"), "data_parallel_start_rank: engines that share experts connect to the host of engine 0"),
    (("models/demo-moe", *SHARED, "--data-parallel-size-local", "1", "--headless"), "data_parallel_start_rank: engines that share experts connect to the host of engine 0"),
    (("models/demo-moe", *SHARED, "--data-parallel-rank", "0", "--data-parallel-rpc-port", "65535"), "data_parallel_rpc_port: must be at most 65534 with --enable-expert-parallel"),
    (("models/demo-moe", "--data-parallel-size", "16", "--enable-expert-parallel"), "data_parallel_size: times tensor_parallel_size is 16, but the model has 8 experts"),
])
def test_what_cannot_share_experts_is_refused(flags, message):
    command = [*shlex.split(serve_command(*flags, "--device", "cpu").replace("{port}", "0"))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert message in ended.stderr
