"""All programs of a fleet under agents' traffic, with one of them killed at intervals: no request is lost.

    tools/kube_apiserver.sh build/kube-apiserver
    .venv/bin/python tests/soak/fleet_joints.py --apiserver build/kube-apiserver [--seconds 600] [--every 10]

Four `octavo serve --executor simulated` of two ranks each are pods of a Kubernetes cluster (without --apiserver:
tests/e2e/kube_stand_in.py) and register in an etcd. `octavo route` watches the etcd. `octavo pick` watches the
cluster and serves Envoy. A second `octavo route` has a prefill and a decode server (models/demo), and a queue for
requests while one of them restarts. Agents hold conversations over /v1/chat/completions, /v1/messages and
/v1/responses through these three front ends; half of the conversations are streamed.

The first phase (--calm) has no disturbance. Then the program kills one of: a replica, an engine, the prefill server,
the decode server, the etcd, the picker, a router, the cluster's API server (with its history). A killed program starts
again on its port.

Each request ends in one of these ways:
- answered
- refused: with a status and a message, or with an error in its stream
- broken: its connection ended, because the router, or a replica or the picker with Envoy, was killed or has not
  restarted (without the picker, Envoy returns 500 without a text)
- lost: any other end, such as no end within 90 s, or an answer that breaks off

The program counts them. A lost request ends the program with an error. Hits are the cached share of the prompt tokens
of answers.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

import httpx
import yaml

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from conftest import eventually, fetch, free_port
from etcd_server import Etcd
from kube_stand_in import kubernetes, pod
from kills import children
from kubernetes import Api, create_pool, kinds_are_defined, pod_command
from serving import timing
from test_kubernetes import APP, PODS, POOLS, pool
from test_pick import envoy, ready

OCTAVO = "build/release/octavo"
PROTOCOLS = ("chat", "messages", "responses")
FRONTS = ("route", "pick", "pd")
SYSTEM = "You are a careful agent that works on a large code base with many tools. " * 12
LIMIT_S = 90  # time in seconds after which an answer counts as lost


class Part:
    """A program of the fleet that is killed and started again on its port."""

    def __init__(self, name, command, port, host="127.0.0.1", started=lambda: None, killed=lambda: None):
        self.name, self.command, self.started, self.killed = name, command, started, killed
        self.base = f"http://{host}:{port}"
        self.kills, self.is_down = 0, False
        self.start()

    def start(self):
        self.process = subprocess.Popen(shlex.split(self.command), stderr=subprocess.DEVNULL)
        assert eventually(self.is_ready, LIMIT_S), f"{self.name} does not start: {self.command}"
        self.is_down = False
        self.started()

    def is_ready(self):
        assert self.process.poll() is None, f"{self.name} ended: {self.command}"
        with contextlib.suppress(OSError):
            return fetch(self.base + "/health") is not None

    def kill(self):
        self.kills, self.is_down = self.kills + 1, True
        self.process.kill()
        self.process.wait()
        self.killed()

    def kill_engine(self):
        engines = children(self.process.pid)
        os.kill(random.choice(engines), signal.SIGKILL)

    def stop(self):
        self.process.terminate()
        if self.process.wait(LIMIT_S) != 0:
            sys.exit(f"{self.name} ended with {self.process.returncode}")


class StandIn:
    """The API server of the end-to-end tests."""

    def __init__(self, stack, port):
        self.cluster, self.url = stack.enter_context(kubernetes())
        self.cluster.put(POOLS, pool([port]))

    def pod(self, name, ip, ready):
        self.cluster.put(PODS, pod(name, ip, APP, ready=ready))

    def program(self, command):
        return f"{command} --kube-api {self.url} --pool-name pool"

    def disturb(self):
        self.cluster.expire(PODS, lambda: None)


class Cluster:
    """Kubernetes' API server. The picker has the rights of deploy/kubernetes/pick.yaml."""

    def __init__(self, stack, port, apiserver, folder):
        folder.mkdir()
        self.api = Api(apiserver, folder)
        stack.callback(self.api.close)
        kinds_are_defined(self.api)
        create_pool(self.api, port)

    def pod(self, name, ip, ready):
        self.api.pod(name, ip, APP, ready)

    def program(self, command):
        return pod_command(self.api, "octavo-pick", f"{command} --pool-name octavo")

    def disturb(self):
        self.api.kill()
        self.api.forget()
        self.api.start()


