"""Measures the gain and the cost of --kv-survives-engine, with which the KV cache outlives a crash of the engine.

    python kept_cache.py [--server PROGRAM] [--shape demo | 1b] [--rounds 5] [--sessions 4] [--context 7900] [--only kill | cost]

kill  Four sessions have 7,900 tokens each. The engine is killed in the middle of a stream, and the next turn of a session is sent at
      once. Prints the time to first token of this turn in ms: without a kill, after a kill with the flag, and after a kill without
      the flag. Also prints the time to first token of a prompt of one token after a kill, which is the time to load the model and
      run one step; how many prompt tokens the turn computes; and whether its output tokens are the same as without a kill.
cost  Tokens per second of streams and of prompts with the flag, as a fraction of the tokens per second without the flag. Both
      variants alternate.
"""

import argparse
import os
import pathlib
import random
import signal
import statistics
import tempfile
import threading
import time

from kv_tiers import longer_demo, random_1b
from server import PROGRAM, Server


def some_tokens(seed, count):
    draw = random.Random(seed)
    return [draw.randrange(4, 4000) for _ in range(count)]


def kill_within_a_stream(server, number):
    """Kills the engine after a random number of tokens of a stream, which continues in a thread."""
    pieces = server.stream(prompt="once upon a time", max_tokens=64)
    for _ in range(random.Random(number).randrange(1, 60)):
        next(pieces)
    os.kill(server.processes()[1], signal.SIGKILL)
    threading.Thread(target=lambda: list(pieces)).start()


def measure_kills(program, model, options):
    flags = [model, "--served-model-name=demo", "--enable-prompt-tokens-details", "--kv-cache-memory-bytes", options.cache_bytes]
    times = {"no kill": [], "killed, kept": [], "killed, not kept": [], "killed, one token": []}
    computed, differences, noted = [], 0, ""
    with Server(program, *flags) as server, Server(program, *flags, "--no-kv-survives-engine") as plain:
        texts = []
        for i in range(options.sessions):
            prompt = some_tokens(i, options.context)
            texts.append(prompt + server.timed_completion(prompt, 8, session_id=f"session-{i}")[1])
            plain.timed_completion(prompt, 8)
        for number in range(options.rounds):
            text = texts[number % len(texts)] + some_tokens(100 + number, 20)
            first, expected, _ = server.timed_completion(text, 8)
            times["no kill"].append(first)
            text = texts[number % len(texts)] + some_tokens(200 + number, 20)
            _, expected, _ = plain.timed_completion(text, 8)
            kill_within_a_stream(server, 3 * number)
            first, ids, cached = server.timed_completion(text, 8, session_id=f"session-{number % len(texts)}")
            times["killed, kept"].append(first)
            computed.append(len(text) - cached)
            differences += ids != expected
            kill_within_a_stream(plain, 3 * number + 1)
            times["killed, not kept"].append(plain.timed_completion(text, 8)[0])
            kill_within_a_stream(server, 3 * number + 2)
            times["killed, one token"].append(server.timed_completion([5], 1)[0])
        noted = f"{server.metric('vllm:kv_kept_blocks_total'):.0f} blocks kept, {server.metric('vllm:kv_kept_discarded_blocks_total'):.0f} discarded"
    for name, values in times.items():
        print(f"{name:<20} median {statistics.median(values) * 1e3:8.0f} ms, {min(values) * 1e3:.0f} to {max(values) * 1e3:.0f}", flush=True)
    print(f"tokens computed by a next turn after a kill: {min(computed)} to {max(computed)}; {differences} of {options.rounds} differ; {noted}")


def rates(server, number):
    """Returns the tokens per second of 8 streams and of 8 new prompts, each by elapsed time and by the engine's processor time."""
    found = []
    for prompt, tokens in ((100, 128), (1500, 1)):
        began, busy = time.perf_counter(), server.engine_seconds()
        threads = [threading.Thread(target=server.timed_completion, args=(some_tokens(1000 * number + i, prompt), tokens)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        all_tokens = 8 * (tokens if tokens > 1 else prompt)
        found += [all_tokens / (time.perf_counter() - began), all_tokens / (server.engine_seconds() - busy)]
    return found


def measure_cost(program, model, options):
    flags = [model, "--served-model-name=demo", "--enable-prompt-tokens-details", "--kv-cache-memory-bytes", options.cache_bytes]
    shares = []
    with Server(program, *flags) as kept, Server(program, *flags, "--no-kv-survives-engine") as plain:
        rates(kept, 0), rates(plain, 0)
        for number in range(1, 2 * options.rounds + 1):
            with_it, without = rates(kept, number), rates(plain, number)
            shares.append([a / b for a, b in zip(with_it, without)])
    names = ("streams, wall clock", "streams, processor", "prompts, wall clock", "prompts, processor")
    for name, values in zip(names, zip(*shares)):
        print(f"{name:<20} median {statistics.median(values):.3f}, {min(values):.3f} to {max(values):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--shape", choices=["demo", "1b"], default="demo")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--context", type=int, default=7900)
    parser.add_argument("--cache-bytes", type=int, default=1 << 30)
    parser.add_argument("--only", choices=["kill", "cost"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = {"demo": longer_demo, "1b": random_1b}[options.shape](pathlib.Path(folder) / "model")
        if options.only != "cost":
            measure_kills(options.server, model, options)
        if options.only != "kill":
            measure_cost(options.server, model, options)


if __name__ == "__main__":
    main()
