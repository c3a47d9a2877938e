#!/usr/bin/env python3
"""Compares `octavo pick` with llm-d's endpoint picker: the endpoint that each selects for the same requests and metrics,
its latency, and its processor time. Prints Markdown; see docs/design/measurements.md. Needs an interpreter with
grpcio-tools.

    tools/fleet_report/pickers.py --llm-d EPP --endpoints 8 100   # its binary: `go build ./cmd/epp` in llm-d/llm-d-router
"""

import argparse
import importlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc_tools
from grpc_tools import protoc

from fidelity import free_port, program
from routers import free_ports, memory, processor_seconds

DESTINATION = "x-gateway-destination-endpoint"
PAGE = """# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{model_name="m"}} {waiting}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{model_name="m"}} {running}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{model_name="m"}} {usage}
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="16",num_gpu_blocks="20000"}} 1
"""
OWN = ("num_requests_waiting", "num_requests_running", "kv_cache_usage_perc", "cache_config_info")  # metrics of PAGE


def other_metrics(octavo):
    """Returns the rest of a server's page, such as its histograms. It has vLLM's names."""
    with program([octavo, "serve", "--executor", "simulated"], free_port()) as (_, url):
        body = json.dumps({"prompt": "a", "max_tokens": 4}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})).read()
        lines = urllib.request.urlopen(f"{url}/metrics").read().decode().splitlines()
    mine = re.compile(rf"(# \S+ )?vllm:({'|'.join(OWN)})\b")
    return "".join(f"{line}\n" for line in lines if not mine.match(line))
CONFIG = """apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
- type: max-score-picker
- type: file-discovery
  parameters: {path: ENDPOINTS}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: max-score-picker}
dataLayer:
  discovery: {pluginRef: file-discovery}
"""


def stubs():
    """Compiles the messages of src/fleet/pick/ext_proc.proto."""
    folder = tempfile.mkdtemp()
    source = Path("src/fleet/pick")
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    assert protoc.main(["protoc", f"-I{source}", f"-I{well_known}", f"--python_out={folder}", "ext_proc.proto"]) == 0
    sys.path.insert(0, folder)
    return importlib.import_module("ext_proc_pb2")


class Metrics:
    """Replicas that only serve metrics, which change on command (canned_workers.py)."""

    def __init__(self, process, ports, pages, others):
        self.process, self.ports, self.pages, self.others = process, ports, pages, others

    def draw(self, random_):
        """Draws metrics. If the range permits it, all are different, so that no selection is random."""
        count = len(self.ports)
        waiting = random_.sample(range(5 * count), count)
        self.pages.write_text(json.dumps([PAGE.format(waiting=waiting[i], running=random_.randrange(20),
                                                      usage=random_.randrange(10_000) / 10_000) + self.others
                                         for i in range(count)]))
        self.process.send_signal(signal.SIGHUP)


@contextmanager
def metrics_of(count, folder, others):
    pages, first = folder / "pages.json", free_ports(count)
    pages.write_text("[]")
    command = [sys.executable, Path(__file__).parent / "canned_workers.py", count, "--metrics", pages]
    with program(command, first) as (process, _):
        yield Metrics(process, range(first, first + count), pages, others)


