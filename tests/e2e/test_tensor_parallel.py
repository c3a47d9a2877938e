"""Two ranks: answers equal those of one engine, with the same bits each time, and no process remains."""

import os
import signal
import subprocess
import threading

import openai
import pytest
from conftest import PATIENCE, at_once, eventually, running, serve, serve_command
from test_adapters import write_adapter
from test_engine_process import processes

FLAGS = ("--tensor-parallel-size", "2", "--device", "cpu", "--dtype", "float32")
PROMPTS = ["The sea was", "Once upon a time", "A list of three things: ", "def main():"]


def ranks(base):
    return processes("--run-rank", base.rsplit(":", 1)[1])


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def answers(base, prompts=PROMPTS, model="demo"):
    """Returns the texts and log-probabilities of greedy answers."""
    def run(prompt):
        choice = client_of(base).completions.create(model=model, prompt=prompt, max_tokens=48, temperature=0, logprobs=2).choices[0]
        return choice.text, choice.logprobs.token_logprobs

    return at_once(run, prompts)


def test_two_ranks_answer_as_one():
    with serve("--device", "cpu", "--dtype", "float32") as base:
        one = answers(base)
    with serve(*FLAGS) as base:
        assert len(ranks(base)) == 1
        two = answers(base)
        assert [text for text, _ in two] == [text for text, _ in one]
        for (_, ours), (_, theirs) in zip(two, one):
            assert max(abs(a - b) for a, b in zip(ours, theirs)) < 1e-3
        # The bits stay the same with any other requests.
        for prompt, expected in zip(PROMPTS, two):
            assert answers(base, [prompt]) == [expected]
    assert eventually(lambda: not ranks(base))


def test_adapters_on_ranks(tmp_path):
    """Adapters are loaded while the server runs, used in a batch with the base model, and unloaded."""
    one_adapter, another = (write_adapter(tmp_path / name, seed) for seed, name in enumerate(("one", "another")))
    flags = ("--device", "cpu", "--dtype", "float32", "--enable-lora", "--max-lora-rank", "8", "--max-loras", "1",
             "--lora-modules", f"one={one_adapter}", f"another={another}", "--served-model-name", "demo")
    models = ["demo", "one", "another", "one"]

    def all_of(base):
        return [answers(base, PROMPTS[i : i + 1], model)[0] for i, model in enumerate(models)]

    def all_at_once(base):
        """Adapters replace each other in the only slot while steps run. Some clients leave their streams early."""
        def run(i):
            model, prompt = models[i % 4], PROMPTS[i % 4]
            if i % 3 < 2:
                return answers(base, [prompt], model)[0]
            with client_of(base).completions.create(model=model, prompt=prompt, max_tokens=400, stream=True) as stream:
                next(iter(stream))

        return at_once(run, range(24))

    with serve(*flags) as base:
        one = all_of(base)
    with serve(*flags, "--tensor-parallel-size", "2") as base:
        two = all_of(base)
        assert all_of(base) == two
        assert answers(base, PROMPTS[:2]) == [two[0], answers(base, PROMPTS[1:2])[0]]
    for (text, ours), (wanted, theirs) in zip(two, one):
        assert text == wanted
        assert max(abs(a - b) for a, b in zip(ours, theirs)) < 1e-3
    assert len({text for text, _ in two}) == len(models)
    for layout, expected in (("-pp 2", one), ("-pp 2 -tp 2", two)):
        with serve(*flags, *layout.split()) as base:
            assert all_of(base) == expected
            assert [found for found in all_at_once(base) if found] == [expected[i % 4] for i in range(24) if i % 3 < 2]


def streams(base, first_pieces=lambda: None):
    """Returns the texts of greedy streams. Calls first_pieces() when each stream has begun."""
    started = threading.Barrier(len(PROMPTS), action=first_pieces)
    texts = [""] * len(PROMPTS)

    def run(i):
        with client_of(base).completions.create(
            model="demo", prompt=PROMPTS[i], max_tokens=1500, temperature=0, stream=True, extra_body={"ignore_eos": True}
        ) as stream:
            for chunk in stream:
                if not texts[i]:
                    started.wait(PATIENCE)
                texts[i] += chunk.choices[0].text

    at_once(run, range(len(PROMPTS)))
    return texts


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("flags", [FLAGS, (*FLAGS, "--pipeline-parallel-size", "2", "--distributed-timeout-seconds", "8")])
def test_streams_go_on_when_a_rank_is_killed_or_hangs(flags, number):
    with serve(*flags) as base:
        undisturbed = streams(base)
        before = ranks(base)
        assert streams(base, lambda: os.kill(before[-1], number)) == undisturbed
        # If the server had sent all streams before their clients began to read, only the next ones find the rank.
        assert streams(base) == undisturbed
        assert eventually(lambda: len(now := ranks(base)) == len(before) and not set(now) & set(before))
    assert eventually(lambda: not ranks(base))


def answers_again(base):
    try:
        return answers(base)
    except openai.APIError:
        return None


def test_a_rank_that_dies_while_nothing_runs_is_replaced():
    with serve(*FLAGS) as base:
        before = answers(base)
        killed = ranks(base)
        os.kill(killed[0], signal.SIGKILL)
        assert eventually(lambda: (now := ranks(base)) and not set(now) & set(killed))
        assert answers(base) == before


def test_a_rank_dies_with_its_server():
    with running(serve_command(*FLAGS)) as (server, base):
        port = base.rsplit(":", 1)[1]
        assert len(processes("--run-engine", port)) == 2 and len(ranks(base)) == 1
        server.kill()
        assert eventually(lambda: not processes("--run-engine", port)), "processes are left"


def test_what_ranks_cannot_do_is_refused_by_name():
    for flags, said in [
        (("--device", "reference"), "must be 1 on the device reference, got 2"),
        (("--device", "cpu", "--no-engine-process"), "must be 1 for an engine without a separate process, got 2"),
    ]:
        command = ["build/release/octavo", "serve", "--port", "0", "--tensor-parallel-size", "2", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0 and said in ended.stderr, ended.stderr
