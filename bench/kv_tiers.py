"""Measures what KV cache tiers outside of the engine gain, and what they cost for prompts that occur only once.

    python kv_tiers.py [--server PROGRAM] [--model DIR | --shape 1b] [--prompt 4096] [--rounds 5] [--streams 16] [--only first-token]

first-token  Time to first token of the same prompt if its KV blocks are computed, are in the prefix cache, are loaded from host
             memory (on a separate server), are loaded from files in the page cache, or are fetched from another server over shared
             memory or TCP. Also prints the bytes per second, as a fraction of the bytes per second of a plain copy in the same run
             (from memory to memory, or through a loopback socket).
throughput   Tokens per second of prompts that occur only once, with a disk tier, as a fraction of the tokens per second without a
             tier. One variant has a tier that fills during the run, and one has a tier that is already full. The variants
             alternate. The time is elapsed time, or the engine's processor time, which other programs disturb less.

Without --model, the model has the dimensions of the demo model and prompts of 8,192 tokens. With --shape 1b, it is a Llama with a billion
random parameters and the demo model's tokenizer (2 GB in the temporary folder).
"""

import argparse
import json
import math
import pathlib
import random
import shutil
import socket
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from server import PROGRAM, ROOT, Server

PIECE = 8 << 20  # bytes


def longer_demo(to):
    shutil.copytree(ROOT / "models/demo", to)
    config = json.loads((to / "config.json").read_text()) | {"max_position_embeddings": 8192}
    (to / "config.json").write_text(json.dumps(config))
    return to


LLAMA_1B = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                num_attention_heads=32, num_key_value_heads=8, head_dim=64)  # fmt: skip


