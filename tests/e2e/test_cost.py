"""Cost of requests: usage.octavo, headers, metrics by tenant, the access log, and sums of `octavo route`."""

import concurrent.futures
import json
import os
import re
import signal
from pathlib import Path

import pytest
from conftest import engine_of, eventually, fetch, http_client, metric, running, serve
from test_embeddings import folder_of
from test_kv_transfer import part

TIMES = {"compute_nanoseconds", "kv_block_nanoseconds", "encode_nanoseconds", "energy_microjoules"}
PRICES = {"currency": "EUR", "prices": {"prompt_tokens_computed": 0.25, "output_tokens": 2}}
KEYS = {"one": "sk-one", "two": "sk-two"}


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def parse(text):
    return {name: int(value) for name, value in (entry.split("=") for entry in text.split(", "))}


def post(base, path="/v1/completions", headers=None, **body):
    response = http_client.post(base + path, json={"model": "demo"} | body, headers=headers or {})
    assert response.status_code == 200, response.text
    return response


def tenants(base, name, prefix="octavo", headers=None):
    """Returns {tenant: value} of a counter."""
    page = http_client.get(base + "/metrics", headers=headers or {}).text
    return {tenant: float(value) for tenant, value in
            re.findall(rf'^{prefix}_tenant_{name}_total{{tenant="([^"]+)"[^}}]*}} (\S+)$', page, re.MULTILINE)}


def lines(file):
    return [json.loads(line) for line in Path(file).read_text().split("\n")[:-1]]  # without a line that is being written


@pytest.fixture
def base(tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nprices: {prompt_tokens_computed: 0.25, output_tokens: 2}\n")
    with serve("--device", "cpu", "--served-model-name", "demo", "--api-key", KEYS["one"], KEYS["two"],
               "--access-log", str(tmp_path / "access.jsonl"), "--prices", str(prices)) as base:
        yield base


def test_usage_has_the_cost_when_asked(base):
    one = bearer(KEYS["one"])
    plain = post(base, headers=one, prompt="Once upon a time", max_tokens=5)
    assert "octavo" not in plain.json()["usage"] and "X-Octavo-Cost" not in plain.headers
    reply = post(base, headers=one | {"X-Octavo-Cost": "1"}, prompt="There was a village by the sea", max_tokens=7, ignore_eos=True, include_cost=True)
    usage = reply.json()["usage"]
    cost = usage["octavo"]
    assert cost["output_tokens"] == 7 and cost["compute_nanoseconds"] > 0 and cost["kv_block_nanoseconds"] > 0
    assert cost["prompt_tokens_computed"] + cost.get("prompt_tokens_cached", 0) == usage["prompt_tokens"]
    assert cost["money"] == pytest.approx(0.25 * cost["prompt_tokens_computed"] + 2 * 7) and cost["currency"] == "EUR"
    header = parse(reply.headers["X-Octavo-Cost"])
    assert header == {name: value for name, value in cost.items() if name not in ("money", "currency")}
    several = post(base, headers=one, prompt=["a b c", "d e f"], n=2, max_tokens=4, ignore_eos=True, include_cost=True).json()["usage"]["octavo"]
    assert several["output_tokens"] == 16
    beams = post(base, headers=one, prompt="A", n=3, use_beam_search=True, max_tokens=4, ignore_eos=True, temperature=0, include_cost=True)
    assert beams.json()["usage"]["octavo"]["output_tokens"] >= 10  # one token for each beam and step


def test_every_protocol_reports_it(base):
    one = bearer(KEYS["one"])
    messages = [{"role": "user", "content": "Hello"}]
    chat = post(base, "/v1/chat/completions", headers=one, messages=messages, max_tokens=4, include_cost=True).json()
    response = post(base, "/v1/responses", headers=one, input="Hello", max_output_tokens=16, include_cost=True).json()
    message = post(base, "/v1/messages", headers=one, messages=messages, max_tokens=4, include_cost=True).json()
    for reply in chat, response, message:
        assert reply["usage"]["octavo"]["output_tokens"] > 0
    stream = post(base, headers=one | {"X-Octavo-Cost": "1"}, prompt="Once", max_tokens=6, ignore_eos=True, stream=True,
                  stream_options={"include_cost": True}).text
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    assert chunks[-1]["usage"]["octavo"]["output_tokens"] == 6
    last = stream.rstrip().splitlines()[-1]
    assert last.startswith(": X-Octavo-Cost: ") and parse(last.removeprefix(": X-Octavo-Cost: "))["output_tokens"] == 6


def test_tenants_shares_sum_to_the_engines_time(base, tmp_path):
    jobs = [(name, i) for i in range(30) for name in KEYS]

    def send(job):
        name, number = job
        fields = [{}, {"n": 2, "seed": 1}, {"stream": True}, {"stop": ["e"]}, {"logprobs": 2}][number % 5]
        post(base, headers=bearer(KEYS[name]), prompt=f"Number {number} of a list of stories about {name}:", max_tokens=4 + number % 30, **fields)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(send, jobs))
    one = bearer(KEYS["one"])
    finished = lambda: sum(tenants(base, "finished_requests", headers=one).values())
    assert eventually(lambda: len(lines(tmp_path / "access.jsonl")) == finished() == len(jobs))

    shares = tenants(base, "compute_seconds", headers=one)
    assert len(shares) == 2 and all(re.fullmatch(r"tenant-[0-9a-f]{12}", tenant) for tenant in shares)
    page = http_client.get(base + "/metrics", headers=one).text
    # A step of which all answers end early, at a stop string, belongs to no tenant.
    unassigned = metric_with_key(base, "octavo_engine_unassigned_seconds_total")
    assert sum(shares.values()) + unassigned == pytest.approx(metric_with_key(base, "octavo_engine_compute_seconds_total"), rel=0.01)
    assert "sk-one" not in page and "sk-two" not in page

    log = lines(tmp_path / "access.jsonl")
    for name in "output_tokens", "prompt_tokens_computed", "prompt_tokens_cached":
        by_tenant = tenants(base, name, headers=one)
        for tenant in shares:
            assert sum(entry["cost"].get(name, 0) for entry in log if entry["tenant"] == tenant) == by_tenant[tenant], name
    assert sum(tenants(base, "output_tokens", headers=one).values()) == metric_with_key(base, "vllm:generation_tokens_total")
    cached = sum(tenants(base, "prompt_tokens_cached", headers=one).values())
    computed = sum(tenants(base, "prompt_tokens_computed", headers=one).values())
    assert cached + computed == metric_with_key(base, "vllm:prompt_tokens_total")
    assert sum(tenants(base, "money", headers=one).values()) == pytest.approx(sum(entry["cost"]["money"] for entry in log))
    assert "sk-" not in (tmp_path / "access.jsonl").read_text()
    assert all(entry["path"].startswith("/v1/") and entry["seconds"] >= 0 for entry in log)


