"""`octavo route` under load while replicas die, freeze and send wrong data. Each accepted request ends with an answer
or an error."""

import collections
import concurrent.futures
import contextlib
import http.server
import shlex
import signal
import socket
import struct
import subprocess
import threading
import time

import httpx
import openai
import pytest
from conftest import PATIENCE, eventually, free_port, http_client, running
from test_route import ROUTE, SERVE, client_of, workers

STREAMS = 64
PROMPTS = [f"Once upon a time there were {i}" for i in range(16)]


@pytest.fixture(scope="module")
def expected():
    """The answer of an undisturbed replica."""
    with running(SERVE) as (_, base):
        client = client_of(base)
        model = client.models.list().data[0].id
        return model, [client.completions.create(**fields(model, i)).choices[0].text for i in range(len(PROMPTS))]


def fields(model, i):
    return dict(model=model, prompt=PROMPTS[i % len(PROMPTS)], max_tokens=60, temperature=0, extra_body={"ignore_eos": True})


class Liar(http.server.BaseHTTPRequestHandler):
    """Passes health checks and knows the model, but breaks off each answer with a reset."""

    model = ""

    def do_GET(self):
        body = b'{"object": "list", "data": [{"id": "%s", "object": "model"}]}' % self.model.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n10\r\ndata: {")
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, *_):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass


