"""The KV cache outlives the engine: after a kill -9, the next turn of each conversation computes its new tokens only, with
the same bits. Damaged memory is computed again."""

import itertools
import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest
from conftest import PATIENCE, at_once, at_rest, engine_of, eventually, http_client, metric, running, serve_command
from test_engine_process import engines

FLAGS = ["--served-model-name=demo", "--server-dev-mode", "--enable-prompt-tokens-details"]
BLOCK = 16
ROUNDS = 100 if "OCTAVO_LONG_TESTS" in os.environ else 6
KEPT, DISCARDED = "vllm:kv_kept_blocks_total", "vllm:kv_kept_discarded_blocks_total"


def some_tokens(seed, count):
    return [random.Random(seed * 10_007 + i).randrange(4, 4000) for i in range(count)]


def turn(base, prompt, seed, tokens=60, each=lambda: None):
    """Streams an answer. Returns its token ids, their log-probabilities and the number of cached prompt tokens."""
    body = {"model": "demo", "prompt": prompt, "max_tokens": tokens, "seed": seed, "temperature": seed % 2, "logprobs": 1,
            "ignore_eos": True, "return_token_ids": True, "stream": True, "stream_options": {"include_usage": True}}
    ids, logprobs, usage = [], [], None
    with http_client.stream("POST", base + "/v1/completions", json=body) as stream:
        assert stream.status_code == 200
        for line in stream.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            assert "error" not in event, event
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                ids += choice["token_ids"] or []
                logprobs += choice["logprobs"]["token_logprobs"]
                each()
    details = usage["prompt_tokens_details"]
    return ids, logprobs, details["cached_tokens"] if details else 0


def kill_engine(server, base):
    before = engine_of(server)
    os.kill(before, signal.SIGKILL)
    assert eventually(lambda: engine_of(server) not in (None, before))
    return before


def conversation(base, number, turns, between=lambda: None, each=lambda: None):
    """Returns the answers of all turns. From the second turn on, each full block of the text before must be cached."""
    text, answers = [], []
    for i in range(turns):
        known = len(text)
        text = text + some_tokens(100 * number + i, 200 if i == 0 else 30)
        ids, logprobs, cached = turn(base, text, seed=number, each=each)
        if i > 0:
            assert cached >= (known - 1) // BLOCK * BLOCK, (number, i, known)
        text += ids
        answers.append((ids, logprobs))
        between()
    return answers


