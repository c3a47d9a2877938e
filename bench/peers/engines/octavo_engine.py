"""Sends requests to the engine's server over HTTP, as a user does."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from engines import CONTEXT


class Engine:
    def __init__(self, model: str, threads: int, binary: str, *flags: str) -> None:
        port = 20000 + os.getpid() % 20000
        self.base = f"http://127.0.0.1:{port}"
        command = [binary, "serve", model, "--port", str(port), "--cpu-threads", str(threads), *flags]
        command += ["--max-model-len", str(CONTEXT), "--max-num-batched-tokens", "4096"]
        version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()
        self.about = " ".join([version[-1], "over HTTP,", "--max-num-batched-tokens 4096", *flags])
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.terminate)
        while True:
            try:
                urllib.request.urlopen(self.base + "/health").close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("octavo serve ended before it was ready") from None
                time.sleep(0.005)

    def pid(self) -> int:
        return self.process.pid

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        began = time.perf_counter()

        def one(prompt: list[int]) -> float:
            body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
            request = urllib.request.Request(
                self.base + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            first = 0.0
            with urllib.request.urlopen(request) as response:
                for line in response:
                    if not first and line.startswith(b"data: {"):
                        first = time.perf_counter() - began
            return first

        with ThreadPoolExecutor(len(prompts)) as pool:
            firsts = list(pool.map(one, prompts))
        return min(firsts), time.perf_counter() - began
