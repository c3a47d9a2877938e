"""`octavo route` with two `octavo serve`, through the official OpenAI client."""

import concurrent.futures
import contextlib
import json
import shlex
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import httpx
import openai
import pytest
from conftest import PATIENCE, eventually, fetch, free_port, http_client, metric, running
from held_link import HeldLink

SERVE = "build/release/octavo serve --port {port}"
ROUTE = "build/release/octavo route --port {port} --worker-urls "
MESSAGES = [{"role": "user", "content": "Tell me a short story."}]


@pytest.fixture(scope="module")
def replica():
    with running(SERVE) as (_, base):
        yield base


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def workers(base):
    return json.loads(fetch(base + "/workers"))["workers"]


@pytest.fixture(scope="module")
def replicas(replica):
    """Two replicas that stay."""
    with running(SERVE) as (_, second):
        yield replica, second


@pytest.fixture(scope="module")
def routed(replicas):
    with running(ROUTE + " ".join(replicas)) as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        yield base


def test_the_client_sees_no_difference(replica, routed):
    direct, through = client_of(replica), client_of(routed)
    model = through.models.list().data[0].id
    assert model == direct.models.list().data[0].id
    fields = dict(model=model, messages=MESSAGES, max_tokens=24, temperature=0)
    whole = through.chat.completions.create(**fields)
    assert whole.choices == direct.chat.completions.create(**fields).choices
    streamed = "".join(
        choice.delta.content or "" for chunk in through.chat.completions.create(**fields, stream=True) for choice in chunk.choices
    )
    assert streamed == whole.choices[0].message.content
    completion = dict(model=model, prompt="Once upon a time", max_tokens=8, temperature=0)
    assert through.completions.create(**completion).choices == direct.completions.create(**completion).choices


def test_errors_come_through(routed):
    through = client_of(routed)
    model = through.models.list().data[0].id
    with pytest.raises(openai.BadRequestError):
        through.chat.completions.create(model=model, messages=MESSAGES, temperature=-1)
    with pytest.raises(openai.NotFoundError):
        through.chat.completions.create(model="nobody's", messages=MESSAGES)


def test_a_conversation_stays_where_its_prefix_is(routed):
    through = client_of(routed)
    model = through.models.list().data[0].id

    def selections():
        lines = [line.rsplit(" ", 1) for line in fetch(routed + "/metrics").splitlines()]
        return {line[0]: float(line[1]) for line in lines if line[0].startswith("smg_worker_selection_total{")}

    messages = [{"role": "user", "content": "The same long beginning of a conversation, turn after turn."}]
    through.chat.completions.create(model=model, messages=messages, max_tokens=4)
    before = selections()
    for _ in range(4):
        messages.append({"role": "assistant", "content": "Yes."})
        messages.append({"role": "user", "content": "And?"})
        through.chat.completions.create(model=model, messages=messages, max_tokens=4)
    after = selections()
    assert sorted(after[worker] - before.get(worker, 0) for worker in after) in ([0, 4], [4])


