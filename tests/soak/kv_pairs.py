"""One prompt, many sources of its KV blocks: with each source, tokens and logprobs equal those of a server that computes
the whole prompt.

    .venv/bin/python tests/soak/kv_pairs.py --count 30000

Rounds of random prompts, some with a prefix of earlier ones. Each prompt is sent to a server without a prefix cache.
Then it is sent to servers that have the blocks: computed; cached; in host memory with a disk as a further tier; on
disk; in a Redis or S3-style store that another server has filled; on a prefill server over shared memory, TCP and (if
installed) UCX; in blocks of another size; on a server that is killed during the request. All servers have so little
memory that requests are preempted. Text and logprobs must be bit-identical. Between rounds, blocks on disk and in the
store are damaged, cut and removed.

Prints a table. A wrong answer, a missing answer, or a block that no request holds but that is not freed ends the
program with an error.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from serving import ROOT, Server, free_port, http

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from redis_stand_in import redis_stand_in
from s3_stand_in import KEYS, s3_stand_in

LIMIT = 120  # time in seconds after which a request counts as stuck
HOLD = {"do_remote_decode": True, "do_remote_prefill": False}
TIGHT = ["--num-gpu-blocks-override=80", "--max-model-len=1024", "--max-num-seqs=16"]
LARGER = ["--block-size=32", "--num-gpu-blocks-override=40", *TIGHT[1:]]


def connector(name, **extra):
    return "--kv-transfer-config=" + json.dumps({"kv_connector": name, "kv_role": "kv_both", "kv_connector_extra_config": extra})


def peer(**extra):
    return connector("NixlConnector", side_channel_port=0, kv_lease_duration=10, **extra)


def tier_at(place):
    return connector("SharedStorageConnector", shared_storage_path=str(place), bytes_to_use=64 << 20, load_always=True)


def tiers_at(folder):
    """Returns the flag for host memory of about the size of the cache, with a disk as a further tier."""
    return connector("OffloadingConnector", cpu_bytes_to_use=4 << 20, load_always=True,
                     secondary_tiers=[{"type": "fs", "root_dir": str(folder), "bytes_to_use": 64 << 20}])


async def ask(server, body):
    """Returns the response as JSON. Errors: the connection broke, or the status is not 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(http(body))
        reply = await asyncio.wait_for(reader.read(), LIMIT)
    finally:
        writer.close()
    head, _, text = reply.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"{head.decode()[:30]}: {text.decode()[:300]}")
    return json.loads(text)


