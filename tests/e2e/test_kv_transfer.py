"""Prefill on one server and decode on another, with the requests of llm-d's sidecar and of `octavo route`."""

import contextlib
import json
import os
import shlex
import signal
from pathlib import Path

import httpx
import openai
import pytest
from conftest import PATIENCE, eventually, fetch, metric, running, serve

COMMAND = "build/release/octavo serve --port {port} "
NAME = "--served-model-name=demo"
WORDS = [f"word {i} of a long prompt about rivers, mountains and the sea;" for i in range(40)]
PROMPT = "Tell me more. " + " ".join(WORDS)
ASK = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None,
       "remote_host": None, "remote_port": None}


def config(role, **extra):
    return "--kv-transfer-config=" + json.dumps({
        "kv_connector": "NixlConnector", "kv_role": role,
        "kv_connector_extra_config": {"side_channel_port": 0} | extra})


@contextlib.contextmanager
def part(role, flags=(), **extra):
    """Runs a server of a pair, and yields it once its engine reports metrics."""
    with serve(NAME, config(role, **extra), *flags) as base:
        assert eventually(lambda: "vllm:kv_transfer_held_blocks" in fetch(base + "/metrics"))
        yield base


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def failures(base):
    return metric(base, "vllm:nixl_num_failed_transfers_total")


def moved(base):
    return metric(base, "vllm:nixl_bytes_transferred_sum")


@pytest.fixture(scope="module")
def plain():
    with serve(NAME) as base:
        yield base


@pytest.fixture(scope="module")
def pair():
    with part("kv_producer") as producer, part("kv_consumer") as consumer:
        yield producer, consumer


def two_legs(pair, ask, body):
    """Does what the sidecar does: sends a prefill request with one token, then a decode request with the parameters
    of its response."""
    producer, consumer = pair
    first = ask(client_of(producer))(**(body | {"max_tokens": 1}), extra_body={"kv_transfer_params": ASK})
    params = first.model_extra["kv_transfer_params"]
    assert params["do_remote_prefill"] is True and params["do_remote_decode"] is False
    assert params["tp_size"] == 1 and len(params["remote_block_ids"][0]) > 10
    return ask(client_of(consumer))(**body, extra_body={"kv_transfer_params": params})


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_completion_in_two_legs_is_that_of_one_server(plain, pair, temperature):
    body = {"model": "demo", "prompt": f"{temperature}: {PROMPT}", "max_tokens": 24, "temperature": temperature,
            "seed": 7, "logprobs": 2}
    before = moved(pair[1]), failures(pair[1])
    ask = lambda client: client.completions.create
    got = two_legs(pair, ask, body)
    alone = ask(client_of(plain))(**body)
    assert got.choices[0].text == alone.choices[0].text
    assert got.choices[0].logprobs == alone.choices[0].logprobs
    assert eventually(lambda: moved(pair[1]) > before[0])
    assert failures(pair[1]) == before[1]
    assert eventually(lambda: metric(pair[0], "vllm:kv_transfer_held_blocks") == 0)
    assert metric(pair[0], "vllm:nixl_num_kv_expired_reqs_total") == 0
    text = fetch(pair[1] + "/metrics")
    assert 'source="external_kv_transfer"' in text


def test_simulated_executors_hand_over_as_well():
    """Tests the router and the sidecar with simulated engines, whose blocks contain no tensors."""
    simulated = "--executor=simulated"
    with (serve(NAME, simulated, config("kv_producer")) as producer, serve(NAME, simulated, config("kv_consumer")) as consumer,
          running(f"build/release/octavo route --port {{port}} --pd-disaggregation --prefill {producer} --decode {consumer}") as (_, routed),
          running(f"build/release/octavo sidecar --port {{port}} --model-server-port {consumer.rsplit(':', 1)[1]} "
                  "--kv-connector nixlv2") as (_, aside)):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(routed)))
        for count, base in enumerate((routed, aside), 1):
            done = httpx.post(base + "/v1/completions", headers={"x-prefiller-host-port": producer.removeprefix("http://")},
                              json={"model": "demo", "prompt": f"{count}: {PROMPT}", "max_tokens": 4}, timeout=PATIENCE)
            assert done.status_code == 200, done.text
            assert eventually(lambda: metric(consumer, "vllm:nixl_bytes_transferred_count") == count)
        assert eventually(lambda: metric(consumer, "vllm:external_prefix_cache_hits_total") > 100)
        assert failures(consumer) == 0
        assert eventually(lambda: metric(producer, "vllm:kv_transfer_held_blocks") == 0)


