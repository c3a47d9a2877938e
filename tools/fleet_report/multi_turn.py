#!/usr/bin/env python3
"""Measures hit rate, balance and TTFT of routers and endpoint pickers, with multi-turn users, shared prompts and
stand-in servers.

    tools/fleet_report/multi_turn.py --sglang PYTHON --vllm PYTHON --llm-d EPP

64 users are in three groups, each with a system prompt. Every eighth user sends more, longer and more frequent
requests. The stand-ins have real schedulers and KV caches. For a picker, the program acts as a gateway (pickers.py),
then sends the request to the selected endpoint. Prints Markdown. Pickers need grpcio-tools. See
docs/design/measurements.md.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fidelity import free_port, program

REPLICAS = 4
USERS = 64
TIMING = {"fixed_us": 8000, "token_us": 90, "kv_token_us": 0.5}
_words = random.Random(7)
WORDS = ["".join(_words.choices("abcdefghijklmnopqrstuvwxyz", k=4)) for _ in range(3000)]
PICKER_CONFIG = """apiVersion: llm-d.ai/v1alpha1
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


def text(draw, count):
    return " ".join(draw.choices(WORDS, k=count))


class Direct:
    """Sends every request to one address: a router."""

    def __init__(self, port):
        self.port = port

    @contextmanager
    def place(self, body):
        yield self.port


class User(threading.Thread):
    def __init__(self, number, options, front, ttft, failures):
        super().__init__()
        self.number, self.options, self.front, self.ttft, self.failures = number, options, front, ttft, failures

    def ask(self, prompt):
        body = json.dumps({"model": self.options.model, "prompt": prompt, "max_tokens": 24, "ignore_eos": True, "stream": True,
                           "temperature": 0}).encode()
        began, said = time.perf_counter(), ""
        with self.front.place(body) as port:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status} {answer.read()[:100]}")
            first = None
            for line in answer:
                if line.startswith(b"data: {"):
                    first = first or time.perf_counter() - began
                    said += "".join(choice["text"] for choice in json.loads(line[6:])["choices"])
            connection.close()
        self.ttft.append(1e3 * first)
        return said

    def run(self):
        busy = self.number % 8 == 0
        draw = random.Random(100 + self.number)
        history = text(random.Random(self.number % 3), 60) + f" user{self.number} "
        time.sleep(2 * draw.random())
        for _ in range(10 if busy else 6):
            history += " " + text(draw, 60 if busy else 30)
            try:
                history += self.ask(history)
            except Exception as failure:  # a failure of one row does not end the others
                self.failures.append(repr(failure))
                return
            time.sleep(draw.expovariate(1 / (0.15 if busy else 0.6)))


def counters(urls):
    """Returns queries, hits, requests and prompt tokens of each server."""
    found = []
    for url in urls:
        page = urllib.request.urlopen(url + "/metrics", timeout=10).read().decode()
        names = ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "vllm:request_success_total",
                 "vllm:prompt_tokens_total")
        found.append([sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name + "{"))
                      for name in names])
    return found