@contextlib.contextmanager
def liar(model):
    server = Quiet(("127.0.0.1", 0), type("Handler", (Liar,), {"model": model}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Load:
    """Runs `count` clients, each with consecutive streams, and records the outcomes."""

    def __init__(self, base, model, texts, rounds, insist=False):
        self.base, self.model, self.texts, self.insist = base, model, texts, insist
        self.ledger, self.events = collections.Counter(), 0
        self.lock = threading.Lock()  # += on a Counter is a read and a write
        self.threads = [threading.Thread(target=self.run, args=(i, rounds)) for i in range(STREAMS)]
        for thread in self.threads:
            thread.start()

    def run(self, i, rounds):
        client = client_of(self.base)
        for round_ in range(rounds):
            number = i + STREAMS * round_
            while (outcome := self.ask(client, number)) == "told" and self.insist:
                self.count("asked again")
                time.sleep(0.1)
            self.count(outcome)

    def count(self, outcome):
        with self.lock:
            self.ledger[outcome] += 1

    def ask(self, client, number):
        text, finish = "", None
        try:
            for chunk in client.completions.create(**fields(self.model, number), stream=True):
                self.events += 1
                for choice in chunk.choices:
                    text += choice.text
                    finish = choice.finish_reason or finish
        except (openai.APIError, httpx.TransportError, ValueError):  # the last event was cut off
            return "told"
        if finish is None:
            return "lost"
        return "whole" if text == self.texts[number % len(PROMPTS)] else "wrong"

    def end(self):
        for thread in self.threads:
            thread.join()
        return self.ledger


@pytest.mark.parametrize("migration", [True, False])
def test_a_replica_is_killed_one_freezes_and_one_lies(expected, migration):
    model, texts = expected
    flags = "--policy round_robin --health-check-interval-secs 1 --health-check-timeout-secs 2" + " --migration-limit 3" * migration
    with running(SERVE) as (_, one), running(SERVE) as (victim, two), running(SERVE) as (frozen, three), liar(model) as four:
        with running(ROUTE + f"{one} {two} {three} {four} {flags}") as (_, base):
            assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
            load = Load(base, model, texts, rounds=3)
            assert eventually(lambda: load.events > 200)
            victim.kill()
            frozen.send_signal(signal.SIGSTOP)
            assert eventually(lambda: not any(w["is_healthy"] for w in workers(base) if w["url"] == three)), "nobody has noticed"
            frozen.send_signal(signal.SIGCONT)
            ledger = load.end()
            assert sum(ledger.values()) == 3 * STREAMS and ledger["lost"] == ledger["wrong"] == 0, ledger
            assert ledger["whole"] >= STREAMS and (not migration or ledger["told"] == 0), ledger
            assert eventually(lambda: all(w["load"] == 0 for w in workers(base))), "nothing is in flight any more"


def test_a_frozen_replica_holds_no_request(expected):
    """The client has received nothing from the frozen replica, so the other replica answers completely."""
    model, texts = expected
    flags = "--policy round_robin --health-check-interval-secs 1 --health-check-timeout-secs 1"
    with running(SERVE) as (frozen, one), running(SERVE) as (_, two), running(ROUTE + f"{one} {two} {flags}") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        frozen.send_signal(signal.SIGSTOP)
        try:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                said = list(pool.map(lambda i: client_of(base).completions.create(**fields(model, i)).choices[0].text, range(8)))
            assert said == texts[:8]
            assert eventually(lambda: all(w["load"] == 0 for w in workers(base))), "nothing is held"
        finally:
            frozen.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def refuser(then):
    """Refuses each POST before it has read the body. `then`: keeps the connection, shuts down its sending side, or
    closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []

    def answer(status, body):
        return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)

    def serve(connection):
        with contextlib.suppress(OSError):
            while head := connection.recv(65536):
                if head.startswith(b"GET"):
                    connection.sendall(answer(b"200 OK", b'{"data": [{"id": "m"}]}'))
                    continue
                kept.append(connection)  # before the answer, after which the test reads the list
                connection.sendall(answer(b"413 Too Large", b'{"error": {"message": "too large"}}'))
                if then == "shut":
                    connection.shutdown(socket.SHUT_WR)
                if then == "close":
                    connection.close()
                return

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", kept
    finally:
        listener.close()
        for connection in kept:
            connection.close()


@pytest.mark.parametrize("then", ["keep", "shut", "close"])
def test_a_refusal_before_the_body_is_read_reaches_the_client(then):
    with refuser(then) as (worker, refused), running(ROUTE + worker) as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        answer = httpx.post(base + "/v1/completions", json=dict(model="m", prompt="a" * 30_000_000), timeout=PATIENCE)
        assert (answer.status_code, answer.json()["error"]["message"]) == (413, "too large")
        assert len(refused) == 1


def test_a_clients_deadlines_open_nothing(expected):
    model, _ = expected
    late = dict(model=model, prompt="Once", max_tokens=1000, timeout=0.01, ignore_eos=True)
    with running(SERVE) as (_, one), running(SERVE) as (_, two), running(ROUTE + f"{one} {two}") as (_, base):
        assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))
        for _ in range(30):
            assert http_client.post(base + "/v1/completions", json=late).status_code == 503
        assert all(w["is_healthy"] for w in workers(base))
        assert http_client.post(base + "/v1/completions", json=dict(model=model, prompt="Once", max_tokens=1)).status_code == 200


def test_a_router_that_is_killed_and_started_again(expected):
    model, texts = expected
    with running(SERVE) as (_, one), running(SERVE) as (_, two):
        port = free_port()
        command, base = ROUTE.replace("{port}", str(port)) + f"{one} {two}", f"http://127.0.0.1:{port}"
        with router(command, base) as first:
            load = Load(base, model, texts, rounds=2, insist=True)
            assert eventually(lambda: load.events > 200)
            first.kill()
            first.wait()
            assert eventually(lambda: load.ledger["asked again"] > 0), "the clients have noticed"
            with router(command, base):
                ledger = load.end()
                assert ledger["whole"] == 2 * STREAMS, ledger


@contextlib.contextmanager
def router(command, base):
    process = subprocess.Popen(shlex.split(command))
    try:
        assert eventually(lambda: answers(base))
        yield process
    finally:
        process.kill()
        process.wait()


def answers(base):
    with contextlib.suppress(OSError):
        return all(w["is_healthy"] and w["models"] for w in workers(base))
