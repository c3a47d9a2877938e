"""`octavo plan live`: the number of servers follows the load, and no request fails."""

import contextlib
import json
import os
import shlex
import subprocess
import threading

import openai
import pytest
from conftest import PATIENCE, eventually, fetch, free_port, metric, running

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")


def workers(router):
    return json.loads(fetch(router + "/workers"))["workers"]


@contextlib.contextmanager
def empty_router(*flags):
    port = free_port()
    process = subprocess.Popen([OCTAVO, "route", "--port", str(port), "--policy", "least_loaded", *flags])
    base = f"http://127.0.0.1:{port}"
    try:
        assert eventually(lambda: answers(base + "/liveness") is not None, PATIENCE)
        yield base
    finally:
        process.kill()
        process.wait()


def answers(url):
    try:
        return fetch(url)
    except OSError:
        return None


class Client(threading.Thread):
    """Sends requests until it is stopped. Every second request is a stream."""

    def __init__(self, base, tokens, pause):
        super().__init__()
        self.tokens = tokens
        self.client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0, timeout=120)
        self.pause = pause
        self.enough = threading.Event()
        self.answers, self.failures = 0, []

    def ask(self, stream):
        fields = dict(model="demo", prompt="Once upon a time", max_tokens=self.tokens, extra_body={"ignore_eos": True})
        if not stream:
            return self.client.completions.create(**fields).usage
        chunks = list(self.client.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
        return chunks[-1].usage

    def run(self):
        while not self.enough.wait(self.pause):
            try:
                usage = self.ask(stream=self.answers % 2 == 1)
                assert usage and usage.completion_tokens == self.tokens
                self.answers += 1
            except Exception as failure:
                self.failures.append(repr(failure))


def load(router, clients, tokens, pause, until):
    """Runs `clients` clients until the condition is true, each of which requests `tokens` tokens. Returns their
    failures."""
    threads = [Client(router, tokens, pause) for _ in range(clients)]
    for thread in threads:
        thread.start()
    reached = eventually(until, seconds=300)
    for thread in threads:
        thread.enough.set()
    for thread in threads:
        thread.join()
    assert reached and all(thread.answers for thread in threads)
    return [failure for thread in threads for failure in thread.failures]


def test_servers_follow_a_wave_of_load_and_no_request_fails(tmp_path):
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 20000}')
    server = (f"{OCTAVO} serve --model models/demo --served-model-name demo --executor simulated={timing} "
              "--max-num-seqs 4 --max-model-len 256 --port {port}")
    first = free_port(301)
    with empty_router() as router:
        # Eight clients request 400 tokens a second, or as many as a slow machine computes. One client
        # requests at most 8 a second.
        plan = (f"{OCTAVO} plan live --url {router} --tokens-per-second 20 --max-replicas 4 --window 2s --interval 500ms "
                f"--predictor constant --scale-down-delay 4s --connector process --ports {first}-{first + 300} --port ")
        port = free_port()
        process = subprocess.Popen([*shlex.split(plan), str(port), "--command", server])
        try:
            base = f"http://127.0.0.1:{port}"

            def serving(count):
                healthy = [w for w in workers(router) if w["is_healthy"]]
                return len(healthy) == count == len(workers(router))

            assert eventually(lambda: serving(1), seconds=300), "the smallest fleet"
            failures = load(router, 8, 30, 0, lambda: serving(4) and metric(base, "octavo_plan_desired_replicas") == 4)
            failures += load(router, 1, 8, 1, lambda: serving(1))
            assert failures == []
            assert metric(base, 'octavo_plan_decisions_total{reason="load"}') >= 2
            # The servers that the planner has started end with it.
            (last,) = [w["url"] for w in workers(router)]
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0
            assert workers(router) == []
            with pytest.raises(OSError):
                fetch(last + "/health")
        finally:
            if process.poll() is None:  # includes the servers that the planner has started
                process.terminate()
                process.wait(timeout=PATIENCE)


