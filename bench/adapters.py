"""Measures what LoRA adapters cost a server, as ratios. All variants alternate within one run.

    python adapters.py [--server PROGRAM] [--model DIR] [--streams 16] [--tokens 96] [--rounds 5] [--loads 100]

throughput   Tokens per second of `streams` simultaneous requests with one and with eight adapters of rank 16, as a fraction of
             the tokens per second without adapters. The time is elapsed time, or the engine's processor time, which other
             programs disturb less.
loading      `loads` adapters are loaded one after the other while `streams` requests run. Prints the 99th percentile of the time
             between two tokens of a stream, divided by the same percentile without loads, and the memory of the server's
             processes.

The program starts a server with random adapters for all linear layers of attention and MLP.
"""

import argparse
import array
import itertools
import json
import pathlib
import random
import statistics
import struct
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from server import PROGRAM, ROOT, Server

RANK, ADAPTERS = 16, 8


def linear_layers(config):
    """Returns the rows and columns of each matrix in a layer of the Llama architecture."""
    dim, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    return {"self_attn.q_proj": (q, dim), "self_attn.k_proj": (kv, dim), "self_attn.v_proj": (kv, dim), "self_attn.o_proj": (dim, q),
            "mlp.gate_proj": (inner, dim), "mlp.up_proj": (inner, dim), "mlp.down_proj": (dim, inner)}


def write_adapter(folder, config, seed):
    numbers = random.Random(seed)
    noise = array.array("f", [numbers.gauss(0, 0.02) for _ in range(1 << 16)])
    header, data = {}, bytearray()
    for layer in range(config["num_hidden_layers"]):
        for module, (rows, cols) in linear_layers(config).items():
            for part, shape in (("A", (RANK, cols)), ("B", (rows, RANK))):
                begin, count = len(data), shape[0] * shape[1]
                at = numbers.randrange(len(noise) - count) if count < len(noise) else 0
                data += noise[at : at + count].tobytes()
                header[f"base_model.model.model.layers.{layer}.{module}.lora_{part}.weight"] = {
                    "dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(data))
    modules = [name.split(".")[-1] for name in linear_layers(config)]
    (folder / "adapter_config.json").write_text(json.dumps(dict(peft_type="LORA", r=RANK, lora_alpha=RANK, bias="none", target_modules=modules)))
    return folder


def stream(server, model, tokens, number):
    return list(server.stream(model=model, prompt=f"Story {number}: once upon a time", max_tokens=tokens, temperature=1, seed=number))


def throughput(server, models, args, numbers):
    """Returns tokens per second of elapsed time, and tokens per second of processor time."""
    began, used = time.perf_counter(), server.processor_seconds()
    with ThreadPoolExecutor(args.streams) as pool:
        count = sum(map(len, pool.map(lambda i: stream(server, models[i % len(models)], args.tokens, next(numbers)), range(args.streams))))
    return count / (time.perf_counter() - began), count / (server.processor_seconds() - used)


def gaps(server, models, args, numbers, loads):
    """Returns the times between two tokens of all streams while adapters are loaded in order, and the memory in megabytes."""
    memory, found, done = [server.megabytes()], [], threading.Event()

    def run(i):
        while not done.is_set():
            times = stream(server, models[i % len(models)], args.tokens, next(numbers))
            found.extend(after - before for before, after in itertools.pairwise(times))

    with ThreadPoolExecutor(args.streams) as pool:
        waiting = [pool.submit(run, i) for i in range(args.streams)]
        time.sleep(1)
        for name, folder in loads:
            with server.post("/v1/load_lora_adapter", dict(lora_name=name, lora_path=str(folder))):
                memory.append(server.megabytes())
        if not loads:
            time.sleep(args.seconds)
        done.set()
        for one in waiting:
            one.result()
    return found, memory


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/demo")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=8, help="of streams without loads")
    args = parser.parse_args()
    config = json.loads((args.model / "config.json").read_text())
    numbers = iter(range(1 << 30))
    with tempfile.TemporaryDirectory() as scratch:
        folders = [write_adapter(pathlib.Path(scratch) / f"a{i}", config, i) for i in range(ADAPTERS)]
        modules = [f"{folder.name}={folder}" for folder in folders]
        with Server(args.server, args.model, "--device", "cpu", "--served-model-name", "base", "--enable-lora", "--max-loras", ADAPTERS, "--max-lora-rank",
                    RANK, "--allow-runtime-lora-updating", "--no-enable-prefix-caching", "--lora-modules", *modules) as server:
            names = [folder.name for folder in folders]
            kinds = {"base": ["base"], "one adapter": names[:1], "eight adapters": names}
            for models in kinds.values():
                throughput(server, models, args, numbers)
            shares = {kind: [] for kind in kinds}
            for _ in range(args.rounds):
                found = {kind: throughput(server, models, args, numbers) for kind, models in kinds.items()}
                for kind, figures in found.items():
                    shares[kind].append([figure / base for figure, base in zip(figures, found["base"])])
            print(f"{args.streams} streams, rank {RANK}, medians of {args.rounds} rounds, as shares of the base model's throughput")
            for kind, rounds in shares.items():
                clock, processor = map(statistics.median, zip(*rounds))
                print(f"  {kind:<15} {clock:.2f} by the clock, {processor:.2f} by processor time")

            some = names[: ADAPTERS - 2]  # the other slots stay free for adapters that are loaded during the run
            quiet, _ = gaps(server, some, args, numbers, [])
            loads = [(f"new{i}", folders[i % ADAPTERS]) for i in range(args.loads)]
            busy, memory = gaps(server, some, args, numbers, loads)
            print(f"{args.loads} loads beside {args.streams} streams: ITL p99 {p99(busy) * 1e3:.1f} ms, without {p99(quiet) * 1e3:.1f} ms, "
                  f"ratio {p99(busy) / p99(quiet):.2f}; memory {memory[0]:.0f} MB before, {max(memory):.0f} MB at most, {memory[-1]:.0f} MB at the end")


if __name__ == "__main__":
    main()