def test_a_decision_explains_itself(routed):
    request = urllib.request.Request(
        routed + "/v1/completions",
        json.dumps({"prompt": "Hello", "max_tokens": 1}).encode(),
        {"Content-Type": "application/json", "X-Octavo-Explain": "1"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        told = json.loads(response.headers["X-Octavo-Explain"])
    assert told["policy"] == "kv_aware"
    assert told["chosen"] in told["total"]


@pytest.mark.parametrize("tokenizer", ["models/demo", "tests/data/text/tokenizers/gpt2"])
def test_a_tokenizer_that_is_not_the_replicas_is_noticed(replica, tokenizer):
    other = tokenizer != "models/demo"
    with running(ROUTE + f"{replica} --tokenizer-path {tokenizer}") as (_, base):
        assert eventually(lambda: all(w["models"] for w in workers(base)))
        client = client_of(base)
        model = client.models.list().data[0].id
        for i in range(10):
            client.completions.create(model=model, prompt=f"Once upon a time there were {i} little dragons", max_tokens=1)
        assert metric(base, "octavo_route_prompt_length_mismatches_total") == (8 if other else 0), "then it estimates"
        reported = metric(base, "octavo_route_reported_cached_tokens_total")
        assert other or metric(base, "octavo_route_predicted_cached_tokens_total") >= reported


def test_a_long_prompt_holds_nobody_up(replica):
    text = " ".join(f"word{i * 7919 % 10007} of a long text" for i in range(38_000))[:1_000_000]
    with running(ROUTE + f"{replica} --tokenizer-path models/demo --http-threads 1") as (_, base), httpx.Client(base_url=base, timeout=PATIENCE) as client:
        def answers_meanwhile():
            waits, done = [], threading.Event()

            def send():
                begun = time.monotonic()
                httpx.post(base + "/v1/completions", json={"prompt": text}, timeout=PATIENCE)
                waits.append(time.monotonic() - begun)
                done.set()

            sender, longest = threading.Thread(target=send), 0
            sender.start()
            while not done.is_set():
                begun = time.monotonic()
                assert client.get("/liveness").status_code == 200
                longest = max(longest, time.monotonic() - begun)
            sender.join()
            return longest < waits[0] / 4

        # Repeats, because a busy machine may stop the router for a moment. A loop that is held up is so each time.
        assert eventually(answers_meanwhile), "the only loop answers while the prompt's tokens are found"


def test_the_command_line_of_sglangs_router_starts(replicas):
    one, two = replicas
    command = (f"build/release/octavo route --port {{port}} --pd-disaggregation --prefill {one} 8998 "
               f"--prefill {one.replace('127.0.0.1', 'localhost')} none --decode {two} --policy cache_aware --eviction-interval 60 "
               f"--dp-aware --log-level warn --prometheus-port {free_port()} --worker-startup-timeout-secs 300 --worker-startup-check-interval 1 "
               "--queue-size 10 --request-id-headers x-trace --cors-allowed-origins https://a.example")
    with running(command) as (_, base):
        assert http_client.get(base + "/v1/loads").json()["workers"]
        answer = http_client.get(base + "/flush_cache").json()
        assert len(answer["workers"]) == 3, "each worker was asked"


def test_conversations_of_one_api_key_spread_and_stay(replicas):
    """Clients of vllm-router name their conversation in a header or a field."""
    with running(ROUTE + " ".join(replicas) + " --policy consistent_hash") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))

        def chosen(headers, **fields):
            answer = http_client.post(base + "/v1/completions", json={"prompt": "Hello", "max_tokens": 1, **fields},
                                      headers={"Authorization": "Bearer one", "X-Octavo-Explain": "1", **headers})
            return json.loads(answer.headers["X-Octavo-Explain"])["chosen"]

        assert len({chosen({"X-Session-ID": f"session {i}"}) for i in range(20)}) == 2
        assert len({chosen({}, user=f"user {i}") for i in range(20)}) == 2
        assert len({chosen({"X-Session-ID": "one"}, user=f"user {i}") for i in range(10)}) == 1


