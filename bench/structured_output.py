"""Measures what structured output costs, as ratios. All variants alternate within one run.

    python structured_output.py http://localhost:8000 [--batch 16] [--tokens 64] [--rounds 7]

neighbours   half of the requests of a batch have a grammar: mean time of the requests without a grammar, divided by their mean time in
             a batch in which no request has a grammar
guided       time of a batch in which all requests have a grammar, divided by the time of a batch without grammars that has the same
             number of tokens
jump         time per token of JSON with long keys, divided by the time per token without a grammar, one request at a time
"""

import argparse
import json
import statistics
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

# This grammar forces no text, and every mask allows thousands of tokens.
PROSE = {"regex": "[ -~]{20000}"}
KEYS = [
    "customer_identification_number",
    "preferred_delivery_address_line",
    "estimated_arrival_timestamp_utc",
    "warehouse_inventory_location_code",
]
RECORD = {
    "json": {
        "type": "object",
        "properties": {key: {"type": "integer", "minimum": 1, "maximum": 9} for key in KEYS},
        "required": KEYS,
        "additionalProperties": False,
    },
    "disable_any_whitespace": True,
}


class Server:
    def __init__(self, base: str) -> None:
        self.base = base
        self.number = 0

    def complete(self, tokens: int, constraint: dict | None, number: int) -> tuple[float, int]:
        """Returns the seconds and the number of output tokens of one request with a new prompt."""
        body = {"prompt": f"Record {number}: tell all you know.", "max_tokens": tokens, "temperature": 1, "seed": number}
        body |= {"structured_outputs": constraint} if constraint else {"ignore_eos": True}
        request = urllib.request.Request(
            self.base + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        began = time.perf_counter()
        with urllib.request.urlopen(request) as response:
            reply = json.load(response)
        return time.perf_counter() - began, reply["usage"]["completion_tokens"]

    def batch(self, tokens: int, constraints: list[dict | None]) -> list[tuple[float, int]]:
        """Sends all requests at once."""
        first, self.number = self.number, self.number + len(constraints)
        with ThreadPoolExecutor(len(constraints)) as pool:
            return list(pool.map(lambda i: self.complete(tokens, constraints[i], first + i), range(len(constraints))))


def per_token(results: list[tuple[float, int]]) -> float:
    return statistics.mean(seconds / tokens for seconds, tokens in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    server = Server(args.server)
    free, half = [None] * args.batch, args.batch // 2
    ratios: dict[str, list[float]] = {"neighbours": [], "guided": [], "jump": []}
    for round in range(args.rounds + 1):
        alone = per_token(server.batch(args.tokens, free))
        mixed = per_token(server.batch(args.tokens, [None] * half + [PROSE] * (args.batch - half))[:half])
        guided = per_token(server.batch(args.tokens, [PROSE] * args.batch))
        record = server.batch(4 * args.tokens, [RECORD])
        text = server.batch(record[0][1], [None])
        if round == 0:
            continue  # the first round only warms the caches
        ratios["neighbours"].append(mixed / alone)
        ratios["guided"].append(guided / alone)
        ratios["jump"].append(per_token(record) / per_token(text))
    for name, values in ratios.items():
        print(f"{name:11} {statistics.median(values):.3f}  ({min(values):.3f} to {max(values):.3f}, {len(values)} rounds)")


if __name__ == "__main__":
    main()
