"""Draft tokens with every other feature: for each method and feature, answers equal those of a server without draft
tokens.

    .venv/bin/python tests/soak/draft_pairs.py [--answers 24] [--methods eagle3 mtp ..] [--features penalties "P/D" ..]

For each pair of a method and a feature, two servers answer the same requests, greedy and sampled, many at a time.
Only one server has draft tokens. Text and log-probabilities must be bit-identical. Prints a table: the share of
accepted draft tokens, or that the server refuses the pair with an error that names both. A difference, a pair without
draft tokens, or a refusal that is not listed ends the program with an error.
"""

import argparse
import asyncio
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from kv_pairs import Prompts, ask, peer, tiers_at, two_legs, words
from kv_pairs import Prefill as PrefillServer
from serving import ROOT, Server

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from conftest import tiny

COMMON = ["--device=cpu", "--max-model-len=256", "--max-num-seqs=8", "--max-num-batched-tokens=192", "--served-model-name=demo"]
SMALL = ["--num-gpu-blocks-override=80"]
CLIENTS = 8
VOCABULARY = 128  # of the golden checkpoints
DRAFTERS = ROOT / "tests/data/drafters"

# Model (in models/ or tests/data/drafters), and fields of --speculative-config.
METHODS = {
    "ngram": ("demo", {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}),
    "suffix": ("demo", {"method": "suffix", "num_speculative_tokens": 8}),
    "draft_model": ("demo", {"model": str(ROOT / "models/demo-draft"), "num_speculative_tokens": 4}),
    "eagle3": ("demo", {"method": "eagle3", "model": str(ROOT / "models/demo-eagle3"), "num_speculative_tokens": 3}),
    "eagle": ("drafters/markov", {"method": "eagle", "model": str(DRAFTERS / "markov-eagle"), "num_speculative_tokens": 3}),
    "mtp": ("drafters/mimo", {"method": "mtp", "num_speculative_tokens": 1}),
    "medusa": ("drafters/markov", {"method": "medusa", "model": str(DRAFTERS / "markov-medusa"), "num_speculative_tokens": 3}),
    "mlp_speculator": ("drafters/markov", {"method": "mlp_speculator", "model": str(DRAFTERS / "markov-mlp"), "num_speculative_tokens": 3}),
}

# Flags of both servers, and fields of the requests.
FEATURES = {
    "nothing": ([], {}),
    "penalties": ([], {"repetition_penalty": 1.2, "frequency_penalty": 0.4, "presence_penalty": 0.2}),
    "bad_words": ([], {"bad_words": ["a", "the", "he"]}),
    "min_tokens": ([], {"ignore_eos": False, "min_tokens": 8, "stop_token_ids": [5, 40, 101]}),
    "structured output": ([], {"structured_outputs": {"regex": "[a-z \u0100-\u017f]{20,40}"}}),
    "few blocks": (["--num-gpu-blocks-override=34"], {}),
    "tiers": (SMALL, {}),
    "P/D": (SMALL, {}),
    "2 ranks": (["--tensor-parallel-size=2"], {}),
    "2 stages": (["--pipeline-parallel-size=2"], {}),
}
REFUSED = {("eagle3", "2 stages"): "pipeline_parallel_size: must be 1 with the method eagle3"}
# The golden models have three heads.
REFUSED |= {(method, "2 ranks"): "tensor_parallel_size: is 2, which does not divide 3 query heads"
            for method, (model, _) in METHODS.items() if model.startswith("drafters/")}


def requests(count, golden, fields):
    prompts = Prompts(7)
    for _ in range(count):
        body = prompts.body()
        prompt = body["prompt"][:120]
        yield body | {"prompt": [token % VOCABULARY if golden else token for token in prompt], "max_tokens": 32} | fields


async def answers(server, bodies, prefill):
    """Returns all answers, requested a few at a time, twice. Before the second time, their blocks may have left the
    cache."""
    limit = asyncio.Semaphore(CLIENTS)

    async def one(body):
        async with limit:
            return words(await (two_legs(prefill, server, body) if prefill else ask(server, body)))

    return [await asyncio.gather(*map(one, bodies)) for _ in range(2)]


async def run(model, flags, bodies, speculation, prefill):
    server = Server(*COMMON, *flags, *speculation, model=model)
    try:
        got = await answers(server, bodies, prefill)
        counts = [await server.metric(f"vllm:spec_decode_num_{what}_tokens_total") for what in ("draft", "accepted")] if speculation else None
        await server.stop()
        return got, counts
    finally:
        server.process.kill()


def refusal(model, flags, speculation):
    command = [ROOT / "build/release/octavo", "serve", ROOT / "models" / model, "--port", "0", *COMMON, *flags, *speculation]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stderr


async def cell(method, feature, count, folder):
    """Returns the share of accepted draft tokens, or "refused"."""
    model, config = METHODS[method]
    flags, fields = FEATURES[feature]
    golden = "/" in model
    if golden:
        model = tiny(model.split("/")[1], folder / "model", "drafters")
    config = config | {"num_speculative_tokens_per_batch_size": [[1, 64, config["num_speculative_tokens"]]]}
    speculation = [f"--speculative-config={json.dumps(config)}"]
    if (method, feature) in REFUSED:
        text = refusal(model, flags, speculation)
        return "refused" if REFUSED[method, feature] in text else sys.exit(f"{method}, {feature}: not refused by name: {text[-300:]}")
    bodies = list(requests(count, golden, fields))
    with contextlib.ExitStack() as stack:
        prefill = None
        if feature == "P/D":
            prefill = PrefillServer(*COMMON, peer(), *speculation, model=model)
            stack.callback(prefill.server.process.kill)
            flags = [*flags, peer()]
        expected, _ = await run(model, flags, bodies, [], None)
        if feature == "tiers":
            flags = [*flags, tiers_at(folder / "tier")]
        got, (drafted, accepted) = await run(model, flags, bodies, speculation, prefill)
    if got != expected or not drafted:
        sys.exit(f"{method}, {feature}: {sum(a != b for x, y in zip(got, expected) for a, b in zip(x, y))} differences, {drafted} draft tokens")
    return f"{accepted / drafted:.2f}"


async def table(options):
    print(f"| | {' | '.join(options.features)} |\n|---|{'---|' * len(options.features)}")
    for method in options.methods:
        cells = []
        for feature in options.features:
            with tempfile.TemporaryDirectory() as folder:
                cells.append(await cell(method, feature, options.answers, pathlib.Path(folder)))
        print(f"| `{method}` | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    asyncio.run(table(parser.parse_args()))


if __name__ == "__main__":
    main()