def test_the_next_turn_computes_only_its_new_tokens():
    with running(serve_command(*FLAGS)) as (server, base):
        undisturbed = conversation(base, 1, turns=3)
    with running(serve_command(*FLAGS)) as (server, base):
        pieces = itertools.count()
        answers = conversation(base, 1, turns=3, each=lambda: next(pieces) == 30 and kill_engine(server, base),
                               between=lambda: kill_engine(server, base))
        assert answers == undisturbed
        assert eventually(lambda: metric(base, KEPT) > 3 * 200 // BLOCK)
        assert metric(base, DISCARDED) == 0


def memory_of(server):
    """Returns the path of the memory that the server's process keeps for the engine."""
    for link in Path(f"/proc/{server.pid}/fd").iterdir():
        if os.readlink(link).startswith("/memfd:octavo") and link.stat().st_size > 0:
            return link
    raise AssertionError("no memory is kept")


def test_damaged_memory_is_computed_again():
    prompt = some_tokens(7, 700)
    blocks, block_bytes = 512, 49_152  # they are the last bytes of the memory
    with running(serve_command(*FLAGS, f"--num-gpu-blocks-override={blocks}")) as (server, base):
        first = turn(base, prompt, seed=1)
        assert at_rest(base)
        with open(memory_of(server), "r+b") as memory:
            first_block = memory.seek(-blocks * block_bytes, os.SEEK_END)
            for block in range(100):
                memory.seek(first_block + block * block_bytes + 100)
                byte = memory.read(1)[0]
                memory.seek(-1, os.SEEK_CUR)
                memory.write(bytes([byte ^ 0x40]))
        kill_engine(server, base)
        assert turn(base, prompt, seed=1) == (first[0], first[1], 0)
        assert eventually(lambda: metric(base, DISCARDED) >= 700 // BLOCK)
        assert metric(base, KEPT) == 0
        again = turn(base, prompt, seed=1)
        assert again[:2] == first[:2] and again[2] >= 700 // BLOCK * BLOCK - BLOCK


def test_kills_at_random_moments():
    sessions, turns = 4, 3
    with running(serve_command(*FLAGS)) as (server, base):
        undisturbed = at_once(lambda i: conversation(base, i, turns), range(sessions))
    with running(serve_command(*FLAGS)) as (server, base):
        for number in range(ROUNDS):
            lock, pieces, at = threading.Lock(), itertools.count(), random.Random(number).randrange(1, sessions * turns * 55)

            def each(lock=lock, pieces=pieces, at=at):
                with lock:
                    if next(pieces) == at:
                        kill_engine(server, base)

            assert at_once(lambda i, each=each: conversation(base, i, turns, each=each), range(sessions)) == undisturbed, number
            assert at_rest(base)
            # the next round computes the same prompts anew
            http_client.post(base + "/reset_prefix_cache").raise_for_status()
        assert eventually(lambda: metric(base, KEPT) > 0)
        assert metric(base, DISCARDED) == 0


def test_new_weights_and_a_deep_sleep_keep_nothing():
    with running(serve_command(*FLAGS, "--enable-sleep-mode")) as (server, base):
        turn(base, some_tokens(3, 300), seed=1)
        assert at_rest(base)
        http_client.post(base + "/sleep?level=2").raise_for_status()
        http_client.post(base + "/wake_up").raise_for_status()
        assert turn(base, some_tokens(3, 300), seed=1)[2] == 0
        assert metric(base, KEPT) == 0


def test_it_can_be_turned_off():
    with running(serve_command(*FLAGS, "--no-kv-survives-engine")) as (server, base):
        first = turn(base, some_tokens(3, 300), seed=1)
        kill_engine(server, base)
        assert turn(base, some_tokens(3, 300), seed=1) == (first[0], first[1], 0)


def restarted(file, *flags):
    return running(serve_command(*FLAGS, f"--kv-memory-file={file}", *flags))


def test_a_restarted_server_has_the_prefixes(tmp_path):
    file = Path(f"/dev/shm/octavo-test-{os.getpid()}")
    prompt = some_tokens(5, 600)
    try:
        with restarted(file) as (server, base):
            first = turn(base, prompt, seed=1)
            assert file.stat().st_mode & 0o777 == 0o600
            with pytest.raises(AssertionError, match="ended before it was ready"), restarted(file):
                pass
            server.terminate()
            assert server.wait(timeout=PATIENCE) == 0
        with restarted(file) as (server, base):
            again = turn(base, prompt + first[0], seed=1)
            assert again[2] == (len(prompt + first[0]) - 1) // BLOCK * BLOCK
            server.kill()
            assert eventually(lambda: not engines(base)), "the engine holds the file"
        with restarted(file) as (server, base):
            assert turn(base, prompt, seed=1) == (first[0], first[1], 592)
        with restarted(file, "--kv-cache-dtype=fp8") as (server, base):
            assert turn(base, prompt, seed=1)[2] == 0, "keys and values of another type"
        with restarted(file, "--num-gpu-blocks-override=200") as (server, base):
            assert turn(base, prompt, seed=1) == (first[0], first[1], 0)
        file.chmod(0o644)
        with pytest.raises(AssertionError, match="ended before it was ready"), restarted(file):
            pass
    finally:
        file.unlink(missing_ok=True)
    with pytest.raises(AssertionError, match="ended before it was ready"), restarted(tmp_path / "on-a-disk"):
        pass
