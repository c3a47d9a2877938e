"""What a server stands for hours, measured: too many requests, thousands of connections, clients that leave.

    .venv/bin/python tests/soak/serving.py overload      goodput, TTFT and refusals at 1, 2, 5 and 20 times the capacity
    .venv/bin/python tests/soak/serving.py connections   memory of a connection; TTFT beside 10,000 idle ones, 2,000 slow readers
    .venv/bin/python tests/soak/serving.py disconnects   clients that leave at every stage; what they leave behind
    .venv/bin/python tests/soak/serving.py soak          aborts, invalid requests and slow readers for an hour; a ledger

Each starts a server of its own (models/demo) and prints a table. What must hold whatever the machine (no answer lost or
wrong, nothing left behind) ends the program with an error; times are figures, no conditions.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).parents[2]


class Server:
    """A process of `octavo serve` and what can be read of it."""

    def __init__(self, *flags):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        command = [ROOT / "build/release/octavo", "serve", ROOT / "models/demo", "--port", str(self.port), *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "ready on" in line:
                break
        else:
            sys.exit("the server ended before it was ready")
        self.drain = asyncio.get_running_loop().run_in_executor(None, self.process.stderr.read)

    def processes(self):
        """The server's process and those that it started (the engine)."""
        own = pathlib.Path(f"/proc/{self.process.pid}")
        children = " ".join(f.read_text() for f in own.glob("task/*/children")).split()
        return [own, *(pathlib.Path(f"/proc/{pid}") for pid in children)]

    def memory(self):
        """Resident bytes of all its processes."""
        return sum(int(re.search(r"VmRSS:\s+(\d+)", (p / "status").read_text())[1]) * 1024 for p in self.processes())

    def descriptors(self):
        return sum(len(list((p / "fd").iterdir())) for p in self.processes())

    def threads(self):
        return sum(len(list((p / "task").iterdir())) for p in self.processes())

    async def metric(self, name):
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics").read())
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.decode().splitlines() if re.match(name + r"[{ ]", line))

    async def stop(self):
        self.process.terminate()
        await self.drain
        if self.process.wait(60) != 0:
            sys.exit(f"the server ended with {self.process.returncode}")


@contextlib.asynccontextmanager
async def serving(*flags):
    server = Server(*flags)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            await server.stop()


Answer = collections.namedtuple("Answer", "status first end text done")


def http(body, route="/v1/completions"):
    text = json.dumps(body).encode()
    head = f"POST {route} HTTP/1.1\r\nHost: soak\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


async def ask(server, body, pause=0.0):
    """One streamed request on a connection of its own. Times in seconds from before it connects; `pause` between reads."""
    begin = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(http(body))
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


async def overload(seconds):
    """Arrivals at constant rates in front of a simulated device, whose capacity does not depend on the clients' load."""
    timing = {"fixed_us": 20000, "weights_us": 1000, "token_us": 100, "kv_token_us": 0, "pair_us": 0}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(timing, file)
        file.flush()
        flags = [f"--executor=simulated={file.name}", "--num-gpu-blocks-override=4096", "--max-num-seqs=32",
                 "--max-num-queued-reqs=8"]
        async with serving(*flags) as server:
            draws = random.Random(1)

            def request():
                return ask(server, completion([draws.randrange(300, 2000) for _ in range(64)], 32))

            async def closed(answers, until):
                while time.perf_counter() < until:
                    answers.append(await request())

            answers, begin = [], time.perf_counter()
            await asyncio.gather(*[closed(answers, begin + 10) for _ in range(32)])
            capacity = len(answers) / (time.perf_counter() - begin)
            print(f"capacity: {capacity:.1f} requests/s, 32 at a time; TTFT p99 {1e3 * percentile([a.first for a in answers], 0.99):.0f} ms")
            print("| load | sent | answered/s | of 1x | TTFT p50, p99 (ms) | refused | refusal p50, p99 (ms) | lost | memory (MB) |")
            base = None
            for factor in (1, 2, 5, 20):
                tasks, begin = [], time.perf_counter()
                while (now := time.perf_counter() - begin) < seconds:
                    while len(tasks) < now * capacity * factor:
                        tasks.append(asyncio.create_task(request()))
                    await asyncio.sleep(0.001)
                answers = await asyncio.gather(*tasks)
                elapsed = time.perf_counter() - begin
                served = [a for a in answers if a.status == 200 and a.done]
                refused = [a for a in answers if a.status in (429, 503)]
                rate = len(served) / elapsed
                base = base or rate
                lost = len(answers) - len(served) - len(refused)
                times = [1e3 * percentile([a.first for a in served], p) for p in (0.5, 0.99)]
                noes = [1e3 * percentile([a.end for a in refused], p) for p in (0.5, 0.99)]
                print(f"| {factor}x | {len(answers)} | {rate:.1f} | {rate / base:.2f} | {times[0]:.0f}, {times[1]:.0f} | {len(refused)} | "
                      f"{noes[0]:.1f}, {noes[1]:.1f} | {lost} | {server.memory() / 1e6:.0f} |", flush=True)
                if lost:
                    sys.exit("requests were neither answered nor refused")


