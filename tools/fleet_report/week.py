#!/usr/bin/env python3
"""Simulates the autoscaler of `octavo plan live` over a week, and compares it with an oracle, a fixed fleet and an HPA
on queue length: SLO attainment and cost. Prints a table of docs/design/measurements.md. Takes about ten minutes on
one core.

    tools/fleet_report/week.py [OCTAVO]    (build/release/octavo)
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

DAY = 86_400
# Questions about long documents. The rate varies by 60 % over the day. For 15 minutes of every 6 hours it
# is 1.5 times as high.
WEEK = {"seconds": 7 * DAY, "session_rate": 1, "daily_swing": 0.6, "burst_every": 21_600, "burst_seconds": 900,
        "burst_factor": 1.5, "input_tokens": 32_000, "output_tokens": 64, "spread": 0.5}
REPLICA = ["--model", "llama-3.1-70b", "--device", "a100-80g", "-t", "4", "--block-size", "256", "--max-num-batched-tokens",
           "8192", "--enable-prefix-caching=false", "--num-gpu-blocks-override", "4000", "--policy", "least_loaded"]
PLANNER = ["--slo", "ttft:30000", "--share", "0.99", "--tokens-per-second", "3250", "--predictor", "smooth", "--window", "60s",
           "--scale-down-delay", "120s", "--startup-time", "60", "--max-replicas", "64"]


def main():
    octavo = sys.argv[1] if len(sys.argv) > 1 else "build/release/octavo"
    with tempfile.TemporaryDirectory() as folder:
        shape = Path(folder) / "week.json"
        shape.write_text(json.dumps(WEEK))
        subprocess.run([octavo, "plan", "compare", "--traffic", shape, *REPLICA, *PLANNER], check=True)


main()
