"""Measures how steadily tokens arrive while compute threads use all processors. The programs alternate within one run.

    python bench/delivery.py --octavo PROGRAM [--octavo OTHER] [--model DIR] [--rounds 3] [--streams 1 8] [--tokens 400]

Each run has a new server, a prompt of 14 tokens per request, and the load of `octavo bench serve`. The client is always the first program. The table
shows medians over the rounds, and in brackets the smallest and the largest round: the percentiles of the time between two tokens of a stream
(ITL), the median time to the first token (TTFT), and the tokens per second of all streams.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from server import ROOT, Server

PROMPT = 14
FIGURES = ["itl p50", "itl p90", "itl p99", "ttft p50", "tokens/s"]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def load(client, server, model, streams, tokens):
    """Sends eight requests on each of `streams` connections. Returns the FIGURES; times are in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--base-url", server.base, "--tokenizer", model, "--dataset-name", "random", "--random-input-len", PROMPT,
                 "--random-output-len", tokens, "--ignore-eos", "--num-prompts", 8 * streams, "--max-concurrency", streams,
                 "--num-warmups", 2 * streams, "--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", "result.json"]
        subprocess.run([client, "bench", "serve", *map(str, flags)], check=True, stdout=subprocess.DEVNULL)
        result = json.loads((pathlib.Path(folder) / "result.json").read_text())
    gaps = [gap * 1e3 for answer in result["itls"] for gap in answer]
    firsts = [first * 1e3 for first in result["ttfts"]]
    return [*(percentile(gaps, share) for share in (0.5, 0.9, 0.99)), percentile(firsts, 0.5), result["output_throughput"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octavo", action="append", required=True)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/demo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--tokens", type=int, default=400)
    args = parser.parse_args()
    rows = {(streams, program): [] for streams in args.streams for program in args.octavo}
    for _ in range(args.rounds):
        for program in args.octavo:
            with Server(program, args.model, "--device", "cpu", "--no-enable-prefix-caching") as server:
                for streams in args.streams:
                    rows[streams, program].append(load(args.octavo[0], server, args.model, streams, args.tokens))
    print("| streams | program | " + " | ".join(FIGURES) + " |\n" + "|---" * (2 + len(FIGURES)) + "|")
    for (streams, program), rounds in rows.items():
        cells = [f"{statistics.median(column):.4g} ({min(column):.4g} to {max(column):.4g})" for column in zip(*rounds)]
        print("| " + " | ".join([str(streams), program, *cells]) + " |")


if __name__ == "__main__":
    main()
