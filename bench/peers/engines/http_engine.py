"""A server in another process, called over HTTP as a user does. It has OpenAI's completions with token ids as the prompt, and `ignore_eos`."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

PORT = 20000 + os.getpid() % 20000


class HttpEngine:
    def start(self, command: list[str], about: str) -> None:
        """Starts a server that listens on PORT, and waits until it is ready."""
        self.about = about
        self.base = f"http://127.0.0.1:{PORT}"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.terminate)
        while True:
            try:
                urllib.request.urlopen(self.base + "/health").close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{command[0]} ended before it was ready") from None
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