def test_flags_of_sglangs_router_for_other_parts_are_named(replicas):
    command = (f"build/release/octavo route --port {{port}} --worker-urls {replicas[0]} --policy manual --assignment-mode min_group "
               "--history-backend postgres --postgres-db-url postgres://x --tokenizer-cache-enable-l0 --prometheus-duration-buckets 1 2")
    with running(command) as (_, base):
        assert http_client.get(base + "/v1/loads").json()["workers"]
    for flags in (["--jwt-issuer", "https://a"], ["--control-plane-api-keys", "k:n:admin:s"], ["--assignment-mode", "most"]):
        done = subprocess.run(["build/release/octavo", "route", "--worker-urls", "http://a:1", *flags], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 2 and flags[0] in done.stderr, done.stderr


def test_a_client_that_leaves_ends_its_request_at_the_replica(replica):
    with running(ROUTE + replica) as (_, base):
        assert eventually(lambda: workers(base)[0]["models"])
        through = client_of(base)
        stream = through.chat.completions.create(model=workers(base)[0]["models"][0], messages=MESSAGES, max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        assert eventually(lambda: metric(replica, "vllm:num_requests_running") == 0)
        assert eventually(lambda: workers(base)[0]["load"] == 0)


def test_no_request_is_lost_when_a_replica_is_killed(replica):
    with running(SERVE) as (victim, second), running(ROUTE + f"{replica} {second} --policy round_robin") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        through = client_of(base)
        model = through.models.list().data[0].id
        fields = dict(model=model, prompt="Once upon a time", max_tokens=24, temperature=0)
        expected = through.completions.create(**fields).choices[0].text
        texts, failures = [], []

        def ask():
            for _ in range(6):
                try:
                    texts.append(through.completions.create(**fields).choices[0].text)
                except Exception as error:  # noqa: BLE001 the test is that there is none
                    failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(texts) >= 4)
        victim.kill()
        for thread in threads:
            thread.join()
        assert not failures
        assert texts == [expected] * 48


def test_wrong_configuration_is_one_line_that_names_the_field():
    for flags, field in (("--worker-urls ftp://x", "worker-urls"), ("--worker-urls http://a --policy best", "policy"),
                         ("--worker-urls http://a --kv-events 5557", "kv-events"),
                         ("--worker-urls http://a --kv-events none none", "kv-events")):
        done = subprocess.run(["build/release/octavo", "route", *flags.split()], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and field in done.stderr, done.stderr


def kv_replica(folder, name):
    """Returns the command of a replica that publishes its KV cache events, and the value of --kv-events for it."""
    events, replay = f"ipc://{folder}/{name}.events", f"ipc://{folder}/{name}.replay"
    config = {"enable_kv_cache_events": True, "endpoint": events, "replay_endpoint": replay}
    flags = f" --block-size 16 --server-dev-mode --kv-events-config {shlex.quote(json.dumps(config))}"
    return SERVE + flags, f"{events},{replay}"


def post(base, path, **body):
    headers = {"Content-Type": "application/json", "X-Octavo-Explain": "1"}
    request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers["X-Octavo-Explain"]


def explained(base, prompt):
    return json.loads(post(base, "/v1/completions", prompt=prompt, max_tokens=1, temperature=0))


def events_told(base):
    """Returns the number of events by worker. Each connection begins with one event that clears the worker's
    blocks."""
    name = "octavo_route_kv_events_total{worker="
    lines = [line for line in fetch(base + "/metrics").splitlines() if line.startswith(name)]
    return {line.split('"')[1]: int(line.rsplit(" ", 1)[1]) for line in lines}


def test_kv_aware_goes_where_the_prefix_is_learnt_from_events_alone(tmp_path):
    (first, first_events), (second, second_events) = kv_replica(tmp_path, "a"), kv_replica(tmp_path, "b")
    with running(first) as (_, one), running(second) as (_, two):
        homes = []
        for i in range(8):  # sent directly to the replicas, without the router
            home, prompt = (one, two)[i % 2], [10 + i] * 40 + [50 + i] * 40
            post(home, "/v1/completions", prompt=prompt, max_tokens=1)
            homes.append((home, prompt))
        flags = f"{one} {two} --policy kv_aware --kv-events {first_events} {second_events}"
        with running(ROUTE + flags) as (_, router):
            assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
            assert eventually(lambda: events_told(router) == {one: 21, two: 21})
            for home, prompt in homes:
                told = explained(router, prompt + [7] * 5)
                assert told["chosen"] == home and told["cached_tokens"] == {home: 80}

            # The router must not count blocks that a worker has removed.
            # Resets again until an event arrives, because a subscription takes effect with a delay.
            before = events_told(router)[two]
            assert eventually(lambda: post(two, "/reset_prefix_cache") or events_told(router)[two] > before)
            assert explained(router, homes[1][1])["cached_tokens"] == {}
            assert explained(router, homes[0][1])["cached_tokens"] == {one: 80}


def test_kv_aware_without_events_goes_where_the_prompt_was_sent(replicas):
    with running(ROUTE + f"{' '.join(replicas)} --policy kv_aware") as (_, router):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
        for i in range(6):
            prompt = f"{i}: " + "the same long beginning of a text, over and over. " * 8
            home = explained(router, prompt)["chosen"]
            told = explained(router, prompt + "And more.")
            assert told["chosen"] == home and list(told["cached_tokens"]) == [home]


def test_kv_aware_finds_text_in_what_replicas_tell(tmp_path):
    (first, first_events), (second, second_events) = kv_replica(tmp_path, "a"), kv_replica(tmp_path, "b")
    with running(first) as (_, one), running(second) as (_, two):
        text = "tell me of the sea, and of the ships that sail it. " * 4
        asked = [("/v1/chat/completions", {"messages": [{"role": "user", "content": f"{i}: {text}"}]}) for i in range(6)]
        asked += [("/v1/completions", {"prompt": f"Day {i}: {text}"}) for i in range(2)]
        blocks = {one: set(), two: set()}
        for i, (path, body) in enumerate(asked):
            home = (one, two)[i % 2]
            post(home, path, **body, max_tokens=1)
            ids = http_client.post(home + "/tokenize", json=body).json()["tokens"]
            blocks[home] |= {tuple(ids[:end]) for end in range(16, len(ids) + 1, 16)}
        flags = f"{one} {two} --policy kv_aware --tokenizer-path models/demo --kv-events {first_events} {second_events}"
        with running(ROUTE + flags) as (_, router):
            assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router)))
            assert eventually(lambda: events_told(router) == {url: len(held) + 1 for url, held in blocks.items()})
            for i, (path, body) in enumerate(asked):
                home = (one, two)[i % 2]
                told = json.loads(post(router, path, **body, max_tokens=1))
                assert told["chosen"] == home and told["cached_tokens"][home] >= 32


