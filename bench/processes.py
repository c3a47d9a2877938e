"""Measures what separate processes cost, as ratios. All variants alternate within one run.

    python processes.py [--server PROGRAM] [--model DIR] [--streams 64] [--tokens 64] [--rounds 5]

engine         Compares an engine in a separate process with an engine in the server's process (--no-engine-process): the time between
               two tokens of one stream, and the tokens per second of `streams` simultaneous requests.
data parallel  Compares the tokens per second of one server with two engines, and of two servers with one engine each, between which
               the client alternates.

Tokens per second are given by elapsed time and by the servers' processor time, which other programs disturb less.
"""

import argparse
import contextlib
import itertools
import pathlib
import statistics
from concurrent.futures import ThreadPoolExecutor

from server import PROGRAM, ROOT, Server
from time import perf_counter


def throughput(servers, args, numbers):
    """Returns tokens per second of elapsed time, and tokens per second of processor time."""
    def answer(i):
        number = next(numbers)
        return sum(1 for _ in servers[i % len(servers)].stream(prompt=f"Story {number}: once upon a time", max_tokens=args.tokens, temperature=1, seed=number))

    began, used = perf_counter(), sum(server.processor_seconds() for server in servers)
    with ThreadPoolExecutor(args.streams) as pool:
        count = sum(pool.map(answer, range(2 * args.streams)))
    return count / (perf_counter() - began), count / (sum(server.processor_seconds() for server in servers) - used)


def gap(server, numbers):
    """Returns the median time between two tokens of one stream, in microseconds."""
    number = next(numbers)
    times = server.stream(prompt=f"Story {number}: once upon a time", max_tokens=400, temperature=1, seed=number)
    return statistics.median(after - before for before, after in itertools.pairwise(times)) * 1e6


def compare(name, one, other, args, numbers):
    rounds = []
    for turn in range(args.rounds + 1):
        found = [throughput(servers, args, numbers) for servers in (one, other)]
        if turn > 0:
            rounds.append([mine / theirs for mine, theirs in zip(*found)])
    clock, processor = map(statistics.median, zip(*rounds))
    print(f"{name}: throughput {clock:.3f} by the clock, {processor:.3f} by processor time, {args.streams} streams", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/demo")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    numbers = itertools.count()
    flags = [args.model, "--device", "cpu", "--max-num-seqs", args.streams]
    with Server(args.server, *flags) as own, Server(args.server, *flags, "--no-engine-process") as same:
        gaps = [(gap(own, numbers), gap(same, numbers)) for _ in range(2 * args.rounds)]
        print(f"engine in its own process: {statistics.median(a for a, _ in gaps):.0f} us between tokens, in the server's {statistics.median(b for _, b in gaps):.0f} us, "
              f"{statistics.median(a - b for a, b in gaps):+.0f} us")
        compare("engine in its own process over in the server's", [own], [same], args, numbers)
    with contextlib.ExitStack() as stack:
        both = stack.enter_context(Server(args.server, *flags, "--data-parallel-size", 2))
        each = [stack.enter_context(Server(args.server, *flags, "--cpu-threads", 1)) for _ in range(2)]
        compare("two engines behind one server over two servers", [both], each, args, numbers)


if __name__ == "__main__":
    main()