def metric_with_key(base, name):
    page = http_client.get(base + "/metrics", headers=bearer(KEYS["one"])).text
    return sum(float(value) for value in re.findall(rf"^{name}{{[^}}]*}} (\S+)$", page, re.MULTILINE))


def test_two_runs_of_a_load_agree_on_all_integers_but_times(tmp_path):
    def run():
        with serve("--device", "cpu", "--served-model-name", "demo") as base:
            costs = []
            for i in range(20):
                fields = {"n": 1 + i % 3, "seed": i, "use_beam_search": i % 5 == 4, "temperature": 0 if i % 5 == 4 else 1}
                reply = post(base, prompt=f"A story with the number {i // 2}", max_tokens=5 + i, include_cost=True, **fields)
                costs.append({name: value for name, value in reply.json()["usage"]["octavo"].items() if name not in TIMES})
            return costs

    assert run() == run()


@pytest.mark.parametrize("keeps_blocks", [False, True])
def test_a_killed_engine_costs_the_prompt_once(tmp_path, keeps_blocks):
    log = tmp_path / "access.jsonl"
    flag = "--kv-survives-engine" if keeps_blocks else "--no-kv-survives-engine"
    with running(f"build/release/octavo serve --port {{port}} --device cpu --served-model-name demo --access-log {log} {flag}") as (process, base):
        body = {"model": "demo", "prompt": "Once upon a time in a village", "max_tokens": 1500, "ignore_eos": True, "stream": True}

        def recomputed():
            """Returns the number of tokens that the new engine computes again."""
            known = len(lines(log))
            assert eventually(lambda: engine_of(process))
            engine = engine_of(process)  # found before the stream, which may not end meanwhile
            with http_client.stream("POST", base + "/v1/completions", json=body) as response:
                rows = response.iter_lines()
                for _ in range(20):
                    next(rows)
                os.kill(engine, signal.SIGKILL)
                assert any("[DONE]" in row for row in rows)
            assert eventually(lambda: len(lines(log)) == known + 1)
            entry = lines(log)[-1]
            cost = entry["cost"]
            assert cost["output_tokens"] == 1500
            assert cost["prompt_tokens_computed"] + cost.get("prompt_tokens_cached", 0) == entry["prompt_tokens"]
            return cost.get("tokens_recomputed", 0)

        if keeps_blocks:
            assert recomputed() <= 16, "those of the block that was not full"
        else:  # Repeats, because the engine may send all tokens before a busy machine kills it.
            assert eventually(lambda: recomputed() > 16), "those of 20 events at least"


