"""Compares sessions with plain LRU on the load of agents: hit rate and time to first token (TTFT).

    python agent_sessions.py [--server PROGRAM] [--sessions 64] [--memory 24] [--turns 33] [--rounds 1]

Each agent has 33 turns. The prompt of a turn is the text so far and the result of a tool, and the ratio of input to output tokens is
131:1. Between two turns, the agent waits for a tool: the pauses are log-normal. When an agent has ended, a new one begins. The server
simulates its device (token_us microseconds per computed token), so that the cache, the scheduler and the protocol are real, and the
computation is a wait.

Each line of the table is one server:
- `memory` is the number of agents of average length that fit into the KV cache.
- `lru` sends no session names. `sessions` sends session_id. `+ host` adds a tier in host memory that holds all agents.
- `hits` is the fraction of prompt tokens that were cached, in percent; `ideal` is this fraction if nothing is ever evicted.
"""

import argparse
import json
import pathlib
import random
import statistics
import tempfile
import threading
import time

from server import PROGRAM, ROOT, Server

SHARED, OWN, RESULT, OUTPUT, BLOCK = 128, 72, 46, 8, 16
TIMING = dict(fixed_us=1000, token_us=20, kv_token_us=0.01)
GROWTH = RESULT + OUTPUT


class Agent:
    """A conversation. `number` makes its tokens and its name unique."""

    def __init__(self, number, turns, done=0):
        self.draw = random.Random(number)
        self.name, self.turns, self.done = f"agent-{number}", turns, done
        self.text = [1000 + i for i in range(SHARED)] + self.tokens(OWN + done * GROWTH)

    def tokens(self, count):
        return [self.draw.randrange(4, 4000) for _ in range(count)]

    def extend(self, output):
        self.text += output + self.tokens(RESULT)
        self.done += 1


class Load:
    def __init__(self, server, options, named, pause):
        self.server, self.options, self.named, self.pause = server, options, named, pause
        self.lock, self.results, self.number = threading.Lock(), [], 0
        self.left = int(options.sessions * options.turns * options.rounds)

    def next_agent(self, done=0):
        with self.lock:
            self.number += 1
            return Agent(self.number, self.options.turns, done)

    def take_turn(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def turn(self, agent):
        session = {"session_id": agent.name} if self.named else {}
        first, output, cached = self.server.timed_completion(agent.text, OUTPUT, **session)
        with self.lock:
            self.results.append((len(agent.text), cached, first, agent.done == 0))
        agent.extend(output)

    def run_agent(self, seat):
        draw = random.Random(seat)
        agent = self.next_agent(draw.randrange(self.options.turns))
        time.sleep(draw.random() * self.pause[0])
        while self.take_turn():
            self.turn(agent)
            if agent.done >= agent.turns:
                agent = self.next_agent()
            time.sleep(draw.lognormvariate(0, self.pause[1]) * self.pause[0])

    def run(self):
        began = time.perf_counter()
        threads = [threading.Thread(target=self.run_agent, args=(seat,)) for seat in range(self.options.sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began


def report(options, memory, pause, kind, load, seconds):
    # The first turn of each seat finds nothing, whatever the order of eviction is.
    results = load.results[options.sessions * 3:]
    prompts = sum(length for length, *_ in results)
    hits = sum(cached for _, cached, *_ in results) / prompts
    ideal = sum((SHARED if new else length - GROWTH) // BLOCK * BLOCK for length, _, _, new in results) / prompts
    first = sorted(time for _, _, time, _ in results)
    p50, p99 = statistics.median(first), first[int(0.99 * len(first))]
    print(f"{memory:>6} | {pause[0]:>5} s x e^{pause[1]:<3} | {kind:<15} | {hits:6.1%} | {ideal:6.1%} | {p50 * 1e3:7.0f} | {p99 * 1e3:7.0f} | "
          f"{len(load.results) / seconds:7.1f}", flush=True)
    return hits


def measure(options, memory, pause, named, tier):
    average = SHARED + OWN + options.turns // 2 * GROWTH
    blocks = memory * average // BLOCK
    flags = [ROOT / "models/demo", "--served-model-name=demo", "--enable-prompt-tokens-details", "--device=cpu", "--max-num-seqs=16",
             f"--num-gpu-blocks-override={blocks}", "--max-num-queued-reqs=1000", "--log-level=error"]
    if tier:
        extra = {"cpu_bytes_to_use": 1 << 24, "offload_prompt_only": False}
        flags += ["--kv-transfer-config", json.dumps({"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
                                                      "kv_connector_extra_config": extra})]
    with tempfile.TemporaryDirectory() as folder:
        timing = pathlib.Path(folder) / "timing.json"
        timing.write_text(json.dumps(TIMING))
        with Server(options.server, *flags, f"--executor=simulated={timing}") as server:
            load = Load(server, options, named, pause)
            seconds = load.run()
    return report(options, memory, pause, ("sessions" if named else "lru") + (" + host" if tier else ""), load, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--memory", type=int, default=24)
    parser.add_argument("--turns", type=int, default=33)
    parser.add_argument("--rounds", type=float, default=1)
    parser.add_argument("--only", choices=["short", "irregular", "plenty", "tiers"])
    options = parser.parse_args()
    options.rounds = max(options.rounds, 0.1)
    cases = dict(short=(options.memory, (0.5, 0.5), False), irregular=(options.memory, (1.0, 1.5), False),
                 plenty=(2 * options.sessions, (0.5, 0.5), False), tiers=(options.memory, (0.5, 0.5), True))
    print("memory | pauses         | cache           |   hits |  ideal | p50 TTFT ms | p99 | turns/s")
    for name, (memory, pause, tier) in cases.items():
        if options.only not in (None, name):
            continue
        hits = [measure(options, memory, pause, named, tier) for named in (False, True)]
        print(f"       {name}: sessions find {hits[1] / max(hits[0], 1e-9):.2f} x the tokens of LRU", flush=True)


if __name__ == "__main__":
    main()
