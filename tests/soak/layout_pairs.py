"""A model in several processes, with different other requests each time: an answer's bits do not change.

    .venv/bin/python tests/soak/layout_pairs.py --count 10000 [--seconds 3600] [LAYOUT ...]

For each layout (all by default), the program starts a server with a small cache, so that requests are preempted and
steps divide prompts at any position. Each of 48 requests, greedy and sampled, is first sent by itself. Then 24
clients send them in random order, and some disconnect early. Text and log-probabilities of each answer must be
bit-identical to those of the first. Answers of pipeline stages must equal those of one stage, and answers of experts
that move under load must equal those of experts that do not move. Prints a table. A difference or a missing answer
ends the program with an error.
"""

import argparse
import asyncio
import json
import pathlib
import random
import sys
import tempfile
import time

from kv_pairs import Prompts, ask, words
from serving import Server, http

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from conftest import tiny

TIGHT = ["--device=cpu", "--num-gpu-blocks-override=80", "--max-model-len=256", "--max-num-seqs=16", "--max-num-batched-tokens=192",
         "--served-model-name=demo"]
REQUESTS, CLIENTS = 48, 24
VOCABULARY = 128  # of the golden checkpoints
RANKS, STAGES = "--tensor-parallel-size", "--pipeline-parallel-size"
EXPERTS = [f"{RANKS}=2", "--enable-expert-parallel"]
MOVING = ["--enable-eplb", "--eplb-config=" + json.dumps({"window_size": 20, "step_interval": 25, "num_redundant_experts": 2})]

# Model (in models/ or tests/data/), flags, and the layout whose bits must be equal.
LAYOUTS = {
    "one process": ("demo", [], None),
    "2 ranks": ("demo", [f"{RANKS}=2"], None),
    "4 ranks": ("demo", [f"{RANKS}=4"], None),
    "2 stages": ("demo", [f"{STAGES}=2"], "one process"),
    "3 stages": ("demo", [f"{STAGES}=3"], "one process"),
    "2 stages of 2 ranks": ("demo", [f"{RANKS}=2", f"{STAGES}=2"], "2 ranks"),
    "parts of experts": ("demo-moe", [f"{RANKS}=2"], None),
    "whole experts": ("demo-moe", EXPERTS, None),
    "experts that move": ("demo-moe", [*EXPERTS, *MOVING], "whole experts"),
    "latents": ("models/deepseek_v3", [], None),
    "latents, 2 ranks": ("models/deepseek_v3", [f"{RANKS}=2"], None),
    "latents, 3 stages": ("models/deepseek_v3", [f"{STAGES}=3"], "latents"),
    "delta nets": ("models/qwen3_next", [], None),
    "delta nets, 2 ranks": ("models/qwen3_next", EXPERTS, None),
    "delta nets, 2 stages of 2 ranks": ("models/qwen3_next", [*EXPERTS, f"{STAGES}=2"], "delta nets, 2 ranks"),
    "MXFP4": ("quantized/gpt_oss-mxfp4", [], None),
    "MXFP4, 2 ranks": ("quantized/gpt_oss-mxfp4", [f"{RANKS}=2"], None),
    "MXFP4, 2 stages": ("quantized/gpt_oss-mxfp4", [f"{STAGES}=2"], "MXFP4"),
}


def requests(seed, golden):
    prompts = Prompts(seed)
    for _ in range(REQUESTS):
        body = prompts.body()
        yield body | {"prompt": [token % VOCABULARY if golden else token for token in body["prompt"][:160]]}


async def leave(server, body):
    """Sends a request and disconnects before the end."""
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(http(body | {"max_tokens": 100, "stream": True}))
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()


async def pairs_of(layout, count, until, seed, alone, folder):
    """Returns the numbers of pairs, differences, preemptions, and moved experts."""
    model, flags, same = LAYOUTS[layout]
    kind, _, golden = model.rpartition("/")
    if kind:
        model = tiny(golden, pathlib.Path(folder) / layout, kind)
    server, bodies = Server(*TIGHT, *flags, model=model), list(requests(seed, kind))
    try:
        expected = [words(await ask(server, body)) for body in bodies]
        wrong = [(layout, same, i) for i in range(REQUESTS) if same in alone and expected[i] != alone[same][i]]
        alone[layout] = expected
        draws, done = random.Random(seed), 0

        async def client():
            nonlocal done
            while done < count and time.monotonic() < until and not wrong:
                i = draws.randrange(REQUESTS)
                if draws.random() < 0.05:
                    await leave(server, bodies[i])
                elif (got := words(await ask(server, bodies[i]))) != expected[i]:
                    wrong.append((layout, got, expected[i]))
                else:
                    done += 1

        await asyncio.gather(*[client() for _ in range(CLIENTS)])
        preemptions = int(await server.metric("vllm:num_preemptions_total"))
        await server.stop()
        return done, wrong, preemptions, sum("EPLB: balancedness" in line for line in server.log)
    finally:
        server.process.kill()


async def soak(count, seconds, seed, layouts):
    alone, total, until = {}, 0, time.monotonic() + seconds
    for number, layout in enumerate(layouts, 1):
        begin = time.monotonic()
        share = begin + (until - begin) / (len(layouts) - number + 1)
        with tempfile.TemporaryDirectory() as folder:
            done, wrong, preemptions, moves = await pairs_of(layout, -(-count // len(layouts)), share, seed, alone, folder)
        total += done
        print(f"{layout:32}  {done} pairs, {len(wrong)} differences, {preemptions} preemptions, {moves} plans that moved experts, "
              f"{time.monotonic() - begin:.0f} s", flush=True)
        if wrong or (layout == "experts that move" and not moves):
            sys.exit(f"not what it must be: {wrong[:3]}")
    print(f"{total} pairs, 0 differences")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="pairs of all layouts together")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("layouts", nargs="*", metavar="LAYOUT", help=f"of: {', '.join(LAYOUTS)}")
    options = parser.parse_args()
    layouts = options.layouts or list(LAYOUTS)
    if unknown := [layout for layout in layouts if layout not in LAYOUTS]:
        parser.error(f"no layouts: {', '.join(unknown)}")
    asyncio.run(soak(options.count, options.seconds, options.seed, layouts))


if __name__ == "__main__":
    main()