class Fleet:
    def __init__(self, stack, folder, apiserver):
        port = free_port()
        self.cluster = Cluster(stack, port, apiserver, folder / "cluster") if apiserver else StandIn(stack, port)
        self.etcd = Etcd(folder / "etcd")
        stack.callback(self.etcd.stop)
        step = stack.enter_context(timing(fixed_us=20_000, token_us=20))
        self.replicas = [self.replica(i, port, step) for i in range(4)]
        self.prefill, self.decode = (self.half(role) for role in ("kv_producer", "kv_consumer"))
        self.route = self.front("route", f"route --migration-limit 3 --worker-etcd {self.etcd.url}")
        self.pd = self.front("pd", f"route --pd-disaggregation --queue-size 20 --prefill {self.prefill.base} --decode {self.decode.base}")
        grpc, metrics = free_port(), free_port()
        picker = f"{OCTAVO} pick --secure-serving=false --host 127.0.0.1 --grpc-health-port 0 --grpc-port {grpc} --metrics-port {metrics}"
        self.pick = Part("pick", self.cluster.program(picker), metrics)
        self.parts = [*self.replicas, self.prefill, self.decode, self.route, self.pd, self.pick]
        hosts = [{"endpoint": {"address": {"socket_address": {"address": f"127.0.0.{i + 2}", "port_value": port}}}} for i in range(4)]
        self.gateway = stack.enter_context(envoy(folder, grpc, (1, 2, 3), lambda text: to_hosts(text, hosts)))
        self.bases = {"route": self.route.base, "pd": self.pd.base, "pick": self.gateway}

    def replica(self, i, port, step):
        host = f"127.0.0.{i + 2}"
        events = json.dumps({"enable_kv_cache_events": True, "endpoint": f"tcp://*:{free_port(2)}"})
        command = (f"{OCTAVO} serve --host {host} --port {port} {step} -dp 2 --max-model-len 32768 --enable-prompt-tokens-details "
                   f"--register-etcd {self.etcd.url} --register-lease-secs 2 --kv-events-config '{events}'")
        return Part(f"replica {i}", command, port, host, lambda: self.cluster.pod(f"p{i}", host, True),
                    lambda: self.cluster.pod(f"p{i}", host, False))

    def half(self, role):
        port = free_port()
        transfer = json.dumps({"kv_connector": "NixlConnector", "kv_role": role, "kv_port": free_port()})
        return Part(role, f"{OCTAVO} serve --port {port} --enable-prompt-tokens-details --kv-transfer-config '{transfer}'", port)

    def front(self, name, flags):
        port = free_port()
        return Part(name, f"{OCTAVO} {flags} --port {port}", port)

    def ready(self):
        """Waits until every front end has all of its workers."""
        def workers(front):
            return [w["is_healthy"] for w in json.loads(fetch(front.base + "/workers"))["workers"]]
        return (workers(self.route) == [True] * 8 and workers(self.pd) == [True] * 2
                and ready(self.pick.base) == 8)

    def disturb(self, draws):
        """Kills one program and starts it again. Returns its kind."""
        kind = draws.choice(("replica", "replica", "engine", "prefill or decode", "etcd", "pick", "router", "cluster"))
        if kind == "engine":
            draws.choice(self.replicas).kill_engine()
        elif kind == "etcd":
            self.etcd.process.kill()
            self.etcd.process.wait()
            time.sleep(3)  # longer than a lease
            self.etcd.start()
        elif kind == "cluster":
            self.cluster.disturb()
        else:
            part = draws.choice({"replica": self.replicas, "pick": [self.pick], "router": [self.route, self.pd],
                                 "prefill or decode": [self.prefill, self.decode]}[kind])
            part.kill()
            time.sleep(draws.uniform(0.5, 4))
            part.start()
        return kind

    def behind(self, front):
        """Returns the programs whose death may break a connection of this front end's clients."""
        return {"route": [self.route], "pd": [self.pd], "pick": [*self.replicas, self.pick]}[front]


