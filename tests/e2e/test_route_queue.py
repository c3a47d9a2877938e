"""`octavo route --queue-size`: requests wait for workers that are full."""

import collections
import concurrent.futures
import contextlib
import http.server
import threading
import time

import pytest
from conftest import eventually, http_client, running
from test_route import ROUTE, workers
from test_route_faults import Quiet

ANSWER_S = 0.1


class Narrow(http.server.BaseHTTPRequestHandler):
    """Answers two requests at a time. Others get a 429 with Retry-After."""

    protocol_version = "HTTP/1.1"

    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, b'{"object": "list", "data": [{"id": "m", "object": "model"}]}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.places.acquire(blocking=False):
            return self.reply(429, b'{"error": {"message": "busy"}}', Retry_After=self.retry_after)
        time.sleep(ANSWER_S)
        self.places.release()
        self.reply(200, b'{"object": "text_completion", "choices": []}')

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def worker(places, retry_after="1"):
    handler = type("Handler", (Narrow,), {"places": threading.Semaphore(places), "retry_after": retry_after})
    server = Quiet(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def narrow():
    with worker(2) as one, worker(2) as two:
        yield f"{one} {two}"


def post(base, **fields):
    began = time.monotonic()
    answer = http_client.post(base + "/v1/completions", json={"model": "m", "prompt": "x", **fields})
    return answer, time.monotonic() - began


def ready(base):
    return eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))


def test_forty_at_once_all_get_an_answer(narrow):
    with running(ROUTE + narrow + " --queue-size 40") as (_, base), concurrent.futures.ThreadPoolExecutor(40) as pool:
        assert ready(base)
        answers = list(pool.map(lambda _: post(base), range(40)))
        assert {answer.status_code for answer, _ in answers} == {200}
        metrics = http_client.get(base + "/metrics").text
        assert 'octavo_route_flow_control_outcomes_total{outcome="Dispatched"}' in metrics


def test_more_than_may_wait_are_refused_at_once(narrow):
    with running(ROUTE + narrow + " --queue-size 4") as (_, base), concurrent.futures.ThreadPoolExecutor(80) as pool:
        assert ready(base)
        answers = list(pool.map(lambda _: post(base), range(80)))
        statuses = collections.Counter(answer.status_code for answer, _ in answers)
        assert set(statuses) == {200, 429} and statuses[200] >= 4
        for answer, _ in answers:
            assert answer.status_code == 200 or "--queue-size 4" in answer.json()["error"]["message"]
            assert answer.status_code == 200 or answer.headers["Retry-After"]


def test_one_that_waits_for_too_long_gets_the_workers_refusal():
    with worker(0, retry_after="7") as full, running(ROUTE + full + " --queue-size 4 --queue-timeout-secs 1") as (_, base):
        assert ready(base)
        answer, seconds = post(base)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7") and seconds >= 1


def test_requests_beyond_max_concurrent_wait():
    with worker(8) as wide, running(ROUTE + wide + " --queue-size 8 --max-concurrent-requests 2") as (_, base):
        assert ready(base)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: post(base), range(8)))
        assert {answer.status_code for answer, _ in answers} == {200}
        assert max(seconds for _, seconds in answers) >= 4 * ANSWER_S
