"""Mistakes of configuration that would otherwise show only as missing load or as errors of every request: the log, or
the error at the start, says what is wrong and what to do."""

import itertools
import json
import shlex
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import eventually, free_port, running, serve_command
from test_tls import certificate, started  # noqa: F401  (a fixture)

ROUTE = "build/release/octavo route --port {port} --worker-urls"


class Log:
    """Everything that the processes of the test have written to standard error so far."""

    def __init__(self, capfd):
        self.capfd, self.text = capfd, ""

    def __str__(self):
        self.text += self.capfd.readouterr().err
        return self.text

    def has(self, *words):
        """Waits for a line with all these words."""
        return eventually(lambda: any(all(word in line for word in words) for line in str(self).splitlines()))

    def count(self, word):
        return str(self).count(word)


@pytest.fixture
def log(capfd):
    return Log(capfd)


def status(url, headers={}, body=None):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def picker(*flags):
    grpc, health = free_port(), free_port()
    return shlex.join(["build/release/octavo", "pick", "--secure-serving=false", "--grpc-port", str(grpc), "--grpc-health-port",
                       str(health), "--metrics-port", "{port}", *flags])


def test_router_and_picker_without_the_replicas_key(log):
    with running(serve_command("--api-key", "secret-1")) as (_, replica):
        for flags, advice in (("--api-key other", "must also be a key of this worker"), ("", "start the router with --api-key KEY")):
            with running(f"{ROUTE} {replica} {flags}") as (_, router):
                assert log.has(f"{replica}: GET /", "status 401", advice)
                assert status(router + "/v1/chat/completions", {"Authorization": "Bearer other"},
                              json.dumps({"messages": [{"role": "user", "content": "a"}]}).encode()) == 401
        with running(picker("--endpoints", replica.removeprefix("http://")), ready="/metrics"):
            assert log.has(f"{replica}: the metrics cannot be read", "status 401", "without --api-key")
        with running(f"{ROUTE} {replica} --api-key secret-1"):
            assert log.has(f"{replica} is available")
        assert log.count("so the router cannot read this page") == 2, "once for each router"
        assert log.count("the metrics cannot be read") == 1


def test_a_request_or_a_picker_without_tls(log, certificate):  # noqa: F811
    port = free_port()
    trust = ssl.create_default_context(cafile=certificate[0])
    command = f"build/release/octavo serve --host 127.0.0.1 --port {port} --ssl-certfile {certificate[0]} --ssl-keyfile {certificate[1]}"
    with started(command, lambda: urllib.request.urlopen(f"https://127.0.0.1:{port}/health", context=trust)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models")
        assert refused.value.code == 400 and "use https://" in json.load(refused.value)["error"]["message"]
        with running(picker("--endpoints", f"127.0.0.1:{port}"), ready="/metrics"):
            assert log.has(f"127.0.0.1:{port}: the metrics cannot be read", "scheme: https")
        with running(f"{ROUTE} http://127.0.0.1:{port}", ready="/liveness"):
            assert log.has("the health check failed: status 400", "use https://")


def test_a_router_that_gets_events_without_a_tokenizer(log):
    events = free_port()
    config = json.dumps({"enable_kv_cache_events": True, "endpoint": f"tcp://*:{events}"})
    with running(serve_command("--kv-events-config", config)) as (_, replica):
        # No events arrive from a wrong port.
        with running(f"{ROUTE} {replica} --policy kv_aware --kv-events tcp://127.0.0.1:{free_port()}") as (_, router):
            assert status(router + "/v1/completions", body=b'{"prompt": "Hugo the smith woke up early.", "max_tokens": 1}') == 200
        assert log.count("without --tokenizer-path") == 0
        with running(f"{ROUTE} {replica} --policy kv_aware --kv-events tcp://127.0.0.1:{events}") as (_, router):
            asked = itertools.count()  # each prompt is new, so that its blocks are stored and reported

            def asked_and_warned():
                body = json.dumps({"prompt": f"{next(asked)} rainy mornings in Foxley, Hugo the smith woke up early. " * 3, "max_tokens": 1})
                assert status(router + "/v1/completions", body=body.encode()) == 200
                return "without --tokenizer-path" in str(log)

            assert eventually(asked_and_warned)
        assert log.count("without --tokenizer-path") == 1


def test_refused_requests_are_logged(log):
    with running(serve_command("--enable-log-requests")) as (_, base):
        assert status(base + "/v1/completions", body=b'{"prompt": 1.5}') == 400
        assert log.has('POST "/v1/completions": status 400')


def test_the_log_names_the_format_of_a_converted_folder(log, tmp_path):
    converted = str(tmp_path / "converted")
    subprocess.run(["build/release/octavo", "model", "convert", "models/demo", converted, "--quantization", "int8"], check=True)
    command = shlex.join(["build/release/octavo", "serve", converted, "--port", "{port}"])
    with running(command):
        assert log.has("weights: int8")
