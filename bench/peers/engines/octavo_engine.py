"""Octavo's server."""

from __future__ import annotations

import subprocess

from engines import CONTEXT
from engines.http_engine import PORT, HttpEngine


class Engine(HttpEngine):
    def __init__(self, model: str, threads: int, binary: str, *flags: str) -> None:
        flags = ("--max-num-batched-tokens", "4096", *flags)
        version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()[-1]
        command = [binary, "serve", model, "--port", str(PORT), "--cpu-threads", str(threads), "--max-model-len", str(CONTEXT), *flags]
        self.start(command, " ".join([version, "over HTTP,", *flags]))
