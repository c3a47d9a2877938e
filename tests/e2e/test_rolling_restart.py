"""Servers replace one another on a port (--reuse-port): no request fails, and no stream is cut."""

import contextlib
import json
import signal
import subprocess
import threading
import urllib.request

from conftest import PATIENCE, free_port

STREAMS = 16
ANSWERS_BETWEEN = 20


class Server(contextlib.AbstractContextManager):
    """A process on the port, from the moment at which it is ready until the end of the block."""

    def __init__(self, port):
        command = ["build/release/octavo", "serve", "--port", str(port), "--reuse-port", "--shutdown-timeout", str(PATIENCE)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.says("ready on")

    def says(self, words):
        """Waits until the server has logged the words."""
        assert any(words in line for line in self.process.stderr), f"the server ended before it said: {words}"

    def leave(self):
        self.process.send_signal(signal.SIGTERM)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        assert self.process.wait(timeout=2 * PATIENCE) == 0

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Load:
    """Consecutive streams on separate connections, in many threads."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/v1/completions"
        self.failures, self.answers, self.ends = [], 0, False
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(STREAMS)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        body = {"prompt": f"Once {i}", "max_tokens": 40, "stream": True, "ignore_eos": True}
        while not self.ends:
            try:
                request = urllib.request.Request(
                    self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                    text = response.read().decode()
                assert text.endswith("data: [DONE]\n\n") and '"error"' not in text, text[-300:]
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))
            with self.changed:
                self.answers += 1
                self.changed.notify_all()

    def wait_for_more(self):
        with self.changed:
            goal = self.answers + ANSWERS_BETWEEN
            assert self.changed.wait_for(lambda: self.answers >= goal, timeout=PATIENCE)

    def stop(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


def test_no_request_fails():
    port = free_port()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(port))
        load = Load(port)
        stack.callback(load.stop)
        for _ in range(3):
            load.wait_for_more()
            successor = stack.enter_context(Server(port))
            load.wait_for_more()
            server.leave()
            server = successor
        load.wait_for_more()
        load.stop()
        server.leave()
    assert not load.failures, load.failures


def test_a_second_signal_ends_the_program():
    port = free_port()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps({"prompt": "Once", "max_tokens": 1900, "stream": True, "ignore_eos": True}).encode(),
        {"Content-Type": "application/json"},
    )
    with Server(port) as server, urllib.request.urlopen(request, timeout=PATIENCE) as stream:
        assert stream.readline().startswith(b"data: ")
        server.process.send_signal(signal.SIGTERM)
        server.says("stopping")  # two signals at the same time count as one
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=PATIENCE) in (0, 128 + signal.SIGTERM)
