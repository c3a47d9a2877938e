"""Measures the speedup of each drafter: processor time per token without draft tokens, divided by the time with draft tokens.

    python draft_tokens.py [--octavo PROGRAM] [--texts random stories] [--batches 1 4 16] [--temperatures 0 0.8] [--rounds 3] [--heads METHOD=DIR ..]

Texts `random`: `octavo bench latency` answers random tokens, with one thread and 128 output tokens. The time is the processor time of
`--iterations` batches, without the time of a start without batches.

Texts `stories`: a server with one thread writes `--iterations` stories per slot of the batch. The time is the processor time of both
processes.

All methods alternate, and each result is the median over rounds. The table also has the mean acceptance length. DraftPolicy sets the
number of draft tokens; with `--forced`, the number is fixed for batches of any size.
"""

import argparse
import itertools
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from server import PROGRAM, ROOT, Server

METHODS = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2},
    "suffix": {"method": "suffix"},
    "draft_model": {"model": str(ROOT / "models/demo-draft"), "num_speculative_tokens": 4},
    "eagle3": {"method": "eagle3", "model": str(ROOT / "models/demo-eagle3"), "num_speculative_tokens": 3},
}
HEROES, THINGS = ["Mira", "Juno", "Kofi", "Wren", "Emil", "Hanna", "Omar", "Yuki"], ["lantern", "kettle", "kite", "compass", "flute"]


def speculation(args, config):
    if not config:
        return []
    if args.forced:
        config = config | {"num_speculative_tokens_per_batch_size": [[1, 64, config.get("num_speculative_tokens", 24)]]}
    return ["--speculative-config", json.dumps(config)]


def tell_stories(args, config, batch, temperature):
    """Returns the processor seconds per token, and the mean acceptance length."""
    asked = [f"Tell me a story about {hero} and a {thing}." for thing in THINGS for hero in HEROES]

    def tell(number):
        body = dict(model="demo", messages=[dict(role="user", content=asked[number % len(asked)])], max_tokens=256, temperature=temperature, seed=number)
        return server.ask("/v1/chat/completions", body)["usage"]["completion_tokens"]

    with Server(args.octavo, args.model, "--device", "cpu", "--cpu-threads", 1, "--served-model-name", "demo", "--max-num-seqs", batch,
                "--no-enable-prefix-caching", *speculation(args, config)) as server, ThreadPoolExecutor(batch) as pool:
        list(pool.map(tell, range(2 * batch)))
        before = server.processor_seconds()
        tokens = sum(pool.map(tell, range(batch * args.iterations)))
        seconds = (server.processor_seconds() - before) / tokens
        drafts, accepted = (server.metric(f"vllm:spec_decode_num_{what}_total") for what in ("drafts", "accepted_tokens"))
    return seconds, 1 + accepted / drafts if drafts else 1


def answer_random(args, config, batch, temperature):
    """Returns the processor seconds of `args.iterations` batches, and the mean acceptance length."""
    with tempfile.TemporaryDirectory() as scratch:
        result = f"{scratch}/result.json"
        start = run(args, config, batch, temperature, 1, result)
        seconds = run(args, config, batch, temperature, 1 + args.iterations, result) - start
        return seconds, json.loads(pathlib.Path(result).read_text()).get("spec_decode", {}).get("mean_acceptance_length", 1)


def run(args, config, batch, temperature, iterations, result):
    """Returns the processor seconds of the whole program."""
    command = [args.octavo, "bench", "latency", args.model, "--device", "cpu", "--cpu-threads", "1", "--batch-size", str(batch), "--input-len", "32",
               "--output-len", "128", "--num-iters-warmup", "1", "--num-iters", str(iterations), "--temperature", str(temperature),
               "--output-json", result, *speculation(args, config)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", default=PROGRAM)
    parser.add_argument("--texts", nargs="+", choices=["random", "stories"], default=["random", "stories"])
    parser.add_argument("--model", default=ROOT / "models/demo")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0, 0.8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--forced", action="store_true")
    parser.add_argument("--heads", nargs="*", default=[], help="METHOD=DIR, with three draft tokens at a time")
    args = parser.parse_args()
    methods = {"none": None} | METHODS
    for text in args.heads:
        method, _, folder = text.partition("=")
        methods[f"{method} {pathlib.Path(folder).name}"] = {"method": method, "model": folder, "num_speculative_tokens": 3}
    for texts, temperature, batch in itertools.product(args.texts, args.temperatures, args.batches):
        measure = {"random": answer_random, "stories": tell_stories}[texts]
        rounds, lengths = [], {}
        for _ in range(args.rounds):
            found = {name: measure(args, config, batch, temperature) for name, config in methods.items()}
            rounds.append({name: found["none"][0] / seconds for name, (seconds, _) in found.items()})
            lengths = {name: length for name, (_, length) in found.items()}
        for name, length in lengths.items():
            gains = [one[name] for one in rounds]
            print(f"{texts} temperature {temperature:<4} batch {batch:<3} {name:<28} {statistics.median(gains):.2f} (length {length:.1f})"
                  f"   rounds {' '.join(f'{gain:.2f}' for gain in gains)}", flush=True)


if __name__ == "__main__":
    main()
