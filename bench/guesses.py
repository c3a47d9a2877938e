"""What each way of proposing draft tokens gains: processor time of a token without draft tokens over that with them, in one run.

    python guesses.py [--octavo PROGRAM] [--batches 1 4 16] [--temperatures 0 0.8] [--rounds 3] [--heads METHOD=DIR ..]

Each figure is of `octavo bench latency` on one thread with 128 tokens of answer: the processor time of `--iterations` batches, that
of a start without them taken off, as a median over rounds in which all methods take turns. Beside it the mean acceptance length. As
many draft tokens as DraftPolicy allows, or as many as asked for (`--forced`) in batches of any size.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
METHODS = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2},
    "suffix": {"method": "suffix"},
    "draft_model": {"model": str(ROOT / "models/demo-draft"), "num_speculative_tokens": 4},
    "eagle": {"method": "eagle", "model": str(ROOT / "models/demo-eagle"), "num_speculative_tokens": 3},
}


def run(args, config, batch, temperature, iterations, result):
    """Processor seconds of the whole program."""
    command = [args.octavo, "bench", "latency", args.model, "--device", "cpu", "--cpu-threads", "1", "--batch-size", str(batch), "--input-len", "32",
               "--output-len", "128", "--num-iters-warmup", "1", "--num-iters", str(iterations), "--temperature", str(temperature),
               "--output-json", result]
    if config:
        if args.forced:
            config = config | {"num_speculative_tokens_per_batch_size": [[1, 64, config.get("num_speculative_tokens", 24)]]}
        command += ["--speculative-config", json.dumps(config)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", default=ROOT / "build/release/octavo")
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
    with tempfile.TemporaryDirectory() as scratch:
        result = f"{scratch}/result.json"
        for temperature in args.temperatures:
            for batch in args.batches:
                seconds, lengths = {name: [] for name in methods}, {}
                for _ in range(args.rounds):
                    for name, config in methods.items():
                        start = run(args, config, batch, temperature, 1, result)
                        seconds[name].append(run(args, config, batch, temperature, 1 + args.iterations, result) - start)
                        lengths[name] = json.loads(pathlib.Path(result).read_text()).get("spec_decode", {}).get("mean_acceptance_length", 1)
                for name in methods:
                    gains = [plain / own for plain, own in zip(seconds["none"], seconds[name])]
                    print(f"temperature {temperature:<4} batch {batch:<3} {name:<28} {statistics.median(gains):.2f} (length {lengths[name]:.1f})"
                          f"   rounds {' '.join(f'{gain:.2f}' for gain in gains)}", flush=True)


if __name__ == "__main__":
    main()