TENSOR, STAGES = ("--device=cpu", "--tensor-parallel-size=2"), ("--device=cpu", "--pipeline-parallel-size=2")
LARGER = ("--block-size=48",)


@pytest.mark.parametrize(("prefill", "decode"), [(TENSOR, ()), ((), TENSOR), (STAGES, ()), ((), STAGES), (LARGER, ()), ((), LARGER), (TENSOR, LARGER)])
def test_engines_of_different_layouts_exchange_blocks(prefill, decode):
    """Between one rank and two ranks, each with half of the heads or of the layers, and between blocks of different
    sizes."""
    body = {"model": "demo", "prompt": PROMPT, "max_tokens": 24, "temperature": 0, "logprobs": 2}
    ask = lambda client: client.completions.create
    with serve(NAME, "--dtype=float32") as base:
        alone = ask(client_of(base))(**body).choices[0]
    with (serve(NAME, "--dtype=float32", config("kv_producer"), *prefill) as producer,
          serve(NAME, "--dtype=float32", config("kv_consumer"), *decode) as consumer):
        got = two_legs((producer, consumer), ask, body).choices[0]
        assert eventually(lambda: moved(consumer) > 0)
        assert failures(consumer) == 0
        assert eventually(lambda: metric(producer, "vllm:kv_transfer_held_blocks") == 0)
    assert got.text == alone.text
    if TENSOR in (prefill, decode):  # ranks add numbers in another order
        pairs = zip(got.logprobs.token_logprobs, alone.logprobs.token_logprobs)
        assert max(abs(a - b) for a, b in pairs) < 1e-3
    else:
        assert got.logprobs == alone.logprobs


def test_a_chat_in_two_legs_streams_as_that_of_one_server(plain, pair):
    body = {"model": "demo", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 24, "temperature": 0}
    before = metric(pair[1], "vllm:external_prefix_cache_hits_total")
    producer, consumer = pair
    chunks = list(client_of(producer).chat.completions.create(
        **(body | {"max_tokens": 1}), stream=True, extra_body={"kv_transfer_params": ASK}))
    (params,) = [c.model_extra["kv_transfer_params"] for c in chunks if "kv_transfer_params" in (c.model_extra or {})]
    text = lambda stream: "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    got = client_of(consumer).chat.completions.create(
        **body, stream=True, extra_body={"kv_transfer_params": params})
    assert text(got) == text(client_of(plain).chat.completions.create(**body, stream=True))
    assert eventually(lambda: metric(consumer, "vllm:external_prefix_cache_hits_total") > before)


def test_the_same_lease_cannot_be_used_twice_and_nobody_notices(plain, pair):
    producer, consumer = pair
    body = {"model": "demo", "prompt": "once more: " + PROMPT, "max_tokens": 8, "temperature": 0}
    first = client_of(producer).completions.create(
        **(body | {"max_tokens": 1}), extra_body={"kv_transfer_params": ASK})
    params = {"extra_body": {"kv_transfer_params": first.model_extra["kv_transfer_params"]}}
    one = client_of(consumer).completions.create(**body, **params)
    two = client_of(consumer).completions.create(**body, **params)
    alone = client_of(plain).completions.create(**body)
    assert one.choices[0].text == two.choices[0].text == alone.choices[0].text