def random_1b(to):
    """Writes a safetensors file in bf16, with matrices of numbers near 0.01 and norms of 1."""
    longer_demo(to)
    for file in to.glob("*.safetensors*"):
        file.unlink()
    config = json.loads((to / "config.json").read_text()) | LLAMA_1B
    (to / "config.json").write_text(json.dumps(config))
    d, inner, kv = config["hidden_size"], config["intermediate_size"], config["num_key_value_heads"] * config["head_dim"]
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], d], "model.norm.weight": [d]}
    for i in range(config["num_hidden_layers"]):
        parts = {"input_layernorm": [d], "post_attention_layernorm": [d], "self_attn.q_proj": [d, d], "self_attn.k_proj": [kv, d], "self_attn.v_proj": [kv, d],
                 "self_attn.o_proj": [d, d], "mlp.gate_proj": [inner, d], "mlp.up_proj": [inner, d], "mlp.down_proj": [d, inner]}  # fmt: skip
        shapes |= {f"model.layers.{i}.{part}.weight": shape for part, shape in parts.items()}
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        header[name] = dict(dtype="BF16", shape=shape, data_offsets=[end, end + size])
        end += size
    text = json.dumps(header).encode()
    noise = bytearray(random.Random(1).randbytes(64 << 20))
    noise[1::2] = noise[1::2].translate(bytes([0x3C, 0xBC] * 128))  # sign and exponent
    with open(to / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for i, (name, shape) in enumerate(shapes.items()):
            size, begin = 2 * math.prod(shape), 2 * 4099 * i  # each tensor uses a different part of the noise
            file.write(b"\x80\x3f" * shape[0] if len(shape) == 1 else bytes(noise[begin : begin + size]))
    return to


def connectors(*kinds):
    """Returns --kv-transfer-config for these connectors. Each connector is a pair (name, extra fields)."""
    each = [{"kv_connector": name, "kv_role": "kv_both", "kv_connector_extra_config": extra} for name, extra in kinds]
    whole = each[0] if len(each) == 1 else {"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"connectors": each}}
    return ["--kv-transfer-config", json.dumps(whole)]


def disk(folder, size=8 << 30):
    return "SharedStorageConnector", {"shared_storage_path": str(folder), "bytes_to_use": size, "load_always": True}


def host_memory(size=4 << 30):
    return "OffloadingConnector", {"cpu_bytes_to_use": size, "load_always": True}


def peer(**extra):
    return "NixlConnector", {"side_channel_port": 0, **extra}


def seconds(server, prompt, **more):
    began = time.perf_counter()
    server.ask("/v1/completions", dict(prompt=prompt, max_tokens=1, temperature=0) | more)
    return time.perf_counter() - began


def copied_by(move, count=32):
    """Returns the bytes per second of `move`, which moves PIECE bytes."""
    move()
    began = time.perf_counter()
    for _ in range(count):
        move()
    return count * PIECE / (time.perf_counter() - began)


def memory_speed():
    source, target = bytearray(PIECE), bytearray(PIECE)

    def move():
        target[:] = source

    return copied_by(move)


def socket_speed():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sender:
        receiver, _ = listener.accept()
        target = memoryview(bytearray(PIECE))

        def move():
            thread = threading.Thread(target=sender.sendall, args=(source,))
            thread.start()
            got = 0
            while got < PIECE:
                got += receiver.recv_into(target[got:])
            thread.join()

        source = bytes(PIECE)
        with receiver:
            return copied_by(move)


def first_tokens(args, model, scratch, draws):
    limits = ["--device", "cpu", "--max-model-len", args.prompt + 64, "--server-dev-mode"]
    ways = {name: [] for name in ("computed", "in memory", "host memory", "on disk", "shared memory", "tcp")}
    with Server(args.server, model, *limits, *connectors(disk(scratch / "first"), peer())) as first, \
         Server(args.server, model, *limits, *connectors(host_memory())) as tiered, \
         Server(args.server, model, *limits, *connectors(peer())) as near, \
         Server(args.server, model, *limits, *connectors(peer(transport="tcp"))) as far:  # fmt: skip
        for server in (first, tiered, near, far):
            seconds(server, [draws.randrange(300, 2000) for _ in range(64)])
        for _ in range(args.rounds):
            prompt = [draws.randrange(300, 2000) for _ in range(args.prompt)]
            ways["computed"].append(seconds(first, prompt))
            ways["in memory"].append(seconds(first, prompt))
            seconds(tiered, prompt)
            blocks = args.prompt // 16 - 1
            for name, server in (("on disk", first), ("host memory", tiered)):
                while server.metric("vllm:kv_tier_blocks") < blocks * (len(ways["computed"])):
                    time.sleep(0.05)
                server.post("/reset_prefix_cache", {}).close()
                ways[name].append(seconds(server, prompt))
            for name, server in (("shared memory", near), ("tcp", far)):
                hold = {"do_remote_decode": True, "do_remote_prefill": False}
                held = first.ask("/v1/completions", dict(prompt=prompt, max_tokens=1, temperature=0, kv_transfer_params=hold))
                ways[name].append(seconds(server, prompt, kv_transfer_params=held["kv_transfer_params"]))
        print(f"{args.prompt} tokens, medians of {args.rounds}")
        computed = statistics.median(ways["computed"])
        for name, times in ways.items():
            print(f"  {name:<14} {statistics.median(times) * 1e3:8.1f} ms, {computed / statistics.median(times):6.1f} times faster than computed")
        for name, server, plain in (("shared memory", near, memory_speed()), ("tcp", far, socket_speed())):
            moved, took = server.metric("vllm:nixl_bytes_transferred_sum"), server.metric("vllm:nixl_xfer_time_seconds_sum")
            print(f"  {name}: {moved / args.rounds / args.prompt:.0f} bytes a token, {moved / took / 1e9:.2f} GB/s, {moved / took / plain:.2f} of a plain copy's {plain / 1e9:.2f}")


def throughput(args, model, scratch, draws):
    limits = ["--device", "cpu", "--max-model-len", 1024, "--max-num-seqs", args.streams]

    def answer(server, prompt):
        return len(list(server.stream(prompt=prompt, max_tokens=64, temperature=0)))

    def turn(server):
        """Returns tokens per second of elapsed time, and tokens per second of processor time."""
        prompts = [[draws.randrange(300, 2000) for _ in range(512)] for _ in range(2 * args.streams)]
        began, used = time.perf_counter(), server.processor_seconds()
        with ThreadPoolExecutor(args.streams) as pool:
            count = sum(pool.map(lambda prompt: answer(server, prompt), prompts))
        return count / (time.perf_counter() - began), count / (server.processor_seconds() - used)

    filled = disk(scratch / "full", 32 << 20)  # smaller than the blocks of the first round, which is not counted
    with Server(args.server, model, *limits) as plain, Server(args.server, model, *limits, *connectors(disk(scratch / "fills"))) as fills, \
         Server(args.server, model, *limits, *connectors(filled)) as full:  # fmt: skip
        turns = [[turn(server) for server in (plain, fills, full)] for _ in range(args.rounds + 1)][1:]
    for at, name in ((1, "fills"), (2, "is full")):
        clock, processor = (statistics.median(each[at][i] / each[0][i] for each in turns) for i in (0, 1))
        print(f"throughput with a tier that {name} and no reuse, {args.streams} streams: {clock:.3f} of that without by the clock, {processor:.3f} by processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--shape", choices=["demo", "1b"], default="demo")
    parser.add_argument("--prompt", type=int, default=4096, help="tokens")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--only", choices=["first-token", "throughput"])
    args = parser.parse_args()
    draws = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = args.model or {"demo": longer_demo, "1b": random_1b}[args.shape](scratch / "model")
        if args.only != "throughput":
            first_tokens(args, model, scratch, draws)
        if args.only != "first-token":
            throughput(args, model, scratch, draws)


if __name__ == "__main__":
    main()