@contextmanager
def picker(command, extra):
    grpc_port, health, metrics = free_port(), free_port(), free_port()
    flags = ["--grpc-port", grpc_port, "--grpc-health-port", health, "--metrics-port", metrics, *extra]
    process = subprocess.Popen(list(map(str, [*command, *flags])), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        channel = grpc.insecure_channel(f"127.0.0.1:{grpc_port}", [("grpc.max_receive_message_length", -1),
                                                                   ("grpc.max_send_message_length", -1)])
        grpc.channel_ready_future(channel).result(timeout=60)
        time.sleep(2)  # time to read its metrics
        yield process, channel, grpc_port
    finally:
        process.terminate()
        process.wait()


class Client:
    def __init__(self, messages, channel):
        self.m = messages
        self.call = channel.stream_stream("/envoy.service.ext_proc.v3.ExternalProcessor/Process",
                                          messages.ProcessingRequest.SerializeToString, messages.ProcessingResponse.FromString)

    def headers(self, fields):
        return self.m.HeaderMap(headers=[self.m.HeaderValue(key=k, raw_value=v.encode()) for k, v in fields.items()])

    def request(self, body):
        m = self.m
        yield m.ProcessingRequest(
            request_headers=m.HttpHeaders(headers=self.headers({":path": "/v1/completions", ":method": "POST",
                                                                "content-type": "application/json"})),
            protocol_config=m.ProtocolConfiguration(request_body_mode=4, response_body_mode=4))
        for at in range(0, len(body), 60_000):
            yield m.ProcessingRequest(request_body=m.HttpBody(body=body[at:at + 60_000], end_of_stream=at + 60_000 >= len(body)))

    @contextmanager
    def chosen(self, body):
        """Yields the endpoint of a request. The answer ends with the block."""
        m, outbox, chosen = self.m, queue.SimpleQueue(), None
        for message in self.request(body):
            outbox.put(message)
        answers = self.call(iter(outbox.get, None))
        for answer in answers:
            which = answer.WhichOneof("response")
            if which == "immediate_response":
                raise SystemExit(f"refused: {answer.immediate_response}")
            if which == "request_headers":
                for option in answer.request_headers.response.header_mutation.set_headers:
                    if option.header.key == DESTINATION:
                        chosen = (option.header.raw_value or option.header.value.encode()).decode()
            if which == "request_body" and answer.request_body.response.body_mutation.streamed_response.end_of_stream:
                break
        yield chosen
        outbox.put(m.ProcessingRequest(response_headers=m.HttpHeaders(headers=self.headers({":status": "200", "content-type": "application/json"}))))
        outbox.put(m.ProcessingRequest(response_body=m.HttpBody(body=b'{"usage": {"prompt_tokens": 9, "completion_tokens": 1}}', end_of_stream=True)))
        for answer in answers:
            if answer.WhichOneof("response") == "response_body":
                outbox.put(None)

    @contextmanager
    def place(self, body):
        """Yields the port of the selected endpoint."""
        with self.chosen(body) as endpoint:
            yield int(endpoint.rsplit(":", 1)[1])

    def pick(self, body):
        with self.chosen(body) as endpoint:
            return endpoint


def body(random_, tokens, group=None):
    """Returns a prompt with this number of tokens. Prompts of a group share a prefix."""
    words = lambda draw, count: " ".join("".join(draw.choices("abcdefghij", k=3)) for _ in range(count))
    shared = words(random.Random(group), tokens // 2) if group is not None else words(random_, tokens // 2)
    return json.dumps({"model": "m", "prompt": shared + " " + words(random_, tokens - tokens // 2), "max_tokens": 1}).encode()


def load(generator, port, rate, tokens, seconds, pid):
    """Returns milliseconds per pick at p50 and p99, and cores, including the use of an idle picker."""
    spent = processor_seconds(pid)
    began = time.perf_counter()
    done = subprocess.run([generator, f"127.0.0.1:{port}", str(rate), str(tokens), str(seconds)], capture_output=True, text=True, check=True)
    took = time.perf_counter() - began
    came, p50, p99 = map(float, done.stdout.split())
    return {"rate": came, "p50": p50, "p99": p99, "cores": (processor_seconds(pid) - spent) / took}


def idle(pid, seconds=5):
    before = processor_seconds(pid)
    time.sleep(seconds)
    return (processor_seconds(pid) - before) / seconds


def same_picks(options, clients, metrics):
    random_, same, picks = random.Random(1), 0, 0
    for _ in range(options.changes):
        metrics.draw(random_)
        time.sleep(0.4)  # time for several scrapes
        for _ in range(50):
            request = body(random_, 400, random_.randrange(40))
            chosen = [client.pick(request) for client, _, _ in clients.values()]
            same += chosen[0] == chosen[1]
            picks += 1
    return f"{same} of {picks} picks are the same ({same / picks:.2%})"


def compare(options, count, messages, folder, others):
    endpoints, config = folder / "endpoints.yaml", folder / "config.yaml"
    with metrics_of(count, folder, others) as metrics:
        endpoints.write_text(json.dumps({"endpoints": [{"name": f"e{i}", "address": "127.0.0.1", "port": str(port)}
                                                       for i, port in enumerate(metrics.ports)]}))
        config.write_text(CONFIG.replace("ENDPOINTS", str(endpoints)))
        metrics.draw(random.Random(0))
        octavo = picker([options.octavo, "pick", "--host", "127.0.0.1"], ["--config-file", config, "--secure-serving=false"])
        llm_d = picker([options.llm_d], ["--config-file", config, "--secure-serving=false", "--metrics-endpoint-auth=false",
                                         "--pool-name", "pool", "--v", "0"])
        with octavo as (ours, channel, port), llm_d as (theirs, other, other_port):
            clients = {"octavo pick": (Client(messages, channel), port, ours.pid), "llm-d": (Client(messages, other), other_port, theirs.pid)}
            print(f"\n{count} endpoints: {same_picks(options, clients, metrics)}\n", flush=True)
            print("| endpoints | | requests/s | tokens | p50, p99 (ms) | cores | memory (MiB) |\n|---|---|---|---|---|---|---|")
            for who, (_, _, pid) in clients.items():
                print(f"| {count} | {who} | idle | | | {idle(pid):.3f} | {memory(pid):.0f} |", flush=True)
            for rate, tokens in options.loads:
                for who, (_, at, pid) in clients.items():
                    load(options.load, at, rate, tokens, 2, pid)  # warms up
                    f = load(options.load, at, rate, tokens, options.seconds, pid)
                    print(f"| {count} | {who} | {f['rate']:.0f} | {tokens:,} | {f['p50']:.2f}, {f['p99']:.2f} | {f['cores']:.3f} | "
                          f"{memory(pid):.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--llm-d", required=True, help="its picker's binary")
    parser.add_argument("--load", default="build/release/ext_proc_load_bench", help="what makes the loads")
    parser.add_argument("--endpoints", type=int, nargs="+", default=[8, 100])
    parser.add_argument("--loads", type=lambda text: tuple(map(int, text.split("x"))), nargs="+",
                        default=[(100, 1000), (100, 100_000)], help="requests a second x tokens of a prompt, like 100x1000")
    parser.add_argument("--changes", type=int, default=10, help="of the metrics, with 50 requests each")
    parser.add_argument("--seconds", type=float, default=15, help="of each load")
    parser.add_argument("--short-pages", action="store_true", help="metrics of the replicas: only those that are read")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    messages = stubs()
    others = "" if options.short_pages else other_metrics(options.octavo)
    print(f"pages of {len(others) + len(PAGE)} bytes, {others.count(chr(10)) + 8} lines")
    with tempfile.TemporaryDirectory() as name:
        for count in options.endpoints:
            compare(options, count, messages, Path(name), others)


if __name__ == "__main__":
    main()
