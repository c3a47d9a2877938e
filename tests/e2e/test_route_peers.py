"""Several `octavo route` with the same workers: each counts the requests that the others have in flight."""

import contextlib
import http.server
import itertools
import json
import shlex
import subprocess
import threading
import urllib.request

import pytest
from conftest import eventually, fetch, free_port, http_client, running
from test_route import SERVE, explained, post


class Held(http.server.BaseHTTPRequestHandler):
    """Answers a completion when the test says so."""

    protocol_version = "HTTP/1.1"

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(b'{"object": "list", "data": [{"id": "m", "object": "model"}]}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.asked += 1
        assert self.server.released.wait(600)
        with contextlib.suppress(OSError):  # the router of this request has ended
            self.answer(b"{}")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def held_worker():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Held)
    server.lock, server.asked, server.released = threading.Lock(), 0, threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def sample(base, name, worker=None):
    labels = f'{{worker="{worker}"}}' if worker else ""
    return next((int(float(line.rsplit(" ", 1)[1])) for line in fetch(base + "/metrics").splitlines() if line.startswith(f"{name}{labels} ")), None)


class Asked:
    """A request in flight."""

    def __init__(self, base):
        self.base, self.answer = base, None
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()

    def ask(self):
        body = json.dumps({"model": "m", "prompt": "Once upon a time"}).encode()
        request = urllib.request.Request(self.base + "/v1/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as response:
                self.answer = response.status
        except OSError:
            self.answer = "broken"


@pytest.mark.parametrize("policy", ["least_loaded", "kv_aware"])
def test_routers_count_each_others_requests_until_one_dies(policy):
    ports = [free_port(), free_port()]
    peers = " ".join(f"127.0.0.1:{port}" for port in ports)

    def route(port, *workers):
        urls = " ".join(worker.url for worker in workers)
        return running(f"build/release/octavo route --port {{port}} --policy {policy} --worker-urls {urls} "
                       f"--router-sync tcp://127.0.0.1:{port} --router-peers {peers}")

    with held_worker() as a, held_worker() as b, route(ports[0], a, b) as (first, one), route(ports[1], a, b) as (_, two):
        for base in (one, two):
            assert eventually(lambda: sample(base, "octavo_route_peers") == 1)
            assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in json.loads(fetch(base + "/workers"))["workers"]))
        through_first = Asked(one)
        assert eventually(lambda: a.asked + b.asked == 1)
        busy, idle = (a, b) if a.asked else (b, a)
        assert eventually(lambda: sample(two, "octavo_route_worker_peer_requests", busy.url) == 1)
        assert sample(two, "octavo_route_worker_peer_requests", idle.url) == 0

        through_second = Asked(two)
        assert eventually(lambda: a.asked + b.asked == 2)
        assert idle.asked == 1, "the second router knows of the first one's request"
        assert eventually(lambda: sample(one, "octavo_route_worker_peer_requests", idle.url) == 1)

        first.kill()
        assert eventually(lambda: sample(two, "octavo_route_peers") == 0)
        assert sample(two, "octavo_route_worker_peer_requests", busy.url) == 0, "its share goes with it"
        another = Asked(two)
        assert eventually(lambda: a.asked + b.asked == 3)
        assert busy.asked == 2

        a.released.set()
        b.released.set()
        for asked in (through_first, through_second, another):
            asked.thread.join()
        assert through_first.answer == "broken"
        assert (through_second.answer, another.answer) == (200, 200), "nothing is lost but the dead one's own requests"


def test_a_router_that_starts_knows_what_another_one_knows(tmp_path):
    events, replay = f"ipc://{tmp_path}/events", f"ipc://{tmp_path}/replay"
    config = {"enable_kv_cache_events": True, "endpoint": events, "replay_endpoint": replay, "buffer_steps": 2}
    serve = f"{SERVE} --block-size 16 --kv-events-config {shlex.quote(json.dumps(config))}"
    route = "build/release/octavo route --port {port} --policy kv_aware --worker-urls "
    prompts = [[10 + i] * 80 for i in range(6)]
    with running(serve) as (_, replica):
        flags = f"{replica} --kv-events {events},{replay}"

        def knows(router, prompt):
            return explained(router, prompt)["cached_tokens"].get(replica, 0) >= 80

        with running(route + flags) as (_, one):
            # A subscription takes effect with a delay. The replica repeats only the events of two steps, at most four, so
            # with ten events the subscription works.
            early = itertools.count(200)
            assert eventually(lambda: post(replica, "/v1/completions", prompt=[next(early)] * 32, max_tokens=1)
                              or (sample(one, "octavo_route_kv_events_total", replica) or 0) >= 10)
            for prompt in prompts:  # sent without the router, which knows only the reported load
                post(replica, "/v1/completions", prompt=prompt, max_tokens=1)
            assert eventually(lambda: knows(one, prompts[-1] + [7]))
            assert http_client.get(one + "/kv_index", params={"worker": "nobody:1"}).status_code == 404
            with running(f"{route}{flags} --router-warm-from {one}") as (_, two):
                assert eventually(lambda: (sample(two, "octavo_route_restored_blocks_total", replica) or 0) >= 30)
                assert all(knows(two, prompt + [7]) for prompt in prompts), "the replica tells only of the last two steps again"
                post(replica, "/v1/completions", prompt=[99] * 80, max_tokens=1)
                assert eventually(lambda: knows(two, [99] * 80 + [7])), "and goes on"


@pytest.mark.parametrize("flags, says", [
    (["--router-warm-from", "http://10.0.0.1/x"], "router-warm-from: must be http://host:port"),
    (["--router-sync", "5600"], "router-sync: cannot listen at"),
    (["--router-peers", "10.0.0.2:5600:1"], "router-peers: must be host:port"),
])
def test_wrong_addresses_are_told(flags, says):
    done = subprocess.run(["build/release/octavo", "route", *flags], capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
