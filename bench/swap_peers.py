"""Compares swaps between two GGUF models with llama.cpp's server in router mode.

    python swap_peers.py A.gguf B.gguf --llama-server PROGRAM [--server PROGRAM] [--rounds 5] [--words 200]

Both servers may keep one model in memory. The servers run one after the other, and get the same requests for streams of four tokens.
Prints for each server, as medians in ms: the time to first token of a new prompt for the loaded model, and for the model that is not
loaded; and of a prompt that the model has seen before a swap. Also prints how many tokens of that prompt were cached, and the greatest
proportional set size of all its processes in MB after a request.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import tempfile
import time

from server import PROGRAM, Server


class TextServer(Server):
    """Gets prompts as text, which both servers tokenise."""

    def tree(self, pid):
        children = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
        return [pid, *(each for file in children for child in file.read_text().split() for each in self.tree(int(child)))]

    def megabytes(self):
        pages = (pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.tree(self.process.pid))
        return sum(int(line.split()[1]) for text in pages for line in text.splitlines() if line.startswith("Pss:")) / 1e3

    def ask(self, model, prompt):
        """Returns (seconds to the first token, cached tokens, tokens of the prompt)."""
        body = {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0, "ignore_eos": True, "stream": True,
                "stream_options": {"include_usage": True}}  # fmt: skip
        began, first, usage = time.perf_counter(), None, {}
        with self.post("/v1/completions", body) as response:
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                assert "error" not in event, event
                first = first or (time.perf_counter() - began if event.get("choices") else None)
                usage = event.get("usage") or usage
        return first, (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0), usage["prompt_tokens"]


def words(number, count):
    draw = random.Random(number)
    return " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=4)) for _ in range(count))


def measure(name, server, options):
    times, cached, memory = {"loaded": [], "not loaded": [], "seen before": []}, [], 0
    for model in ("a", "b"):
        server.ask(model, words(1, options.words))
    for number in range(options.rounds):
        server.ask("a", words(100 + number, options.words))
        times["loaded"].append(server.ask("a", words(200 + number, options.words))[0])
        for prompt, kind in ((100 + number, "seen before"), (500 + number, "not loaded")):
            server.ask("b", words(300 + prompt, options.words))
            time.sleep(3)  # the model is idle for longer than its load takes
            seconds, hits, length = server.ask("a", words(prompt, options.words))
            times[kind].append(seconds)
            if kind == "seen before":
                cached.append(hits)
            memory = max(memory, server.megabytes())
    print(f"{name:<10} " + ", ".join(f"{kind} {statistics.median(values) * 1e3:.0f} ({min(values) * 1e3:.0f} to {max(values) * 1e3:.0f})" for kind, values in times.items())
          + f" ms; cached {min(cached)} to {max(cached)} of about {length} tokens; {memory:.0f} MB", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs=2)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--server", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.models[0].parent) as folder:
        for name, model in zip("ab", options.models, strict=True):
            os.link(model, pathlib.Path(folder) / f"{name}.gguf")
        entries = [{"model": f"{folder}/{name}.gguf", "served-model-name": name, "max-model-len": 2048, "enable-prompt-tokens-details": True,
                    "kv-cache-memory-bytes": 256 << 20} for name in "ab"]  # fmt: skip
        models = pathlib.Path(folder) / "models.json"
        models.write_text(json.dumps({"models": entries}))
        memory = options.models[0].stat().st_size * 3 // 2 + (512 << 20)
        for _ in range(2):
            with TextServer(options.server, "--models", models, "--models-memory", memory) as server:
                measure("octavo", server, options)
            with TextServer(options.llama_server, "--models-dir", folder, "--models-max", "1", "-c", "2048", "-np", "1", "-t", os.cpu_count(), command=None) as server:
                measure("llama.cpp", server, options)


if __name__ == "__main__":
    main()
