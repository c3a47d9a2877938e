#!/usr/bin/env python3
"""Stand-ins of workers for measuring a router: they read a request and immediately answer with a stream of two tokens.

    tools/fleet_report/canned_workers.py COUNT --port FIRST    # listens on FIRST .. FIRST + COUNT - 1

--metrics FILE: a JSON list with a page of /metrics for each worker, which is read again at SIGHUP. As in vLLM
(Prometheus' Python client), /metrics?name[]=NAME has only the metrics with these names.
"""

import argparse
import asyncio
import functools
import json
import pathlib
import re
import signal
import urllib.parse

LENGTH = re.compile(rb"content-length: *(\d+)", re.I)
MODELS = {"object": "list", "data": [{"id": "canned", "object": "model", "created": 0, "owned_by": "octavo", "max_model_len": 1 << 20}]}
PAGES = {
    b"/health": {},
    b"/v1/models": MODELS,
    b"/get_model_info": {"model_path": "canned", "is_generation": True},
    b"/get_server_info": {"model_path": "canned", "served_model_name": "canned"},
    b"/server_info": {"model_path": "canned", "served_model_name": "canned"},
    b"/model_info": {"model_path": "canned", "is_generation": True},
}


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(text, finish):
    return {"id": "cmpl-0", "object": "text_completion", "created": 0, "model": "canned",
            "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]}


STREAM = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
          + b"".join(chunk(b"data: " + json.dumps(event(*token)).encode() + b"\n\n") for token in (("a", None), ("b", "length")))
          + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def page(body, status=b"200 OK"):
    data = json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(data), data)


@functools.lru_cache(1024)
def selected(text, query):
    """Returns the lines of the page about the metrics in the query."""
    names = set(urllib.parse.parse_qs(query).get("name[]", ()))
    lines = text.splitlines(keepends=True)
    name = lambda line: line.split()[2] if line.startswith("#") else re.split("[ {]", line, maxsplit=1)[0]  # noqa: E731
    return "".join(line for line in lines if not names or name(line) in names).encode()


class Worker(asyncio.Protocol):
    pages = []  # of metrics

    def __init__(self, number):
        self.number = number
        self.head, self.missing = b"", 0  # missing: bytes of the body that have not arrived

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        while data:
            if self.missing:
                taken = min(self.missing, len(data))
                self.missing -= taken
                data = data[taken:]
                if not self.missing:
                    self.transport.write(STREAM)
                continue
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            self.head = b""
            self.begin(head)

    def begin(self, head):
        method, path, _ = head.split(b" ", 2)
        length = LENGTH.search(head)
        if method == b"POST" and length:
            if re.search(rb"expect: *100-continue", head, re.I):
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.missing = int(length[1])
            return
        path, _, query = path.partition(b"?")
        if path == b"/metrics" and self.number < len(self.pages):
            body = selected(self.pages[self.number], query.decode())
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            return
        known = PAGES.get(path)
        self.transport.write(page({}, b"404 Not Found") if known is None else page(known))


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--metrics", type=pathlib.Path)
    options = parser.parse_args()
    loop = asyncio.get_running_loop()

    def read_pages():
        Worker.pages = json.loads(options.metrics.read_text())

    if options.metrics:
        read_pages()
        loop.add_signal_handler(signal.SIGHUP, read_pages)
    for i in range(options.count):
        await loop.create_server(functools.partial(Worker, i), "127.0.0.1", options.port + i, backlog=512)
    await asyncio.Event().wait()


asyncio.run(main())