def to_hosts(text, hosts):
    config = yaml.safe_load(text)
    replicas = next(c for c in config["static_resources"]["clusters"] if c["name"] == "replicas")
    replicas["load_assignment"]["endpoints"] = [{"lb_endpoints": hosts}]
    return yaml.safe_dump(config)


def body_of(protocol, turns, stream):
    more = {"model": "demo", "stream": stream, "temperature": 0}
    if protocol == "chat":
        options = {"stream_options": {"include_usage": True}} if stream else {}
        return "/v1/chat/completions", {"messages": [{"role": "system", "content": SYSTEM}, *turns], "max_tokens": 24, **more, **options}
    if protocol == "messages":
        return "/v1/messages", {"system": SYSTEM, "messages": turns, "max_tokens": 24, **more}
    return "/v1/responses", {"instructions": SYSTEM, "input": turns, "max_output_tokens": 24, "store": False, **more}


def events_of(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def read_answer(protocol, text, stream):
    """Returns whether the answer is complete, its text and its usage. If its stream has an error, returns the error's
    message."""
    if not stream:
        answer = json.loads(text)
        done = True
    else:
        events = events_of(text)
        error = next((e for e in events if e.get("error") or e.get("type") in ("error", "response.failed")), None)
        if error:
            return "refused", json.dumps(error), {}
        if protocol == "chat":
            done = "data: [DONE]" in text
            answer = {"usage": next((e["usage"] for e in events if e.get("usage")), {}),
                      "choices": [{"message": {"content": "".join(c["delta"].get("content") or "" for e in events for c in e["choices"])}}]}
        elif protocol == "messages":
            done = any(e["type"] == "message_stop" for e in events)
            answer = {"content": [{"text": "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")}],
                      "usage": {k: v for e in events for k, v in (e.get("usage") or e.get("message", {}).get("usage") or {}).items()}}
        else:
            ends = [e["response"] for e in events if e["type"] in ("response.completed", "response.incomplete")]
            done, answer = bool(ends), ends[0] if ends else {}
    if not done:
        return "cut", text[-200:], {}
    usage = answer.get("usage") or {}
    if protocol == "chat":
        details = usage.get("prompt_tokens_details") or {}
        return "answered", answer["choices"][0]["message"]["content"] or "", (details.get("cached_tokens", 0), usage.get("prompt_tokens", 0))
    if protocol == "messages":
        cached = usage.get("cache_read_input_tokens") or 0
        return "answered", "".join(c.get("text", "") for c in answer["content"]), (cached, cached + usage.get("input_tokens", 0))
    said = "".join(c.get("text", "") for item in answer["output"] for c in item.get("content") or [])
    return "answered", said, ((usage.get("input_tokens_details") or {}).get("cached_tokens", 0), usage.get("input_tokens", 0))


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.ends = collections.Counter()  # by front end and by outcome
        self.tokens = collections.Counter()  # cached tokens and all tokens, by front end
        self.samples = collections.defaultdict(list)

    def add(self, front, end, note="", tokens=(0, 0)):
        with self.lock:
            self.ends[front, end] += 1
            self.tokens[front, "cached"] += tokens[0]
            self.tokens[front, "all"] += tokens[1]
            if end != "answered" and len(self.samples[end]) < 8:
                self.samples[end].append(f"{front}: {note[:200]}")

    def count(self, end):
        return sum(n for (_, e), n in self.ends.items() if e == end)

    def hits(self, front):
        return self.tokens[front, "cached"] / max(1, self.tokens[front, "all"])

    def show(self, title):
        print(f"{title}: {sum(self.ends.values())} requests")
        for front in FRONTS:
            ends = {end: self.ends[front, end] for end in ("answered", "refused", "broken", "lost")}
            print(f"  {front:6} " + "  ".join(f"{end} {n:5}" for end, n in ends.items()) + f"  hits {self.hits(front):.3f}")
        for end, samples in self.samples.items():
            print(*(f"    {end}: {sample}" for sample in samples), sep="\n")


def post(client, url, body):
    """Returns the status, the text, and the error that cut the text short, or None."""
    text = ""
    with client.stream("POST", url, json=body) as reply:
        try:
            for piece in reply.iter_text():
                text += piece
        except httpx.RemoteProtocolError as error:
            return reply.status_code, text, error
    return reply.status_code, text, None