def measure(name, options, urls, front):
    before, ttft, failures = counters(urls), [], []
    users = [User(i, options, front, ttft, failures) for i in range(USERS)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    change = [[b - a for a, b in zip(x, y)] for x, y in zip(before, counters(urls))]
    queries, hits = sum(row[0] for row in change), sum(row[1] for row in change)
    computed = [row[3] - row[1] for row in change]
    ttft.sort()
    at = [ttft[min(len(ttft) - 1, len(ttft) * share // 100)] for share in (50, 90, 99)] if ttft else [float("nan")] * 3
    print(f"| {name} | {hits / queries:.1%} | {', '.join(str(int(row[2])) for row in change)} | "
          f"{max(computed) / (sum(computed) / REPLICAS):.2f} | {at[0]:.0f}, {at[1]:.0f}, {at[2]:.0f} | {len(failures)} |", flush=True)
    for failure in failures[:1]:
        print(f"  first failure: {failure}")


def routers(options, events):
    found = {f"octavo route, {policy}": [options.octavo, "route", "--policy", policy] for policy in ("kv_aware", "cache_aware", "round_robin")}
    found["octavo route, kv_aware, events"] = [options.octavo, "route", "--policy", "kv_aware", "--tokenizer-path", options.model,
                                               "--kv-events", *events]
    for module, python in (("sglang_router", options.sglang), ("vllm_router", options.vllm)):
        if python:
            found[f"{module.replace('_', '-')}, cache_aware"] = [python, "-m", f"{module}.launch_router", "--policy", "cache_aware",
                                                                 "--prometheus-port", str(free_port())]
    return found


def measure_pickers(options, fresh_servers, folder):
    import pickers  # needs gRPC

    messages = pickers.stubs()
    commands = {"octavo pick, its default": ([options.octavo, "pick", "--host", "127.0.0.1"], []),
                "octavo pick, llm-d's default": ([options.octavo, "pick", "--host", "127.0.0.1"], ["--secure-serving=false"]),
                "llm-d's picker, its default": ([options.llm_d], ["--secure-serving=false", "--metrics-endpoint-auth=false", "--pool-name",
                                                                "pool", "--v", "0"])}
    for name, (command, flags) in commands.items():
        with fresh_servers() as (urls, _):
            endpoints, config = folder / "endpoints.yaml", folder / "config.yaml"
            endpoints.write_text(json.dumps({"endpoints": [{"name": f"e{i}", "address": "127.0.0.1", "port": url.rsplit(":", 1)[1]}
                                                           for i, url in enumerate(urls)]}))
            config.write_text(PICKER_CONFIG.replace("ENDPOINTS", str(endpoints)))
            flags = [*flags, "--config-file", config] if flags else ["--secure-serving=false", "--endpoints",
                                                                     *[url.removeprefix("http://") for url in urls]]
            with pickers.picker(command, flags) as (_, channel, _):
                measure(name, options, urls, pickers.Client(messages, channel))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--octavo", default="build/release/octavo")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--blocks", type=int, default=1500, help="KV blocks of each server")
    parser.add_argument("--sglang", help="interpreter that has sglang-router")
    parser.add_argument("--vllm", help="interpreter that has vllm-router")
    parser.add_argument("--llm-d", help="its picker's binary")
    options = parser.parse_args()
    options.model = str(Path(options.model).resolve())
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors\n")
    print("| | hit rate | requests of each server | largest share of computed prompt tokens / mean | TTFT p50, p90, p99 (ms) | failures |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "timing.json").write_text(json.dumps(TIMING))

        @contextmanager
        def fresh_servers():
            with ExitStack() as stack:
                first, events, replays = (random.randrange(10_000, 30_000, 16) for _ in range(3))
                config = {"enable_kv_cache_events": True, "endpoint": f"tcp://127.0.0.1:{events}",
                          "replay_endpoint": f"tcp://127.0.0.1:{replays}"}
                stack.enter_context(program([options.octavo, "serve", options.model, "--executor", f"simulated={folder / 'timing.json'}",
                                             "--stand-ins", REPLICAS, "--num-gpu-blocks-override", options.blocks, "--kv-events-config",
                                             json.dumps(config), "--disable-log-stats"], first))
                yield ([f"http://127.0.0.1:{first + i}" for i in range(REPLICAS)],
                       [f"tcp://127.0.0.1:{events + i},tcp://127.0.0.1:{replays + i}" for i in range(REPLICAS)])

        for router in routers(options, []):
            with fresh_servers() as (urls, events):
                command = routers(options, events)[router]
                with program([*command, "--host", "127.0.0.1", "--worker-urls", *urls], free_port()) as (_, url):
                    time.sleep(3)  # time to find its workers and their events
                    measure(router, options, urls, Direct(int(url.rsplit(":", 1)[1])))
        if options.llm_d:
            measure_pickers(options, fresh_servers, folder)


if __name__ == "__main__":
    main()
