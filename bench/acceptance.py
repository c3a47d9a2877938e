"""Compares the number of accepted draft tokens with the optimum, which is the sum over all tokens of min(p, q).

    python acceptance.py [--octavo PROGRAM] [--draft models/demo-draft] [--temperatures 0.6 0.8 1.0] [--answers 40] [--tokens 120]

p and q are the distributions of the model and of the draft model after the same text. If both models sample one token, the two tokens
cannot be equal more often than the sum of min(p, q). Prints one table row for each temperature:

drawn, greedy   fraction of draft tokens that a server with this draft_sample_method and one draft token per step accepts
optimum         mean of the sum of min(p, q) over all tokens of the same answers
likeliest       mean probability p of the draft model's most likely token, over the same tokens
"""

import argparse
import json

import numpy
from server import PROGRAM, ROOT, Server

FLAGS = ("--device", "cpu", "--dtype", "float32", "--served-model-name", "demo", "--max-logprobs", -1, "--max-num-seqs", 16)
PROMPTS = ["Once upon a time", "Tell me a story about a lantern and a", "The next morning Mira", "One rainy day the"]


def bodies(args, temperature):
    for number in range(args.answers):
        yield dict(model="demo", prompt=PROMPTS[number % len(PROMPTS)], max_tokens=args.tokens, temperature=temperature, seed=number,
                   ignore_eos=True, return_token_ids=True)


def answers(args, temperature, method):
    """Returns the texts as token ids, the lengths of their prompts, and the fraction of draft tokens that were accepted."""
    config = {"model": args.draft, "num_speculative_tokens": 1, "draft_sample_method": method, "num_speculative_tokens_per_batch_size": [[1, 64, 1]]}
    with Server(args.octavo, args.model, *FLAGS, "--speculative-config", json.dumps(config)) as server:
        choices = [server.ask("/v1/completions", body)["choices"][0] for body in bodies(args, temperature)]
        drafted, accepted = (server.metric(f"vllm:spec_decode_num_{what}_tokens_total") for what in ("draft", "accepted"))
    return [(len(c["prompt_token_ids"]), c["prompt_token_ids"] + c["token_ids"]) for c in choices], accepted / drafted


def distributions(args, model, texts, temperature):
    """Returns a matrix [tokens of the answer, vocabulary] for each text."""
    with Server(args.octavo, model, *FLAGS) as server:
        for begin, text in texts:
            rows = server.ask("/v1/completions", dict(model="demo", prompt=text, max_tokens=1, prompt_logprobs=-1))["choices"][0]["prompt_logprobs"]
            logits = numpy.full((len(text) - begin, max(map(int, rows[-1])) + 1), -numpy.inf)
            for place, row in enumerate(rows[begin:]):
                for token, entry in row.items():
                    logits[place, int(token)] = entry["logprob"] / temperature
            likely = numpy.exp(logits - logits.max(axis=1, keepdims=True))
            yield likely / likely.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", default=PROGRAM)
    parser.add_argument("--model", default=str(ROOT / "models/demo"))
    parser.add_argument("--draft", default=str(ROOT / "models/demo-draft"))
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.6, 0.8, 1.0])
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=120)
    args = parser.parse_args()
    print("| temperature | optimum | drawn | likeliest | greedy |\n|---|---|---|---|---|")
    for temperature in args.temperatures:
        texts, drawn = answers(args, temperature, "probabilistic")
        _, greedy = answers(args, temperature, "greedy")
        optimum, likeliest = [], []
        for p, q in zip(*(distributions(args, model, texts, temperature) for model in (args.model, args.draft))):
            optimum.extend(numpy.minimum(p, q).sum(axis=1))
            likeliest.extend(p[numpy.arange(len(p)), q.argmax(axis=1)])
        print(f"| {temperature} | {numpy.mean(optimum):.3f} | {drawn:.3f} | {numpy.mean(likeliest):.3f} | {greedy:.3f} |", flush=True)


if __name__ == "__main__":
    main()