def ask(client, fleet, front, protocol, turns, stream):
    """Sends one request. Returns its end, its text or message, and its tokens."""
    path, body = body_of(protocol, turns, stream)
    before = {part: part.kills for part in fleet.behind(front)}
    note = f"{protocol}{' stream' if stream else ''}: "
    try:
        status, text, error = post(client, fleet.bases[front] + path, body)
        if error and not (stream and text.endswith("\n\n") and read_answer(protocol, text, stream)[0] == "refused"):
            raise error  # a router ends a stream irregularly after an error event
        if status == 200:
            end, text, tokens = read_answer(protocol, text, stream)
            return ("lost", note + text, (0, 0)) if end == "cut" else (end, text, tokens or (0, 0))
        if text.strip():
            return "refused", f"{status} {text}", (0, 0)
        # A retry should have prevented this error, except if Envoy has no picker.
        text, behind = f"{status} without a text", [fleet.pick] if front == "pick" else []
    except (httpx.TimeoutException, json.JSONDecodeError, KeyError) as error:
        return "lost", note + repr(error), (0, 0)  # the connections of a killed program end immediately
    except httpx.TransportError as error:
        text, behind = repr(error), fleet.behind(front)
    was_killed = eventually(lambda: any(part.is_down or part.kills != before[part] for part in behind), 2)
    return ("broken" if was_killed else "lost"), note + text, (0, 0)


def agent(number, fleet, ledger, end_at, draws):
    front, protocol = FRONTS[number % 3], PROTOCOLS[number // 3 % 3]
    with httpx.Client(timeout=LIMIT_S, limits=httpx.Limits(max_keepalive_connections=0)) as client:
        turns = []
        while time.monotonic() < end_at:
            if len(turns) >= 10:
                turns = []
            turns.append({"role": "user", "content": f"Agent {number}, step {draws.randrange(10**6)}: read the next file and say what to do."})
            end, text, tokens = ask(client, fleet, front, protocol, turns, draws.random() < 0.5)
            ledger.add(front, end, text, tokens)
            if end == "answered":
                turns.append({"role": "assistant", "content": text or "-"})
            else:
                turns.pop()
                time.sleep(0.5)
            time.sleep(draws.uniform(0, 0.6))


def traffic(fleet, agents, seconds, disturb=None):
    ledger, end_at = Ledger(), time.monotonic() + seconds
    threads = [threading.Thread(target=agent, args=(i, fleet, ledger, end_at, random.Random(i))) for i in range(agents)]
    for thread in threads:
        thread.start()
    killed = disturb(end_at) if disturb else {}
    for thread in threads:
        thread.join()
    return ledger, killed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=10, help="seconds from one kill to the next")
    parser.add_argument("--calm", type=float, default=120, help="seconds without kills")
    parser.add_argument("--agents", type=int, default=9)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--apiserver", help="Kubernetes' API server (tools/kube_apiserver.sh); default: a stand-in")
    options = parser.parse_args()
    draws = random.Random(options.seed)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fleet = Fleet(stack, folder, options.apiserver)
        assert eventually(fleet.ready, LIMIT_S), "a front does not see all of its workers"
        calm, _ = traffic(fleet, options.agents, options.calm)
        calm.show("undisturbed")

        def disturb(end_at):
            killed = collections.Counter()
            while (begun := time.monotonic()) < end_at - options.every:
                killed[fleet.disturb(draws)] += 1
                time.sleep(max(0, options.every - (time.monotonic() - begun)))
            return killed

        disturbed, killed = traffic(fleet, options.agents, options.seconds, disturb)
        disturbed.show(f"killed {dict(killed)}")
        for front in FRONTS:
            print(f"  {front:6} hits {disturbed.hits(front):.3f} of {calm.hits(front):.3f} undisturbed")
        is_whole = eventually(fleet.ready, LIMIT_S)
        for part in reversed(fleet.parts):
            part.stop()
    lost = calm.count("lost") + disturbed.count("lost")
    silent = [front for front in FRONTS if not disturbed.ends[front, "answered"]]
    if lost or not is_whole or silent or calm.count("answered") != sum(calm.ends.values()):
        sys.exit(f"{lost} requests were lost" if lost else "the fleet is not whole at the end, a front has answered nothing, or the undisturbed run had refusals")


if __name__ == "__main__":
    main()