@contextlib.contextmanager
def killed_amid(streams):
    """A replica's url, and a function that kills the replica when it has sent the beginning of that many streams."""
    with running(SERVE) as (victim, url), HeldLink(urllib.parse.urlsplit(url).port) as link:
        def kill():
            assert eventually(lambda: link.held == streams)
            victim.kill()
            link.close()

        yield link.url, kill


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_streams_of_agents_go_on_at_another_replica(replica, path):
    model = client_of(replica).models.list().data[0].id

    def body(i):
        prompt = f"Story {i}, please."
        fields = dict(model=model, temperature=i % 2, seed=i, stream=True)
        if path == "/v1/messages":
            return fields | dict(messages=[{"role": "user", "content": prompt}], max_tokens=300)
        return fields | dict(input=prompt, max_output_tokens=300)

    def ask(base, i):
        events = []
        with httpx.stream("POST", base + path, json=body(i), timeout=120) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line.removeprefix("data: ")))
        return events

    def said(events):
        assert not any("token_ids" in event for event in events)
        kinds = [event["type"] for event in events]
        if path == "/v1/messages":
            assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
            assert [kinds.count(kind) for kind in ("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")] == [1] * 5
            (end,) = [event for event in events if event["type"] == "message_delta"]
            return "".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta"), end["usage"]["output_tokens"]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        whole = events[-1]["response"]
        assert {e["response"]["id"] for e in events if "response" in e} == {whole["id"]} and whole["created_at"] == events[0]["response"]["created_at"]
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        assert whole["output"][0]["content"][0]["text"] == text
        assert {e["item_id"] for e in events if "item_id" in e} == {whole["output"][0]["id"]}
        return text, whole["usage"]["output_tokens"]

    count = 8
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        expected = list(pool.map(lambda i: said(ask(replica, i)), range(count)))
    with killed_amid(count // 2) as (second, kill), running(ROUTE + f"{replica} {second} --policy round_robin --migration-limit 1") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            asked = [pool.submit(ask, base, i) for i in range(count)]
            kill()
            got = [answer.result() for answer in asked]
        assert [said(events) for events in got] == expected
        assert metric(base, 'octavo_route_migrations_total{outcome="continued"}') == count // 2
        if path == "/v1/responses":  # also the responses that the killed replica began
            for events in got:
                whole = events[-1]["response"]
                assert http_client.get(f"{base}{path}/{whole['id']}").json()["status"] == whole["status"]


@pytest.mark.parametrize("chat", [True, False])
def test_streams_of_a_killed_replica_go_on_at_another_one(replica, chat):
    model = client_of(replica).models.list().data[0].id
    prompts = [f"Story {i}, please." if chat else f"Once upon a time there were {i}" for i in range(12)]
    bodies = [
        dict(model=model, max_tokens=300, temperature=i % 2, seed=i, stop=["never said"], extra_body={"ignore_eos": True},
             stream=True, stream_options={"include_usage": True})
        | (dict(messages=[{"role": "user", "content": prompt}]) if chat else dict(prompt=prompt))
        for i, prompt in enumerate(prompts)
    ]

    def ask(base, body):
        create = client_of(base).chat.completions.create if chat else client_of(base).completions.create
        text, ids, usage, finish = "", set(), None, None
        for chunk in create(**body):
            ids.add(chunk.id)
            usage = chunk.usage or usage
            for choice in chunk.choices:
                assert "token_ids" not in (choice.model_extra or {})
                text += (choice.delta.content if chat else choice.text) or ""
                finish = choice.finish_reason or finish
        assert len(ids) == 1
        return text, finish, usage.prompt_tokens, usage.completion_tokens

    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        expected = list(pool.map(lambda body: ask(replica, body), bodies))
    count = len(bodies)
    with killed_amid(count // 2) as (second, kill), running(ROUTE + f"{replica} {second} --policy round_robin --migration-limit 1") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            asked = [pool.submit(ask, base, body) for body in bodies]
            kill()
            got = [answer.result() for answer in asked]
        assert got == expected
        assert metric(base, 'octavo_route_migrations_total{outcome="continued"}') == count // 2
        assert 'outcome="failed"' not in fetch(base + "/metrics")
