"""Measures how long prompts slow down other streams, in two layouts: two complete servers, and one prefill and one decode server.

    python prefill_decode.py [--server PROGRAM] [--model DIR] [--prompt 4096] [--streams 8] [--seconds 20]

Each server runs on a separate processor, and `octavo route` distributes the requests. In each layout, the benchmark first runs only the
streams. Then the streams run again, and a client sends long prompts at the same time, one after the other. The benchmark prints
percentiles of the time between two tokens of a stream, the number of answered prompts, and the median time of a prompt. On a machine with
two processors, the router and the client take processor time from the servers.
"""

import argparse
import os
import pathlib
import random
import statistics
import tempfile
import threading
import time

from kv_tiers import connectors, longer_demo, peer
from server import PROGRAM, Server, Streams, report


def long_prompts(router, args, draws, stopped, times):
    while not stopped.is_set():
        prompt = [draws.randrange(300, 2000) for _ in range(args.prompt)]
        began = time.perf_counter()
        router.ask("/v1/completions", dict(prompt=prompt, max_tokens=1, temperature=0))
        times.append(time.perf_counter() - began)


def layout(name, router, args, draws):
    print(name)
    streams = Streams(router, args.streams)
    time.sleep(args.seconds)
    alone = report("  alone", streams.stop())
    streams, stopped, times = Streams(router, args.streams), threading.Event(), []
    time.sleep(1)
    before = len(streams.gaps)
    prompts = threading.Thread(target=long_prompts, args=(router, args, draws, stopped, times))
    prompts.start()
    time.sleep(args.seconds)
    stopped.set()
    prompts.join()
    beside = report("  beside", streams.stop()[before:])
    print(f"  p99 {beside / alone:.2f} times that alone; {len(times)} prompts of {args.prompt} tokens, {statistics.median(times):.2f} s each", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--prompt", type=int, default=4096, help="tokens")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    processors = [{processor} for processor in sorted(os.sched_getaffinity(0))]
    draws = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        model = args.model or longer_demo(pathlib.Path(scratch) / "model")
        limits = [model, "--device", "cpu", "--max-model-len", args.prompt + 64, "--max-num-seqs", args.streams + 4]
        with Server(args.server, *limits, processors=processors[0]) as one, Server(args.server, *limits, processors=processors[1]) as other, \
             Server(args.server, "--worker-urls", one.base, other.base, "--policy", "least_loaded", command="route") as router:  # fmt: skip
            layout("two servers that do all", router, args, draws)
        limits += connectors(peer())
        with Server(args.server, *limits, processors=processors[0]) as first, Server(args.server, *limits, processors=processors[1]) as second, \
             Server(args.server, "--pd-disaggregation", "--prefill", first.base, "--decode", second.base, command="route") as router:  # fmt: skip
            layout("prompts on one, tokens on the other", router, args, draws)


if __name__ == "__main__":
    main()