def test_a_fleet_of_none_starts_for_the_first_request(tmp_path):
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 2000}')
    server = (f"{OCTAVO} serve --model models/demo --served-model-name demo --executor simulated={timing} --max-model-len 256 "
              "--port {port}")
    first = free_port(21)
    with empty_router("--queue-size", "16", "--queue-timeout-secs", "300") as router:
        plan = (f"{OCTAVO} plan live --url {router} --tokens-per-second 1000 --min-replicas 0 --max-replicas 2 --window 1s "
                f"--interval 200ms --scale-down-delay 2s --connector process --ports {first}-{first + 20} --port ")
        port = free_port()
        process = subprocess.Popen([*shlex.split(plan), str(port), "--command", server])
        try:
            base = f"http://127.0.0.1:{port}"
            assert eventually(lambda: answers(base + "/health") is not None, PATIENCE)
            assert eventually(lambda: "octavo_plan_desired_replicas" in fetch(base + "/metrics")), "the first decision"
            assert metric(base, "octavo_plan_desired_replicas") == 0 and workers(router) == []
            client = openai.OpenAI(base_url=router + "/v1", api_key="none", max_retries=0, timeout=300)
            fields = dict(model="demo", prompt="Once upon a time", max_tokens=4, extra_body={"ignore_eos": True})
            for _ in range(2):  # to zero and back
                assert client.completions.create(**fields).usage.completion_tokens == 4, "it waited in the router's queue"
                assert metric(base, 'octavo_plan_decisions_total{reason="queued"}') >= 1
                assert eventually(lambda: metric(base, "octavo_plan_desired_replicas") == 0 and workers(router) == [], seconds=300)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def test_each_pool_is_scaled_by_its_own_load(tmp_path):
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 2000}')
    server = f"{OCTAVO} serve --model models/demo --served-model-name demo --executor simulated={timing} --port {{port}} "
    role = lambda name: f"'--kv-transfer-config={json.dumps({'kv_connector': 'NixlConnector', 'kv_role': name, 'kv_connector_extra_config': {'side_channel_port': 0}})}'"
    with running(server + role("kv_producer")) as (_, prefill), running(server + role("kv_consumer")) as (_, decode):
        route = f"{OCTAVO} route --port {{port}} --pd-disaggregation --prefill {prefill} --decode {decode}"
        plan = f"{OCTAVO} plan live --port {{port}} --window 1s --interval 200ms --predictor constant --max-replicas 50 --tokens-per-second "
        with running(route) as (_, router), contextlib.ExitStack() as planners:
            # 200 tokens for each prompt, 4 for each answer
            watch = {pool: planners.enter_context(running(plan + f"{rate} --url {router} --pool {pool}"))[1]
                     for pool, rate in (("prefill", 50), ("decode", 1))}
            client = openai.OpenAI(base_url=router + "/v1", api_key="none", max_retries=0, timeout=120)
            ask = lambda i: client.completions.create(model="demo", prompt=f"{i} " + "word " * 200, max_tokens=4,
                                                      extra_body={"ignore_eos": True})
            wanted = lambda pool: metric(watch[pool], "octavo_plan_desired_replicas")
            numbers = iter(range(10_000))
            assert eventually(lambda: ask(next(numbers)) and min(map(wanted, watch)) > 1, seconds=120)
            assert eventually(lambda: all(metric(base, "octavo_plan_ready_replicas") == 1 for base in watch.values()))
            handed_over = 'octavo_route_prefills_total{outcome="handed_over"}'
            assert metric(router, handed_over) > 0, "stand-ins hand blocks over"

            def more_prompts():  # the planners read the router at different times
                ask(next(numbers))
                prompts, outputs = (metric(watch[pool], "octavo_plan_load_tokens_per_second") for pool in watch)
                return prompts > 10 * outputs > 0

            assert eventually(more_prompts)


def test_a_dry_run_tells_what_it_would_do(server):
    flags = "--tokens-per-second 1 --window 1s --interval 200ms --predictor constant --max-replicas 3 --scale-down-delay 1s"
    with running(f"{OCTAVO} plan live --url {server} {flags} --port {{port}}") as (_, base):
        client = openai.OpenAI(base_url=server + "/v1", api_key="none")
        fields = dict(model=client.models.list().data[0].id, prompt="Once", max_tokens=40)
        assert eventually(lambda: client.completions.create(**fields) and metric(base, "octavo_plan_desired_replicas") == 3)
        assert eventually(lambda: metric(base, "octavo_plan_ready_replicas") == 1)
        assert eventually(lambda: metric(base, "octavo_plan_desired_replicas") == 1), "the load has gone"


@pytest.mark.parametrize("flags, said", [
    ([], "url"),
    (["--url", "127.0.0.1:1"], "capacity"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--capacity", "x"], "capacity"),
    (["--url", "127.0.0.1:1", "--capacity", "/nowhere/plan.json"], "/nowhere/plan.json"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--slo", "e2el:900"], "e2el"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--window", "0s"], "window"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--predictor", "oracle"], "--predictor"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--min-replicas", "9"], "min-replicas"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--connector", "process"], "command"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--connector", "process", "--command", "x {port}", "--ports",
      "9-8"], "ports"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--connector", "command", "--command", "x"], "{replicas}"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--pool", "prefill", "--slo", "tpot:50"], "ttft"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--pool", "decode", "--slo", "ttft:50"], "tpot"),
    (["--url", "127.0.0.1:1", "--tokens-per-second", "5", "--connector", "kubernetes", "--kube-api", "http://127.0.0.1:1",
      "--kube-workload", "pod/x"], "kube-workload"),
])
def test_mistakes_are_named(flags, said):
    done = subprocess.run([OCTAVO, "plan", "live", *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr, done.stderr