def words(reply):
    choice = reply["choices"][0]
    return choice["text"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"], choice["finish_reason"]


class Prefill:
    """A server that computes prompts for others, and is killed at intervals."""

    def __init__(self, *flags, model="demo"):
        self.flags, self.model, self.port = flags, model, free_port()
        self.start()

    def start(self):
        self.server = Server(*self.flags, port=self.port, model=self.model)

    def kill(self, all_of_it):
        """Kills its engine, which restarts by itself, or the whole server."""
        front_end, *engines = [int(p.name) for p in self.server.processes()]
        for pid in [front_end] if all_of_it else engines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if all_of_it:
            self.server.process.wait()
            self.server.drained.join()
            self.start()

    async def params(self, body):
        """Returns the fields that a router sends to the decode server, or None if the prefill server fails."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return (await ask(self.server, {**body, "max_tokens": 1, "kv_transfer_params": HOLD}))["kv_transfer_params"]


async def two_legs(prefill, decode, body):
    params = await prefill.params(body)
    return await ask(decode, {**body, "kv_transfer_params": params} if params else body)


class Prompts:
    """Prompts as lists of tokens. A third of them begin like one of the last prompts."""

    def __init__(self, seed):
        self.draws, self.recent = random.Random(seed), collections.deque(maxlen=64)

    def body(self):
        prompt = [self.draws.randrange(300, 2000) for _ in range(self.draws.randrange(20, 500))]
        if self.recent and self.draws.random() < 0.33:
            other = self.draws.choice(self.recent)
            shared = self.draws.randrange(1, len(other) + 1)
            prompt = (other[:shared] + prompt)[:600]
        self.recent.append(prompt)
        return {"prompt": prompt, "max_tokens": self.draws.randrange(1, 24), "temperature": self.draws.choice([0, 0.9]),
                "seed": self.draws.randrange(1 << 30), "logprobs": 2, "ignore_eos": True}

    def spoil(self, folder, *stores):
        """Damages some blocks of the tiers: changes their bytes, cuts them in half, or removes them."""
        for store in stores:
            with store.lock:
                for key, value in list(store.values.items()):
                    draw = self.draws.random()
                    if draw < 0.01:
                        del store.values[key]
                    elif draw < 0.04:
                        store.values[key] = value[: len(value) // 2] + (b"" if draw < 0.02 else bytes(len(value) - len(value) // 2))
        for file in folder.rglob("*.kv"):
            draw = self.draws.random()
            with contextlib.suppress(FileNotFoundError):  # the tier also removes files
                if draw < 0.01:
                    file.unlink()
                elif draw < 0.02:
                    os.truncate(file, file.stat().st_size // 2)
                elif draw < 0.04:
                    with open(file, "r+b") as content:
                        content.seek(self.draws.randrange(file.stat().st_size))
                        content.write(b"spoilt")


async def left_over(server):
    """Returns the number of blocks that stay held without running requests or leases."""
    until = time.perf_counter() + 60
    while (held := await server.metric("vllm:kv_transfer_held_blocks") + await server.metric("vllm:num_requests_running")) > 0:
        if time.perf_counter() > until:
            break
        await asyncio.sleep(0.2)
    return held


async def pairs(count, seconds, seed, clients):
    begin, prompts, ledger, wrong = time.perf_counter(), Prompts(seed), collections.Counter(), []
    room = asyncio.Semaphore(clients)
    with tempfile.TemporaryDirectory() as name, redis_stand_in() as (url, store), s3_stand_in() as (s3, objects), contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)

        def server(*flags, **environment):
            each = Server(*flags, **environment)
            stack.callback(each.process.kill)
            return each

        computed = server("--no-enable-prefix-caching")
        cached, tier = server("--num-gpu-blocks-override=4096"), server(tier_at(folder / "disk"), *TIGHT)
        host = server(tiers_at(folder / "host"), *TIGHT)
        filling, filled = server(tier_at(url)), server(tier_at(url), *TIGHT)
        putting, getting = server(tier_at(s3), **KEYS), server(tier_at(s3), *TIGHT, **KEYS)
        steady, mortal = Prefill(peer()), Prefill(peer())
        for each in (steady, mortal):
            stack.callback(lambda each=each: each.server.process.kill())
        near, far, fed_by_mortal = server(peer(), *TIGHT), server(peer(transport="tcp"), *TIGHT), server(peer(transport="tcp"), *TIGHT)
        larger = server(peer(), *LARGER)
        over_ucx = server(peer(transport="ucx"), *TIGHT) if (ROOT / "build/release/liboctavo_ucx.so").exists() else None

        async def check(way, answer, right):
            async with room:
                try:
                    got = words(await answer())
                except (OSError, ValueError, KeyError, asyncio.TimeoutError) as error:
                    wrong.append((way, repr(error)))
                    return
            ledger[way] += 1
            if got != right:
                wrong.append((way, got, right))

        async def all_of(way, answer, asked):
            mixed = prompts.draws.sample(asked, len(asked))
            await asyncio.gather(*[check(way, lambda body=body: answer(body), right) for body, right in mixed])

        async def in_room(body):
            async with room:
                return words(await ask(computed, body))

        async def killer():
            await asyncio.sleep(prompts.draws.random() * 0.5)
            await asyncio.to_thread(mortal.kill, prompts.draws.random() < 0.3)

        while ledger.total() < count and time.perf_counter() < begin + seconds and not wrong:
            bodies = [prompts.body() for _ in range(32)]
            asked = list(zip(bodies, await asyncio.gather(*[in_room(body) for body in bodies])))
            for way in ["computed", "cached"]:
                await all_of(way, lambda body: ask(cached, body), asked)
            await all_of("on disk, written", lambda body: ask(tier, body), asked)
            await all_of("on disk", lambda body: ask(tier, body), asked)
            await all_of("host memory, written", lambda body: ask(host, body), asked)
            await all_of("host memory", lambda body: ask(host, body), asked)
            await all_of("store, written", lambda body: ask(filling, body), asked)
            await all_of("store", lambda body: ask(filled, body), asked)
            await all_of("S3, written", lambda body: ask(putting, body), asked)
            await all_of("S3", lambda body: ask(getting, body), asked)
            if over_ucx:
                await all_of("peer, UCX", lambda body: two_legs(steady, over_ucx, body), asked)
            await all_of("peer, shared memory", lambda body: two_legs(steady, near, body), asked)
            await all_of("peer, TCP", lambda body: two_legs(steady, far, body), asked)
            await all_of("peer, larger blocks", lambda body: two_legs(steady, larger, body), asked)
            await asyncio.gather(killer(), all_of("peer, killed", lambda body: two_legs(mortal, fed_by_mortal, body), asked))
            prompts.spoil(folder, store, objects)
            print(f"{ledger.total()} pairs after {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)

        print(f"{ledger.total()} pairs, {time.perf_counter() - begin:.0f} s, {len(wrong)} wrong")
        for way, number in ledger.items():
            print(f"  {way:20}  {number}")
        servers = {"disk": tier, "host memory": host, "store": filled, "S3": getting, "shared memory": near, "TCP": far, "larger blocks": larger, "killed": fed_by_mortal}
        if over_ucx:
            servers["UCX"] = over_ucx
        for way, each in servers.items():
            numbers = [await each.metric(f"vllm:{m}") for m in ("external_prefix_cache_hits_total", "kv_transfer_failures_total", "num_preemptions_total")]
            print(f"  {way}: {numbers[0]:.0f} tokens loaded, {numbers[1]:.0f} loads failed, {numbers[2]:.0f} preemptions")
            if way != "killed" and ledger.total() and not numbers[0]:
                wrong.append((way, "nothing was loaded"))
        for each in [*servers.values(), filling, putting, steady.server]:
            if await left_over(each):
                wrong.append("blocks are kept for nobody")
        for each in wrong[:5]:
            print(each)
        if wrong:
            sys.exit("not what it must be")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30_000, help="pairs, at least")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends then with what there is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    asyncio.run(pairs(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
