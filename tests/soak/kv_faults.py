"""An hour of faults during transfers of KV blocks: no wrong token, no leaked block, no stuck request.

    .venv/bin/python tests/soak/kv_faults.py [--seconds 3600] [--every 10] [--seed 1] [--clients 8]

Five servers load blocks under constant random prompts: from a tier on a small disk, from host memory with such a disk
as a further tier, from a Redis store, from an S3-style store, and from a prefill server. At intervals the program
selects a fault at random, which lasts for a while:

    a decode server or the prefill server is killed (its engine, or all of it) and started again
    the disk is full (RLIMIT_FSIZE: files can no longer be written); files are damaged, cut or removed
    the disk is slow: its threads are stopped for moments (SIGSTOP of the engine)
    the stores return wrong data, hang, or lose data

Each answer is compared with that of a server without a cache: text and logprobs. A request whose server was killed is
sent again, until the server is back. Prints the counts. A wrong answer, a stuck request or a leaked block ends the
program with an error.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time

from kv_pairs import HOLD, TIGHT, Prompts, ask, left_over, peer, tier_at, tiers_at, words
from serving import Server, free_port

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from redis_stand_in import redis_stand_in
from s3_stand_in import KEYS, s3_stand_in

PATIENCE = 120  # time in seconds after which a request counts as stuck


class Mortal:
    """A server that restarts on its port."""

    def __init__(self, name, *flags, **environment):
        self.name, self.flags, self.environment, self.port, self.up = name, flags, environment, free_port(), asyncio.Event()
        self.loaded = self.failed = 0

    async def start(self):
        self.server = await asyncio.to_thread(lambda: Server(*self.flags, port=self.port, **self.environment))
        self.up.set()

    async def count(self):
        """Adds the server's loaded tokens, before its counters are lost."""
        with contextlib.suppress(OSError):
            self.loaded += await self.server.metric("vllm:external_prefix_cache_hits_total")
            self.failed += await self.server.metric("vllm:kv_transfer_failures_total")

    def engines(self):
        return [int(p.name) for p in self.server.processes()][1:]

    def signal_engine(self, number):
        for pid in self.engines():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    async def kill(self):
        await self.count()
        self.up.clear()
        self.server.process.kill()
        await asyncio.to_thread(self.server.process.wait)
        await asyncio.to_thread(self.server.drained.join)
        await self.start()


class Faults:
    def __init__(self, draws, ways, prefill, folder, prompts, stores):
        self.draws, self.ways, self.prefill, self.folder, self.prompts, self.stores = draws, ways, prefill, folder, prompts, stores
        self.count = collections.Counter()

    async def one(self):
        fault = self.draws.choice([self.killed, self.engine_killed, self.disk_full, self.disk_slow, self.spoilt, self.bad_store, self.forgetful_store])
        self.count[fault.__name__] += 1
        await fault()

    async def killed(self):
        await self.draws.choice([*self.ways, self.prefill]).kill()

    async def engine_killed(self):
        self.draws.choice([*self.ways, self.prefill]).signal_engine(signal.SIGKILL)

    async def disk_full(self):
        """The tier turns itself off, except its host memory. A new server finds the stored blocks."""
        disk = self.draws.choice(self.ways[:2])
        for pid in disk.engines():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        await asyncio.sleep(3)
        await disk.kill()

    async def disk_slow(self):
        disk = self.draws.choice(self.ways[:2])
        for _ in range(5):
            disk.signal_engine(signal.SIGSTOP)
            await asyncio.sleep(0.5)
            disk.signal_engine(signal.SIGCONT)
            await asyncio.sleep(0.2)

    async def spoilt(self):
        for _ in range(5):
            self.prompts.spoil(self.folder, *self.stores)

    async def bad_store(self):
        store, mood = self.draws.choice(self.stores), self.draws.choice(["lying", "hanging"])
        self.count[mood] += 1
        store.mood = mood
        await asyncio.sleep(5)
        store.mood = "good"

    async def forgetful_store(self):
        store = self.draws.choice(self.stores)
        with store.lock:
            store.values.clear()


async def faults(seconds, every, seed, clients):
    begin, prompts, ledger, wrong = time.perf_counter(), Prompts(seed), collections.Counter(), []
    with tempfile.TemporaryDirectory() as name, redis_stand_in() as (redis, values), s3_stand_in() as (s3, objects), contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        computed = Server("--no-enable-prefix-caching")
        stack.callback(computed.process.kill)
        ways = [Mortal("disk", tier_at(folder / "disk"), *TIGHT), Mortal("host", tiers_at(folder / "host"), *TIGHT),
                Mortal("redis", tier_at(redis), *TIGHT), Mortal("s3", tier_at(s3), *TIGHT, **KEYS), Mortal("peer", peer(), *TIGHT)]  # fmt: skip
        prefill = Mortal("prefill", peer())
        for each in [*ways, prefill]:
            await each.start()
            stack.callback(lambda each=each: each.server.process.kill())
        stores = [values, objects]
        drawn = Faults(prompts.draws, ways, prefill, folder, prompts, stores)

        async def answered(way, body):
            """Returns the answer of the server that finally has the port."""
            until = time.perf_counter() + PATIENCE
            while True:
                await way.up.wait()
                params = None
                if way.name == "peer":
                    with contextlib.suppress(OSError, ValueError, KeyError):
                        params = (await ask(prefill.server, {**body, "max_tokens": 1, "kv_transfer_params": HOLD}))["kv_transfer_params"]
                try:
                    return words(await ask(way.server, {**body, "kv_transfer_params": params} if params else body))
                except asyncio.TimeoutError:
                    raise
                except (OSError, ValueError, KeyError):
                    ledger["asked again"] += 1
                    if time.perf_counter() > until:
                        raise TimeoutError("stuck") from None
                    await asyncio.sleep(0.2)

        async def client():
            while time.perf_counter() < begin + seconds and not wrong:
                body = prompts.body()
                right = words(await ask(computed, body))
                for way in prompts.draws.sample(ways, len(ways)):
                    for _ in range(2):  # the second round may load blocks
                        try:
                            got = await answered(way, body)
                        except (TimeoutError, asyncio.TimeoutError) as error:
                            wrong.append((way.name, repr(error)))
                            return
                        ledger[way.name] += 1
                        if got != right:
                            wrong.append((way.name, got, right))

        async def trouble():
            while time.perf_counter() < begin + seconds and not wrong:
                await asyncio.sleep(every * prompts.draws.uniform(0.5, 1.5))
                await drawn.one()
                print(f"{time.perf_counter() - begin:.0f} s: {dict(ledger)}, faults {dict(drawn.count)}", file=sys.stderr, flush=True)

        await asyncio.gather(trouble(), *[client() for _ in range(clients)])
        print(f"{time.perf_counter() - begin:.0f} s, {len(wrong)} wrong or stuck; faults: {dict(drawn.count)}")
        for each in [*ways, prefill]:
            held = await left_over(each.server)
            await each.count()
            print(f"  {each.name:8} {ledger[each.name]:6} answers, {each.loaded:.0f} tokens loaded, {each.failed:.0f} loads failed, {held:.0f} blocks left over")
            if held:
                wrong.append(f"{each.name}: blocks are kept for nobody")
            if not each.loaded and each is not prefill and seconds >= 60:
                wrong.append(f"{each.name}: nothing was loaded")
        print(f"  asked again, because a server was gone: {ledger['asked again']}")
        for each in wrong[:5]:
            print(each)
        if wrong:
            sys.exit("not what it must be")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--every", type=float, default=10, help="seconds from one fault to the next, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    asyncio.run(faults(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
