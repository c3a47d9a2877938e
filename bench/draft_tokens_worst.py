"""Measures what speculative decoding costs when almost no draft token is accepted, for several batch sizes.

    python draft_tokens_worst.py [--octavo PROGRAM] [--batches 1 2 3 4 6 8 16 64] [--methods ngram draft_model ..] [--tokens 192] [--starts 5] [--rounds 4]

The model is the demo model with a last norm of almost 0, so it samples each of a hundred allowed tokens with the same probability. The
prompt consists of such tokens, too. So neither earlier text nor a draft model predicts the next token.

For each method, one server without and one with draft tokens alternate on one processor. Each ratio is the engine's processor time
without draft tokens, divided by the processor time with draft tokens, as the median over rounds and starts: 0.98 means 2 % slower.
`accepted` is the fraction of draft tokens that were accepted by chance. `none` compares two servers without draft tokens, which shows
the noise of the machine.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import tempfile

from guesses import METHODS
from server import PROGRAM, ROOT, Server

# Settings with which each method proposes as often as possible, and does not sample like the model.
EAGER = {"ngram": {"prompt_lookup_min": 1}, "draft_model": {"draft_sample_method": "greedy"}, "eagle3": {"draft_sample_method": "greedy"}}


def write_flat_model(folder):
    """Creates the demo model with its last norm divided by 256. A token takes the same time as with the demo model."""
    shutil.copytree(ROOT / "models/demo", folder)
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", data)
    norm = json.loads(data[8 : 8 + length])["model.norm.weight"]
    assert norm["dtype"] == "BF16", norm
    for at in range(8 + length + norm["data_offsets"][0], 8 + length + norm["data_offsets"][1], 2):
        (bits,) = struct.unpack_from("<H", data, at)
        struct.pack_into("<H", data, at, bits - (8 << 7) if bits & 0x7F80 > 8 << 7 else 0)
    path.write_bytes(data)
    return folder


def answer(server, args, batch, seed):
    """Returns the engine's processor time in seconds for `batch` answers that run at the same time."""
    numbers = random.Random(seed)
    allowed = numbers.sample(range(300, 2000), 100)
    prompts = [numbers.choices(allowed, k=args.prompt) for _ in range(batch)]
    before = server.engine_seconds()
    server.ask("/v1/completions", dict(model="demo", prompt=prompts, max_tokens=args.tokens, ignore_eos=True, temperature=1, seed=seed, allowed_token_ids=allowed))
    return server.engine_seconds() - before


def serve(args, model, *more):
    return Server(args.octavo, model, "--device", "cpu", "--cpu-threads", 1, "--served-model-name", "demo", "--max-num-seqs", max(args.batches),
                  "--no-enable-prefix-caching", *more)


def compare(args, model, config, shares, proposed):
    """Starts both servers, and adds their results: the ratio of each batch size to `shares`, and the draft and accepted tokens to `proposed`."""
    with serve(args, model) as plain, serve(args, model, *config) as drafting:
        for _ in range(args.warmup):  # until it has results, a method counts as good
            answer(drafting, args, 1, next(args.seeds))
        for batch in args.batches:
            before = [drafting.metric(f"vllm:spec_decode_num_{what}_tokens_total") for what in ("draft", "accepted")]
            for turn in range(args.rounds + 1):
                order = [plain, drafting] if turn % 2 else [drafting, plain]
                seed = next(args.seeds)
                seconds = {server: answer(server, args, batch, seed) for server in order}
                if turn > 0:  # the first round only warms up both servers
                    shares[batch].append(seconds[plain] / seconds[drafting])
            for i, what in enumerate(("draft", "accepted")):
                proposed[batch][i] += drafting.metric(f"vllm:spec_decode_num_{what}_tokens_total") - before[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", default=PROGRAM)
    parser.add_argument("--methods", nargs="+", choices=["none", *METHODS], default=["none", *METHODS])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 3, 4, 6, 8, 16, 64])
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--starts", type=int, default=5, help="of both servers: two programs differ by where their memory lies, too")
    parser.add_argument("--rounds", type=int, default=4, help="of each start")
    parser.add_argument("--warmup", type=int, default=10, help="answers before the first round")
    args = parser.parse_args()
    args.seeds = itertools.count(1)  # each text occurs only once
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # processors differ in speed
    with tempfile.TemporaryDirectory() as scratch:
        model = write_flat_model(pathlib.Path(scratch) / "flat")
        for method in args.methods:
            config = [] if method == "none" else ["--speculative-config", json.dumps(METHODS[method] | EAGER.get(method, {}))]
            shares, proposed = {batch: [] for batch in args.batches}, {batch: [0, 0] for batch in args.batches}
            for _ in range(args.starts):
                compare(args, model, config, shares, proposed)
            for batch, found in shares.items():
                quarter, middle, three_quarters = statistics.quantiles(found, n=4)
                drafts, accepted = proposed[batch]
                tokens = batch * args.tokens * (args.rounds + 1) * args.starts
                print(f"{method:<12} batch {batch:<3} {middle:.3f}   half of all rounds {quarter:.2f} to {three_quarters:.2f}"
                      f"   draft tokens {drafts / tokens:.3f} of a token, accepted {accepted / max(drafts, 1):.0%}", flush=True)


if __name__ == "__main__":
    main()
