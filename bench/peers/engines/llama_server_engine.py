"""llama.cpp's server. Its slots share one cache (--kv-unified), which gets faster decoding of many sequences than one cache per slot."""

from __future__ import annotations

import subprocess

from engines import CONTEXT, SEQUENCES
from engines.http_engine import PORT, HttpEngine


class Engine(HttpEngine):
    def __init__(self, model: str, threads: int, binary: str, *flags: str) -> None:
        flags = ("--kv-unified", "--cache-ram", "0", *flags)
        lines = subprocess.run([binary, "--version"], capture_output=True, text=True)
        version = (lines.stdout + lines.stderr).splitlines()[0].removeprefix("version: ")
        command = [binary, "-m", model, "--port", str(PORT), "--threads", str(threads), "--parallel", str(SEQUENCES)]
        self.start([*command, "--ctx-size", str(2 * CONTEXT + 256 * SEQUENCES), *flags], " ".join(["llama-server", version, "over HTTP,", *flags]))
