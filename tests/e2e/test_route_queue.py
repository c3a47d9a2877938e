"""`octavo route --queue-size`: requests wait for workers that are full."""

import collections
import concurrent.futures
import contextlib
import http.server
import threading
import time

import pytest
from conftest import PATIENCE, eventually, http_client, running
from test_route import ROUTE, workers
from test_route_faults import Quiet



class Narrow(http.server.BaseHTTPRequestHandler):
    """Answers at most `places` requests at a time, once `answers` is set. Others get a 429 with Retry-After."""

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
        self.arrived.append(self.path)
        self.answers.wait(PATIENCE)
        self.places.release()
        self.reply(200, b'{"object": "text_completion", "choices": []}')

    def log_message(self, *_):
        pass


@pytest.fixture
def answers():
    """Workers answer once it is set."""
    return threading.Event()


@pytest.fixture
def arrived():
    """The requests that workers answer or will answer."""
    return []


@contextlib.contextmanager
def worker(places, answers, arrived, retry_after="1"):
    handler = type("Handler", (Narrow,), {"places": threading.Semaphore(places), "retry_after": retry_after, "answers": answers,
                                          "arrived": arrived})
    server = Quiet(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def narrow(answers, arrived):
    with worker(2, answers, arrived) as one, worker(2, answers, arrived) as two:
        yield f"{one} {two}"


def post(base, **fields):
    began = time.monotonic()
    answer = http_client.post(base + "/v1/completions", json={"model": "m", "prompt": "x", **fields})
    return answer, time.monotonic() - began


def ready(base):
    return eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(base)))


def test_forty_at_once_all_get_an_answer(narrow, answers, arrived):
    with running(ROUTE + narrow + " --queue-size 40") as (_, base), concurrent.futures.ThreadPoolExecutor(40) as pool:
        assert ready(base)
        sent = [pool.submit(post, base) for _ in range(40)]
        assert eventually(lambda: len(arrived) == 4)
        answers.set()
        assert {each.result()[0].status_code for each in sent} == {200}
        metrics = http_client.get(base + "/metrics").text
        assert 'octavo_route_flow_control_outcomes_total{outcome="Dispatched"}' in metrics


def test_more_than_may_wait_are_refused_at_once(narrow, answers):
    with running(ROUTE + narrow + " --queue-size 4") as (_, base), concurrent.futures.ThreadPoolExecutor(80) as pool:
        assert ready(base)
        sent = [pool.submit(post, base) for _ in range(80)]
        assert eventually(lambda: sum(each.done() for each in sent) == 72), "four are at workers, four wait"
        answers.set()
        replies = [each.result()[0] for each in sent]
        assert collections.Counter(answer.status_code for answer in replies) == {200: 8, 429: 72}
        for answer in replies:
            assert answer.status_code == 200 or "--queue-size 4" in answer.json()["error"]["message"]
            assert answer.status_code == 200 or answer.headers["Retry-After"]


def test_one_that_waits_for_too_long_gets_the_workers_refusal(answers, arrived):
    with worker(0, answers, arrived, retry_after="7") as full, running(ROUTE + full + " --queue-size 4 --queue-timeout-secs 1") as (_, base):
        assert ready(base)
        answer, seconds = post(base)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7") and seconds >= 1


def test_requests_beyond_max_concurrent_wait(answers, arrived):
    with (worker(8, answers, arrived) as wide, concurrent.futures.ThreadPoolExecutor(8) as pool,
          running(ROUTE + wide + " --queue-size 8 --max-concurrent-requests 2") as (_, base)):
        assert ready(base)
        sent = [pool.submit(post, base) for _ in range(8)]
        assert eventually(lambda: 'llm_d_epp_flow_control_queue_size{priority="0"} 6' in http_client.get(base + "/metrics").text)
        assert eventually(lambda: len(arrived) == 2)
        answers.set()
        assert {each.result()[0].status_code for each in sent} == {200}
