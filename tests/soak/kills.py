"""Kills a process of the server at intervals, with streams in flight: no token is lost or wrong, and no process remains.

    .venv/bin/python tests/soak/kills.py [--seconds 600] [--every 20] [FLAG ...]

FLAGs are those of `octavo serve`, for example --tensor-parallel-size=2 or --data-parallel-size=2. Each time, the
program selects a process at random: the front end, an engine or a rank. After the death of an engine or a rank, every
stream must continue to its end. After the death of the front end, the clients' connections break, all other processes
must end, and a new server uses the port. Each answer is compared with that of an undisturbed server.
"""

import argparse
import asyncio
import collections
import os
import pathlib
import random
import signal
import sys
import time

from serving import Server, ask, completion

STREAMS = 64


def children(pid):
    """Returns all descendants of a process."""
    try:
        own = " ".join(f.read_text() for f in pathlib.Path(f"/proc/{pid}").glob("task/*/children")).split()
    except OSError:
        return []
    return [int(child) for child in own] + [below for child in own for below in children(child)]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def shared_memory():
    return {path.name for path in pathlib.Path("/dev/shm").iterdir() if "octavo" in path.name}


async def gone(pids):
    """Waits until none of these processes exists."""
    for _ in range(100):
        if not any(alive(pid) for pid in pids):
            return
        await asyncio.sleep(0.1)
    sys.exit(f"left behind: {[pid for pid in pids if alive(pid)]}")


async def kills(seconds, every, flags):
    flags = ["--max-num-seqs=64", *flags]
    server, before = Server(*flags), shared_memory()
    bodies = [completion(f"Story {i}: once upon a time", 60 + 10 * i) for i in range(40)]
    expected = [(await ask(server, body)).text for body in bodies]
    ledger, killed, draws = collections.Counter(), collections.Counter(), random.Random(4)
    end, started = time.monotonic() + seconds, 0  # started: number of servers that replaced a killed server
    ready = asyncio.Event()
    ready.set()

    async def client():
        while time.monotonic() < end:
            await ready.wait()
            i, mine = draws.randrange(len(bodies)), started
            ledger["accepted"] += 1
            try:
                answer = await ask(server, bodies[i])
            except (OSError, EOFError):  # includes asyncio's IncompleteReadError
                answer = None
            if answer and answer.status == 200 and answer.done:
                ledger["right" if answer.text == expected[i] else "wrong"] += 1
            elif not ready.is_set() or mine != started:
                ledger["told"] += 1  # requests whose connection broke when their server died
            else:
                ledger["lost"] += 1

    async def killer():
        nonlocal server, started
        while time.monotonic() < end - every:
            await asyncio.sleep(every)
            front, rest = server.process.pid, children(server.process.pid)
            if draws.random() < 0.25 or not rest:
                killed["front end"] += 1
                ready.clear()
                os.kill(front, signal.SIGKILL)
                server.process.wait()
                await gone(rest)
                server, started = await asyncio.to_thread(Server, *flags, port=server.port), started + 1
                ready.set()
            else:
                killed["engine or rank"] += 1
                os.kill(draws.choice(rest), signal.SIGKILL)

    await asyncio.gather(killer(), *[client() for _ in range(STREAMS)])
    last = [server.process.pid, *children(server.process.pid)]
    await server.stop()
    await gone(last)
    print(f"killed {dict(killed)}; {dict(ledger)}; accepted minus answered or told "
          f"{ledger['accepted'] - ledger['right'] - ledger['wrong'] - ledger['told']}")
    if ledger["lost"] or ledger["wrong"] or not ledger["right"] or shared_memory() - before:
        sys.exit("answers were lost or wrong, or memory is left behind")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=20, help="seconds from one kill to the next")
    options, flags = parser.parse_known_args()
    asyncio.run(kills(options.seconds, options.every, flags))


if __name__ == "__main__":
    main()