def test_an_embedding_has_a_cost(tmp_path):
    with serve("--device", "cpu", "--model", str(folder_of("bert", tmp_path)), "--served-model-name", "demo") as base:
        reply = post(base, "/v1/embeddings", headers={"X-Octavo-Cost": "1"}, input=["a b", "c"])
        cost = parse(reply.headers["X-Octavo-Cost"])
        assert cost["prompt_tokens_computed"] == reply.json()["usage"]["prompt_tokens"] and cost["compute_nanoseconds"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_the_router_sums_prefill_and_decode_workers_and_keeps_tenants(tmp_path, stream):
    (tmp_path / "tenants.yaml").write_text("tenants:\n- {name: acme, keys: [k1]}\n- {name: bolt, keys: [k2]}\n")
    (tmp_path / "prices.yaml").write_text("currency: EUR\nprices: {output_tokens: 2}\n")
    flags = "--client-header X-Octavo-Tenant"
    with part("kv_producer", flags=flags.split()) as prefill, part("kv_consumer", flags=flags.split()) as decode:
        command = (f"build/release/octavo route --port {{port}} --pd-disaggregation --prefill {prefill} --decode {decode} --tenants {tmp_path}/tenants.yaml "
                   f"--prices {tmp_path}/prices.yaml --access-log {tmp_path}/access.jsonl --api-key operator")
        with running(command, ready="/readiness") as (_, base):
            operator = bearer("operator")

            def are_ready():
                workers = http_client.get(base + "/workers", headers=operator).json()["workers"]
                return all(w["is_healthy"] and w["models"] for w in workers)

            assert eventually(are_ready), "a request before the prefill worker is ready goes to the decode worker alone"
            told = []
            for i in range(6):
                # A tenant cannot name another one.
                headers = bearer("k1" if i % 3 else "k2") | {"X-Octavo-Tenant": "evil"} | ({"X-Octavo-Cost": "1"} if i == 5 else {})
                reply = post(base, headers=headers, prompt=f"Number {i}: " + "a long story about a village by the sea " * 5,
                             max_tokens=6, ignore_eos=True, stream=stream)
                told.append("X-Octavo-Cost" in reply.headers or ": X-Octavo-Cost: " in reply.text)
            assert told == [False] * 5 + [True]
            text = reply.headers.get("X-Octavo-Cost") or reply.text.rstrip().splitlines()[-1].removeprefix(": X-Octavo-Cost: ")
            cost = parse(text)
            # The prefill worker samples one token, the decode worker all of them.
            assert cost["output_tokens"] == 7
            assert cost["prompt_tokens_from_peer"] > 0 and cost["kv_bytes_loaded"] > 0
            # The router writes the line after the answer.
            assert eventually(lambda: len(lines(tmp_path / "access.jsonl")) == 6)
            for name in "output_tokens", "prompt_tokens_computed", "prompt_tokens_from_peer", "kv_bytes_loaded", "compute_seconds":
                routed = tenants(base, name, "octavo_route", operator)
                assert set(routed) == {"acme", "bolt"}
                workers = [tenants(worker, name) for worker in (prefill, decode)]
                for tenant, value in routed.items():
                    assert sum(worker.get(tenant, 0) for worker in workers) == pytest.approx(value, rel=1e-6), name
            assert tenants(base, "money", "octavo_route", operator) == {"acme": 2 * 7 * 4, "bolt": 2 * 7 * 2}
        entries = lines(tmp_path / "access.jsonl")
        assert [entry["tenant"] for entry in entries] == ["bolt", "acme", "acme", "bolt", "acme", "acme"]
        assert all(entry["status"] == 200 for entry in entries)


def test_the_router_counts_clients_that_leave_and_streams_without_comments():
    with serve("--device", "cpu", "--served-model-name", "demo") as worker:
        with running(f"build/release/octavo route --port {{port}} --worker-urls {worker}", ready="/readiness") as (_, base):
            for number in range(3):
                body = {"model": "demo", "prompt": f"Number {number}:", "max_tokens": 400, "ignore_eos": True, "stream": True}
                with http_client.stream("POST", base + "/v1/completions", json=body) as response:
                    next(response.iter_lines())
            reply = post(base, "/api/chat", messages=[{"role": "user", "content": "Hello"}], options={"num_predict": 7})
            assert json.loads(reply.text.splitlines()[-1])["done"] and "Cost" not in reply.text
            post(base, prompt="Once", max_tokens=5, ignore_eos=True)
            assert eventually(lambda: tenants(base, "finished_requests", "octavo_route") == {"anonymous": 5})
            assert tenants(base, "output_tokens", "octavo_route")["anonymous"] >= 3 + 1 + 5
            for name in "output_tokens", "prompt_tokens_computed", "prompt_tokens_cached", "kv_block_seconds", "compute_seconds":
                assert tenants(base, name, "octavo_route") == pytest.approx(tenants(worker, name), rel=1e-6), name


def test_a_cost_is_read_once():
    with serve("--device", "cpu", "--served-model-name", "demo") as base:
        post(base, headers={"X-Octavo-Cost": "1", "X-Octavo-Cost-Id": "me"}, prompt="Once", max_tokens=4, ignore_eos=True)
        reply = http_client.get(base + "/octavo/cost/me")
        assert reply.json()["cost"]["output_tokens"] == 4 == parse(reply.headers["X-Octavo-Cost"])["output_tokens"]
        assert http_client.get(base + "/octavo/cost/me").json() == {"cost": None}
        assert http_client.get(base + "/octavo/cost/another").json() == {"cost": None}
