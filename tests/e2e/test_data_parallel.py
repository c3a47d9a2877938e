"""Two engines of one server: answers equal those of one engine, both engines work, and the death of one loses no
request."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import openai
import pytest
from conftest import PATIENCE, engine_of, eventually, fetch, free_port, serve
from test_engine_process import processes
from test_ranks import another_host

FLAGS = ("--data-parallel-size", "2", "--device", "cpu")
PROMPTS = [f"Once upon a time there were {i} children who" for i in range(8)]


@pytest.fixture(scope="module")
def base():
    with serve(*FLAGS) as base:
        yield base


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def answers(base, while_running=lambda: None, max_tokens=200, **fields):
    """Returns the texts of greedy answers that run at the same time."""
    def run(prompt):
        fields_of_all = dict(model="demo", max_tokens=max_tokens, temperature=0, extra_body={"ignore_eos": True})
        return client_of(base).completions.create(prompt=prompt, **fields_of_all, **fields).choices[0].text

    with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
        texts = pool.map(run, PROMPTS)
        while_running()
        return list(texts)


def ended(base):
    """Returns the number of finished answers of each engine."""
    counts = {}
    for line in fetch(base + "/metrics").splitlines():
        if line.startswith("vllm:request_prompt_tokens_count{"):
            counts[line.split('engine="')[1].split('"')[0]] = float(line.rsplit(" ", 1)[1])
    return counts


def engines(base):
    return processes("--engine-index", base.rsplit(":", 1)[1])


def test_both_engines_answer_as_one(base):
    with serve("--device", "cpu") as one:
        expected = answers(one)
    before = ended(base)
    assert answers(base) == expected
    after = ended(base)
    assert sorted(after) == ["0", "1"]
    assert min(after[engine] - before.get(engine, 0) for engine in ("0", "1")) >= 2


def test_a_header_chooses_the_engine(base):
    for engine in ("1", "1", "0"):
        before = ended(base).get(engine, 0)
        client_of(base).completions.create(
            model="demo", prompt="Once", max_tokens=2, extra_headers={"X-data-parallel-rank": engine}
        )
        assert eventually(lambda: ended(base).get(engine) == before + 1)
    for wrong in ("2", "-1", "one"):
        with pytest.raises(openai.BadRequestError, match="rank"):
            client_of(base).completions.create(
                model="demo", prompt="Once", max_tokens=2, extra_headers={"X-data-parallel-rank": wrong}
            )


def test_an_engine_dies_and_its_streams_go_on(base):
    expected = answers(base)
    assert len(engines(base)) == 2
    assert answers(base, while_running=lambda: os.kill(engines(base)[0], signal.SIGKILL)) == expected
    assert eventually(lambda: len(engines(base)) == 2)


def test_it_needs_engines_of_their_own():
    command = ["build/release/octavo", "serve", "--port", "0", *FLAGS, "--no-engine-process"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "data_parallel_size" in done.stderr


def test_each_engine_runs_on_the_processors_it_was_given(monkeypatch):
    mine = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{mine[0]}|{mine[-1]}")
    with serve(*FLAGS) as base:
        assert all(answers(base, max_tokens=4))
        allowed = {(Path(f"/proc/{pid}/status").read_text().split("Cpus_allowed_list:")[1].split()[0]) for pid in engines(base)}
    assert allowed == {str(mine[0]), str(mine[-1])}


def test_servers_share_the_engines_out():
    """External and hybrid load balancing: each server numbers its own engines."""
    with serve("--device", "cpu", "--data-parallel-size", "4", "--data-parallel-rank", "3") as one:
        client_of(one).completions.create(model="demo", prompt="Once", max_tokens=2, extra_headers={"X-data-parallel-rank": "3"})
        assert eventually(lambda: ended(one) == {"3": 1})
        with pytest.raises(openai.BadRequestError, match=r"must be in \[3, 4\), got 0"):
            client_of(one).completions.create(model="demo", prompt="Once", max_tokens=2, extra_headers={"X-data-parallel-rank": "0"})
    with serve("--device", "cpu", "-dp", "4", "-dph", "-dpl", "2", "-dpr", "1") as two:
        for engine in ("2", "1"):
            client_of(two).completions.create(model="demo", prompt="Once", max_tokens=2, extra_headers={"X-data-parallel-rank": engine})
        assert eventually(lambda: ended(two) == {"1": 1, "2": 1})


@contextlib.contextmanager
def engine_of_another_host(address="127.0.0.1", prefix=()):
    """Starts a server with engine 0. Yields its base URL, and a function that starts the host of engine 1."""
    flags = (*FLAGS, "--data-parallel-size-local", "1", "--data-parallel-address", address, "--data-parallel-rpc-port", str(free_port()))
    hosts = []

    def start():
        hosts.append(subprocess.Popen([*prefix, "build/release/octavo", "serve", *flags, "--headless", "--data-parallel-start-rank", "1"]))
        return hosts[-1]

    start()
    try:
        with serve(*flags) as base:
            yield base, start, hosts[0]
    finally:
        for host in hosts:
            host.terminate()
            host.wait()


def ask_engine_1(base, tokens=2):
    reply = client_of(base).completions.create(
        model="demo", prompt=PROMPTS[1], max_tokens=tokens, temperature=0, extra_headers={"X-data-parallel-rank": "1"}, extra_body={"ignore_eos": True}
    )
    return reply.choices[0].text


def is_away(base):
    try:
        return not ask_engine_1(base)
    except openai.APIStatusError as error:
        return error.status_code == 503 and "engine 1 on another host is not connected" in str(error)


def is_back(base):
    try:
        return ask_engine_1(base)
    except openai.APIError:
        return None


def test_an_engine_of_another_host_dies_goes_and_comes(base):
    expected = answers(base)
    with engine_of_another_host() as (two, start, host):
        before = ended(two)
        assert answers(two) == expected
        assert min(ended(two)[engine] - before.get(engine, 0) for engine in ("0", "1")) >= 2
        engine = engine_of(host)
        assert answers(two, while_running=lambda: os.kill(engine, signal.SIGKILL)) == expected
        host.terminate()
        host.wait()
        assert eventually(lambda: is_away(two))
        assert answers(two) == expected, "the engine that is up has them all"
        start()
        assert eventually(lambda: is_back(two), PATIENCE)
        assert answers(two) == expected


def test_a_cut_link_to_an_engine_ends_its_requests_and_no_others(base):
    expected, long = answers(base), ask_engine_1(base, 1000)
    with another_host() as (address, prefix, cable), engine_of_another_host(address, prefix) as (two, _, _):
        assert answers(two) == expected
        subprocess.run(["ip", "link", "set", cable, "down"], check=True)
        with pytest.raises(openai.APIError, match="engine 1 on another host is not connected"):
            ask_engine_1(two, 1000)
        assert answers(two) == expected
        subprocess.run(["ip", "link", "set", cable, "up"], check=True)
        assert eventually(lambda: is_back(two), PATIENCE)
        assert ask_engine_1(two, 1000) == long


@pytest.mark.parametrize("flags, message", [
    (("-dpn", "2"), "data_parallel_rank: must be below --data-parallel-size 1, got 2"),
    (("-dpe",), "data_parallel_rank: must be given"),
    (("-dp", "2", "-dpl", "0", "-dpr", "0", "--headless"), "data_parallel_size_local: must be at least 1 on --headless hosts"),
    (("-dp", "2", "-dpl", "0", "-dph"), "data_parallel_size_local: must be at least 1"),
    (("-dp", "2", "--data-parallel-backend", "ray"), "--data-parallel-backend: ray is not supported, only mp: each host starts its own processes: run octavo serve --headless"),
    (("-tp", "2", "--distributed-executor-backend", "ray"), "--distributed-executor-backend: ray is not supported"),
    (("-dp", "2", "-dpl", "1", "--nnodes", "2", "-tp", "2"), "nnodes: must be 1 if the engines are on several hosts, got 2"),
    (("-dp", "4", "-dph", "-dpl", "2", "-dpr", "3"), "engines 3 to 4 do not exist: their index must be below --data-parallel-size 4"),
])
def test_numbers_that_do_not_fit(flags, message):
    ended = subprocess.run(["build/release/octavo", "serve", "models/demo", *flags], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert message in ended.stderr
