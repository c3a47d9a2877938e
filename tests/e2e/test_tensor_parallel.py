"""Two ranks: the same answers as one engine gives, the same bits every time, and nobody left behind."""

import os
import signal
import subprocess
import threading
import time

import openai
import pytest
from conftest import eventually, serve
from test_engine_process import processes

FLAGS = ("--tensor-parallel-size", "2", "--device", "cpu", "--dtype", "float32")
PROMPTS = ["The sea was", "Once upon a time", "A list of three things: ", "def main():"]


def ranks(base):
    return processes("--run-rank", base.rsplit(":", 1)[1])


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def answers(base, prompts=PROMPTS):
    """Texts and log-probabilities of greedy answers."""
    found = [None] * len(prompts)

    def run(i):
        choice = client_of(base).completions.create(
            model="demo", prompt=prompts[i], max_tokens=48, temperature=0, logprobs=2
        ).choices[0]
        found[i] = (choice.text, choice.logprobs.token_logprobs)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_ranks_answer_as_one():
    with serve("--device", "cpu", "--dtype", "float32") as base:
        one = answers(base)
    with serve(*FLAGS) as base:
        assert len(ranks(base)) == 1
        two = answers(base)
        assert [text for text, _ in two] == [text for text, _ in one]
        for (_, ours), (_, theirs) in zip(two, one):
            assert max(abs(a - b) for a, b in zip(ours, theirs)) < 1e-3
        # Bit for bit, in whatever company.
        for prompt, expected in zip(PROMPTS, two):
            assert answers(base, [prompt]) == [expected]
    assert eventually(lambda: not ranks(base), 5)


def stream_until_its_end(base, first_piece):
    try:
        with client_of(base).completions.create(
            model="demo", prompt="Once", max_tokens=1500, stream=True, extra_body={"ignore_eos": True}
        ) as stream:
            for _ in stream:
                first_piece()
    except openai.APIError as error:
        return error
    return None


def test_a_killed_rank_is_a_clear_error_and_no_orphan():
    with serve(*FLAGS) as base:
        before = answers(base)
        (victim,) = ranks(base)
        started = threading.Barrier(5)
        ends = [None] * 4

        def run(i):
            told = []
            ends[i] = stream_until_its_end(base, lambda: told or (told.append(1), started.wait(30)))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        started.wait(30)
        os.kill(victim, signal.SIGKILL)
        for thread in threads:
            thread.join(30)
        for end in ends:
            assert "rank 1" in str(end) and "signal 9" in str(end)
        # The engine comes back with a new rank.
        assert eventually(lambda: len(ranks(base)) == 1 and ranks(base) != [victim], 30)
        assert eventually(lambda: answers_again(base) == before, 30)
    assert eventually(lambda: not ranks(base), 5)


def answers_again(base):
    try:
        return answers(base)
    except openai.APIError:
        return None


def test_a_rank_dies_with_its_server():
    with pytest.raises(AssertionError), serve(*FLAGS) as base:
        port = base.rsplit(":", 1)[1]
        engines = processes("--run-engine", port)
        assert len(engines) == 2 and len(ranks(base)) == 1
        (server,) = [pid for pid in processes("--port", port) if pid not in engines]
        os.kill(server, signal.SIGKILL)
        assert eventually(lambda: not processes("--run-engine", port), 10), "processes are left"
        time.sleep(0.1)
        # serve() finds the server dead: the AssertionError.
    assert not processes("--run-engine", port)


def test_what_ranks_cannot_do_is_refused_by_name():
    for flags, said in [
        (("--device", "reference"), "must be 1 on devices other than cpu"),
        (("--device", "cpu", "--quantization", "int8"), "tensor_parallel_size"),
        (("--device", "cpu", "--enable-lora"), "must be 1 with LoRA adapters"),
        (("--device", "cpu", "--no-engine-process"), "where the engine has no process of its own"),
    ]:
        command = ["build/release/octavo", "serve", "--port", "0", "--tensor-parallel-size", "2", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0 and said in ended.stderr, ended.stderr
