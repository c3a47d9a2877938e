"""Workloads of engine.py and torch_decoder.py: batches of equal requests, with the shapes of bench/peers/models.py."""

# name: sequences, prompt tokens, generated tokens
WORKLOADS = {
    "prefill": (1, 2048, 1),
    "first token": (1, 128, 1),
    "one sequence": (1, 128, 129),
    "first tokens of 64": (64, 128, 1),
    "64 sequences": (64, 128, 129),
    "256 sequences": (256, 128, 128),
}
SHAPES = {
    "llama-3.2-1b": list(WORKLOADS),
    "llama-3-8b": ["prefill", "first token", "one sequence"],
}


def rates(seconds: dict[str, float]) -> dict[str, float]:
    """Returns the tokens per second of prompts, of decoding and of both together, from the seconds of each workload."""
    found = {}
    if "prefill" in seconds:
        found["prefill"] = WORKLOADS["prefill"][1] / seconds["prefill"]
    for name, first in (("one sequence", "first token"), ("64 sequences", "first tokens of 64")):
        if name in seconds and first in seconds:
            sequences, _, tokens = WORKLOADS[name]
            found[f"decode, {name}"] = sequences * (tokens - 1) / (seconds[name] - seconds[first])
    if "256 sequences" in seconds:
        sequences, _, tokens = WORKLOADS["256 sequences"]
        found["throughput, 256 sequences"] = sequences * tokens / seconds["256 sequences"]
    return found
