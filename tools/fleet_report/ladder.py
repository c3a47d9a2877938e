#!/usr/bin/env python3
"""Simulates the table of llm-d's optimised baseline: Qwen3-32B on 16 H100 in pairs, prompts of 6,000 shared and 1,200
separate tokens, answers of 1,000 tokens, increasing request rates. Prints Markdown; see docs/design/measurements.md.

    tools/fleet_report/ladder.py [OCTAVO]    (build/release/octavo)
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RATES = [3, 10, 20, 30, 45, 60]
SECONDS = 60
SHAPE = {"seconds": SECONDS, "groups": 150, "group_tokens": 6000, "input_tokens": 1200, "output_tokens": 1000}
POLICIES = ["round_robin", "cache_aware", "kv_aware"]
HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
PROFILE = """- {type: queue-scorer}
- {type: kv-cache-utilization-scorer}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
"""
PICKERS = {
    "llm-d default": HEAD + "- {type: prefix-cache-scorer}\n" + PROFILE,
    "llm-d precise": HEAD + "- {type: precise-prefix-cache-producer}\n- {type: prefix-cache-scorer, parameters: "
    "{prefixMatchInfoProducerName: precise-prefix-cache-producer}}\n" + PROFILE,
}


def simulate(octavo, folder, rate):
    shape, result = folder / "shape.json", folder / "result.json"
    shape.write_text(json.dumps(SHAPE | {"session_rate": rate}))
    configs = []
    for name, text in PICKERS.items():
        configs.append(folder / f"{name}.yaml")
        configs[-1].write_text(text)
    subprocess.run([octavo, "simulate", "--traffic", shape, "--trace-block-size", "48", "--replicas", "8", "--model",
                    "qwen3-32b", "--device", "h100", "-t", "2", "--kv-events", "--policy", *POLICIES, "--picker-config",
                    *configs, "--output-json", result], check=True, stdout=subprocess.DEVNULL)
    return json.loads(result.read_text())


def main():
    octavo = sys.argv[1] if len(sys.argv) > 1 else "build/release/octavo"
    names = [*POLICIES, *PICKERS]
    print("| requests/s | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    with tempfile.TemporaryDirectory() as folder:
        for rate in RATES:
            cells = [f"{one['output_throughput']:,.0f}, {one['p90_ttft_ms'] / 1000:.2f}, {one['prefix_cache_hit_rate']:.0%}"
                     for one in simulate(octavo, Path(folder), rate)]
            print(f"| {rate} | " + " | ".join(cells) + " |", flush=True)


main()