async def connections(idle, slow):
    async with serving("--max-num-seqs=4096", "--max-num-queued-reqs=8192") as server:
        async def ttft(n=30):
            return percentile([(await ask(server, completion(f"Once {i}", 2))).first for i in range(n)], 0.5)

        await ttft()
        alone, memory = await ttft(), server.memory()
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(idle)]
        await asyncio.sleep(1)
        beside = await ttft()
        each = (server.memory() - memory) / idle
        print(f"{idle} idle connections: {each / 1024:.1f} KiB each; TTFT {1e3 * alone:.1f} ms alone, {1e3 * beside:.1f} beside them")

        # Answers that are over in the engine and not yet read: what they cost is what the server keeps for their readers.
        memory, readers = server.memory(), []
        for i in range(slow):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
            writer.write(http(completion(f"Twice {i}", 16)))
            readers.append((reader, writer))
            if i % 64 == 63:
                while await server.metric("vllm:num_requests_running") + await server.metric("vllm:num_requests_waiting") > 64:
                    await asyncio.sleep(0.05)
        while await server.metric("vllm:num_requests_running"):
            await asyncio.sleep(0.1)
        beside = await ttft()
        each = (server.memory() - memory) / slow
        print(f"{slow} answers unread: {each / 1024:.1f} KiB each; TTFT {1e3 * beside:.1f} ms beside them")
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
        print(f"{count} clients left in {end - begin:.0f} s; {1e3 * free:.0f} ms behind the last nothing runs and all blocks are free; "
              f"descriptors {descriptors} before, {server.descriptors()} after; {await server.metric('vllm:num_preemptions_total'):.0f} preemptions")
        if not (await ask(server, completion("Once", 2))).done:
            sys.exit("the server does not answer behind it")


async def soak(seconds):
    async with serving("--max-num-seqs=16") as server:
        bodies = [completion(f"Story {i}: once upon a time", 8 + 4 * i) for i in range(40)]
        expected = [(await ask(server, body)).text for body in bodies]
        ledger, draws, begin, samples = collections.Counter(), random.Random(3), time.perf_counter(), []

        async def client():
            while time.perf_counter() < begin + seconds:
                i, kind = draws.randrange(len(bodies)), draws.random()
                ledger["sent"] += 1
                if kind < 0.10:  # leaves in the middle
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
        warm = samples[len(samples) // 5:]  # the first fifth fills caches
        middle = sum(t for t, *_ in warm) / len(warm)
        mean = sum(m for _, m, *_ in warm) / len(warm)
        slope = sum((t - middle) * (m - mean) for t, m, *_ in warm) / max(sum((t - middle) ** 2 for t, *_ in warm), 1e-9)
        print(dict(ledger))
        print(f"memory {warm[0][1] / 1e6:.1f} to {warm[-1][1] / 1e6:.1f} MB, slope {slope * 3600 / 2**20:.2f} MiB/h; "
              f"descriptors {min(s[2] for s in warm)} to {max(s[2] for s in warm)}, threads {min(s[3] for s in warm)} to {max(s[3] for s in warm)}")
        if ledger["lost"] or ledger["wrong"]:
            sys.exit("answers were lost or wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("overload").add_argument("--seconds", type=float, default=300, help="of each load")
    command = commands.add_parser("connections")
    command.add_argument("--idle", type=int, default=10000)
    command.add_argument("--slow", type=int, default=2000)
    commands.add_parser("disconnects").add_argument("--count", type=int, default=10000)
    commands.add_parser("soak").add_argument("--seconds", type=float, default=3600)
    options = vars(parser.parse_args())
    asyncio.run(globals()[options.pop("command")](**options))


if __name__ == "__main__":
    main()