def test_a_prompt_below_one_block_of_the_consumer_returns_the_lease(plain):
    body = {"model": "demo", "prompt": "Once upon a time there was a dog. " * 3, "max_tokens": 4, "temperature": 0}
    with part("kv_producer", kv_lease_duration=600) as producer:
        with serve(NAME, "--block-size=128", config("kv_consumer")) as consumer:
            first = client_of(producer).completions.create(
                **(body | {"max_tokens": 1}), extra_body={"kv_transfer_params": ASK})
            params = {"kv_transfer_params": first.model_extra["kv_transfer_params"]}
            assert eventually(lambda: metric(producer, "vllm:kv_transfer_held_blocks") > 0)
            got = client_of(consumer).completions.create(**body, extra_body=params)
            assert got.choices[0].text == client_of(plain).completions.create(**body).choices[0].text
            assert eventually(lambda: metric(producer, "vllm:kv_transfer_held_blocks") == 0)


NO_UCX = pytest.mark.skipif(not Path("build/release/liboctavo_ucx.so").exists(), reason="no UCX here")


@pytest.mark.parametrize("transport", ["tcp", pytest.param("ucx", marks=NO_UCX)])
def test_another_way_than_shared_memory(plain, transport):
    with part("kv_both") as producer, part("kv_both", transport=transport) as consumer:
        body = {"model": "demo", "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
        ask = lambda client: client.completions.create
        got = two_legs((producer, consumer), ask, body)
        assert got.choices[0].text == ask(client_of(plain))(**body).choices[0].text
        assert eventually(lambda: moved(consumer) > 0)


def test_a_killed_prefill_server_costs_no_answer(plain):
    with contextlib.ExitStack() as stack:
        process, producer = stack.enter_context(running(shlex.join([*COMMAND.split(), NAME, config("kv_producer")])))
        consumer = stack.enter_context(part("kv_consumer"))
        body = {"model": "demo", "prompt": PROMPT, "max_tokens": 24, "temperature": 0}
        first = client_of(producer).completions.create(
            **(body | {"max_tokens": 1}), extra_body={"kv_transfer_params": ASK})
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        got = client_of(consumer).completions.create(
            **body, extra_body={"kv_transfer_params": first.model_extra["kv_transfer_params"]})
        assert got.choices[0].text == client_of(plain).completions.create(**body).choices[0].text


def test_without_a_connector_the_params_change_nothing(plain):
    body = {"model": "demo", "prompt": PROMPT, "max_tokens": 1, "temperature": 0}
    reply = client_of(plain).completions.create(**body, extra_body={"kv_transfer_params": ASK})
    assert reply.model_extra["kv_transfer_params"] is None


def test_errors_name_the_field(pair):
    def error(params, prompt="hello"):
        with pytest.raises(openai.BadRequestError) as caught:
            client_of(pair[1]).completions.create(
                model="demo", prompt=prompt, extra_body={"kv_transfer_params": params})
        return caught.value.body["param"]

    assert error({"remote_port": "no"}) == "kv_transfer_params.remote_port"
    assert error({"remote_block_ids": "no"}) == "kv_transfer_params.remote_block_ids"
    assert error(ASK, ["one", "two"]) == "kv_transfer_params"


def workers(base):
    return json.loads(fetch(base + "/workers"))["workers"]


def test_a_router_drives_both_legs(plain, pair):
    producer, consumer = pair
    route = f"build/release/octavo route --port {{port}} --pd-disaggregation --prefill {producer} --decode {consumer}"
    with running(route) as (_, router):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
        assert {w["worker_type"] for w in workers(router)} == {"prefill", "decode"}
        through, alone = client_of(router), client_of(plain)
        before = metric(consumer, "vllm:external_prefix_cache_hits_total")
        body = {"model": "demo", "messages": [{"role": "user", "content": "By a router. " + PROMPT}],
                "max_completion_tokens": 24, "temperature": 0}
        whole = through.chat.completions.create(**body)
        assert whole.choices == alone.chat.completions.create(**body).choices
        streamed = "".join(c.choices[0].delta.content or "" for c in through.chat.completions.create(
            **body, stream=True, stream_options={"include_usage": True}) if c.choices)
        assert streamed == whole.choices[0].message.content
        assert eventually(lambda: metric(consumer, "vllm:external_prefix_cache_hits_total") > before)
        assert eventually(lambda: 'octavo_route_prefills_total{outcome="handed_over"} 2' in fetch(router + "/metrics"))
        assert 'outcome="failed"' not in fetch(router + "/metrics")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_a_router_splits_agents_protocols(plain, pair, path):
    producer, consumer = pair
    route = f"build/release/octavo route --port {{port}} --pd-disaggregation --enforce-disagg --prefill {producer} --decode {consumer}"
    text = f"By {path}. " + PROMPT
    body = {"model": "demo", "temperature": 0} | (
        {"messages": [{"role": "user", "content": text}], "max_tokens": 8} if path == "/v1/messages"
        else {"input": text, "max_output_tokens": 16})
    said = "content" if path == "/v1/messages" else "output"
    with running(route) as (_, router):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
        before = metric(consumer, "vllm:external_prefix_cache_hits_total")
        whole, alone = (httpx.post(base + path, json=body, timeout=PATIENCE).json()[said] for base in (router, plain))
        for item in whole + alone:
            item.pop("id", None)
        assert whole == alone
        assert eventually(lambda: metric(consumer, "vllm:external_prefix_cache_hits_total") > before)
        assert eventually(lambda: 'octavo_route_prefills_total{outcome="handed_over"} 1' in fetch(router + "/metrics"))


def test_a_router_whose_prefill_server_is_gone_answers(plain):
    with contextlib.ExitStack() as stack:
        process, producer = stack.enter_context(running(shlex.join([*COMMAND.split(), NAME, config("kv_producer")])))
        consumer = stack.enter_context(part("kv_consumer"))
        _, router = stack.enter_context(running(
            f"build/release/octavo route --port {{port}} --pd-disaggregation --prefill {producer} --decode {consumer}"))
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        body = {"model": "demo", "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
        for _ in range(3):
            got = client_of(router).completions.create(**body)
            assert got.choices[0].text == client_of(plain).completions.create(**body).choices[0].text


def test_a_sidecar_drives_both_legs(plain, pair):
    producer, consumer = pair
    host_port = producer.removeprefix("http://")
    command = (f"build/release/octavo sidecar --port {{port}} --host 127.0.0.1 --model-server-port {consumer.rsplit(':', 1)[1]} "
               f"--enable-ssrf-protection --allowed-prefillers {host_port}")
    with running(command) as (_, sidecar):
        through, alone = client_of(sidecar), client_of(plain)
        named = {"extra_headers": {"x-prefiller-host-port": host_port}}
        hits, bytes_before = metric(consumer, "vllm:external_prefix_cache_hits_total"), moved(consumer)
        body = {"model": "demo", "prompt": "By a sidecar. " + PROMPT, "max_tokens": 24, "temperature": 0}
        assert through.completions.create(**body, **named).choices == alone.completions.create(**body).choices
        assert eventually(lambda: metric(consumer, "vllm:external_prefix_cache_hits_total") > hits)
        assert eventually(lambda: moved(consumer) > bytes_before)
        chat = {"model": "demo", "messages": [{"role": "user", "content": "By a sidecar, too. " + PROMPT}],
                "max_tokens": 24, "temperature": 0, "stream": True}
        text = lambda stream: "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
        assert text(through.chat.completions.create(**chat, **named)) == text(alone.chat.completions.create(**chat))
        assert text(through.chat.completions.create(**chat)) == text(alone.chat.completions.create(**chat))
        with pytest.raises(openai.PermissionDeniedError):
            through.completions.create(**body, extra_headers={"x-prefiller-host-port": "169.254.169.254:80"})


def test_a_sidecar_whose_prefiller_is_gone_answers(plain, pair):
    _, consumer = pair
    with running(f"build/release/octavo sidecar --port {{port}} --model-server-port {consumer.rsplit(':', 1)[1]}") as (_, sidecar):
        body = {"model": "demo", "prompt": "Nobody there. " + PROMPT, "max_tokens": 12, "temperature": 0}
        got = client_of(sidecar).completions.create(**body, extra_headers={"x-prefiller-host-port": "127.0.0.1:1"})
        assert got.choices == client_of(plain).completions.create(**body).choices
