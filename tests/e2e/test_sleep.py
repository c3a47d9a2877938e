"""/sleep, /wake_up and /is_sleeping, enabled by the development flag."""

import threading

import openai
import pytest
from conftest import eventually, fetch, http_client, serve
from test_engine_process import engines

FLAGS = ["--served-model-name=demo", "--server-dev-mode", "--enable-sleep-mode", "--enable-prompt-tokens-details"]
PROMPT = " ".join(f"word {i} of a long prompt about rivers and the sea;" for i in range(100))


def ask(base, **changes):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    body = {"model": "demo", "prompt": PROMPT, "max_tokens": 16, "temperature": 0, "logprobs": 2}
    return client.completions.create(**(body | changes))


def sleeps(base):
    return http_client.get(base + "/is_sleeping").json() == {"is_sleeping": True}


def state(base):
    lines = [line for line in fetch(base + "/metrics").splitlines() if line.startswith("vllm:engine_sleep_state{")]
    (on,) = [line for line in lines if line.endswith(" 1")]
    return on.split('sleep_state="')[1].split('"')[0]


def resident_bytes(pid):
    """Returns the bytes of anonymous and of shared memory; the KV cache is in the latter."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(("Anonymous:", "Pss_Shmem:")))


@pytest.fixture(scope="module")
def base():
    with serve(*FLAGS) as base:
        yield base


@pytest.fixture(autouse=True)
def awake(base):
    """Wakes the server even if a test fails."""
    yield
    http_client.post(base + "/wake_up")


@pytest.mark.parametrize("level, name", [(1, "weights_offloaded"), (2, "discard_all")])
def test_it_sleeps_refuses_and_wakes_to_the_same_answers(base, level, name):
    before = ask(base).choices[0]
    (engine,) = engines(base)
    awake = resident_bytes(engine)
    assert state(base) == "awake" and not sleeps(base)
    assert http_client.post(f"{base}/sleep?level={level}").status_code == 200
    assert sleeps(base) and state(base) == name
    if level == 1:
        assert eventually(lambda: resident_bytes(engine) < awake)
    else:
        assert eventually(lambda: engines(base) == [])
    with pytest.raises(openai.InternalServerError, match="asleep") as refused:
        ask(base)
    assert refused.value.status_code == 503
    assert http_client.post(f"{base}/sleep?level=1").status_code == 400
    assert http_client.get(base + "/health").status_code == 200
    assert http_client.post(base + "/wake_up").status_code == 200
    assert not sleeps(base) and state(base) == "awake"
    again = ask(base)
    after, cached = again.choices[0], again.usage.prompt_tokens_details
    assert (after.text, after.logprobs) == (before.text, before.logprobs)
    assert cached is None or cached.cached_tokens == 0, "the cache was forgotten"


def test_what_runs_is_finished_first(base):
    texts = []
    stream = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).completions.create(
        model="demo", prompt="Once", max_tokens=600, temperature=0, stream=True, extra_body={"ignore_eos": True})
    texts.append(next(iter(stream)).choices[0].text)
    answers = []
    falling = threading.Thread(target=lambda: answers.append(http_client.post(base + "/sleep?level=2")))
    falling.start()
    count = 1 + sum(1 for _ in stream)
    falling.join()
    assert answers[0].status_code == 200 and count > 10
    assert sleeps(base)
    assert http_client.post(base + "/wake_up").status_code == 200
    ask(base)


def test_awake_is_what_it_was_when_woken_twice(base):
    assert http_client.post(base + "/wake_up").status_code == 200
    ask(base)


@pytest.mark.parametrize("query", ["level=0", "level=3", "level=x", "level=1&mode=abort"])
def test_wrong_levels_and_modes_are_refused(base, query):
    answer = http_client.post(f"{base}/sleep?{query}")
    assert answer.status_code == 400
    assert query.split("&")[-1].split("=")[0] in answer.text
    assert http_client.post(f"{base}/wake_up?tags=weights").status_code == 400


def test_it_needs_its_switches():
    with serve("--server-dev-mode") as base:
        assert "--enable-sleep-mode" in http_client.post(base + "/sleep").text
    with serve("--enable-sleep-mode") as base:
        assert http_client.post(base + "/sleep").status_code == 404


def test_ranks_sleep_together():
    with serve(*FLAGS, "--device", "cpu", "--tensor-parallel-size", "2") as base:
        before = ask(base).choices[0]
        awake = {pid: resident_bytes(pid) for pid in engines(base)}
        assert len(awake) == 2
        assert http_client.post(f"{base}/sleep?level=1").status_code == 200
        assert sleeps(base)
        assert eventually(lambda: all(resident_bytes(pid) < bytes for pid, bytes in awake.items()))
        assert http_client.post(base + "/wake_up").status_code == 200
        after = ask(base).choices[0]
        assert (after.text, after.logprobs.token_logprobs) == (before.text, before.logprobs.token_logprobs)
        assert set(engines(base)) == set(awake)
