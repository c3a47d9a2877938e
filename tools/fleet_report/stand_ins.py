#!/usr/bin/env python3
"""Measures many stand-in servers in one process: its memory, and the difference of some streams from their timing.

    tools/fleet_report/stand_ins.py [OCTAVO] [COUNT]    (build/release/octavo, 200)
"""

import json
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from fidelity import free_port, program

STEP_MS = 25
TOKENS = 100
STREAMS = 8  # number of servers that are timed with one answer each, one after the other


def stream(url):
    """Returns the seconds from the first to the last token of an answer."""
    body = {"model": "models/demo", "prompt": "Once upon a time", "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        times = [time.monotonic() for line in answer if line.startswith(b"data: {")]
    return times[-1] - times[0]


def main():
    octavo = sys.argv[1] if len(sys.argv) > 1 else "build/release/octavo"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as folder:
        timing = Path(folder) / "timing.json"
        timing.write_text(json.dumps({"fixed_us": 1000 * STEP_MS}))
        first = free_port()
        command = [octavo, "serve", "models/demo", "--executor", f"simulated={timing}", "--stand-ins", count, "--disable-log-stats"]
        began = time.monotonic()
        with program(command, first) as (process, _):
            urls = [f"http://127.0.0.1:{first + i}" for i in range(count)]
            while True:  # when the last one is ready, all are
                try:
                    urllib.request.urlopen(urls[-1] + "/health", timeout=1)
                    break
                except OSError:
                    time.sleep(0.1)
            print(f"{count} servers ready after {time.monotonic() - began:.1f} s")
            for url in urls:
                with urllib.request.urlopen(url + "/v1/models", timeout=10) as answer:
                    assert answer.status == 200
            errors = [stream(url) / (TOKENS - 1) / (STEP_MS / 1000) - 1 for url in urls[:: max(1, count // STREAMS)]]
            print(f"{len(errors)} streams of {TOKENS} tokens of {STEP_MS} ms: error median {statistics.median(errors):.2%}, "
                  f"largest {max(errors, key=abs):.2%}")
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            print(f"memory {kilobytes / 1024:,.0f} MiB, {kilobytes / count:,.0f} KiB a server")


main()
