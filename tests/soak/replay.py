"""Records thousands of requests of all kinds, and replays them with other threads, batches and layouts.

    .venv/bin/python tests/soak/replay.py --requests 10000 FOLDER

Prints a table: for each layout the number of identical, different and impossible records, and the seconds. Several runs
with different --first record different requests."""

import argparse
import base64
import concurrent.futures
import json
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from conftest import eventually, http_client, serve  # noqa: E402
from test_adapters import write_adapter  # noqa: E402
from test_replay import DRAFTS, KINDS, records, written  # noqa: E402

VISION = Path("tests/data/vision/idefics3")
LAYOUTS = {
    "1 thread, 3 sequences, 24 tokens": ["--cpu-threads", "1", "--max-num-seqs", "3", "--max-num-batched-tokens", "24"],
    "2 threads, 64 sequences, block 32, no prefix cache": ["--cpu-threads", "2", "--max-num-seqs", "64", "--block-size", "32", "--no-enable-prefix-caching"],
    "draft tokens": DRAFTS,
    "2 tensor-parallel ranks": ["--tensor-parallel-size", "2"],
    "2 pipeline stages": ["--pipeline-parallel-size", "2"],
}


def picture(name):
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode((VISION / name).read_bytes()).decode()}}


def see(number):
    """A chat about one or two pictures."""
    names = ["rgb.png", "palette.png", "alpha.png"]
    content = [picture(names[number % 3]), {"type": "text", "text": f"What is in picture {number}?"}]
    if number % 4 == 0:
        content.insert(0, picture(names[(number + 1) % 3]))
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": content}], "max_tokens": 4 + number % 9, "n": 1 + number % 2, "seed": number}


def record(folder, count, flags, job):
    """Sends `count` requests to a server that records them."""
    done = 0
    with serve("--device", "cpu", "--served-model-name", "demo", "--record", str(folder), "--record-media", *flags) as base:
        def send(number):
            path, body = job(number)
            response = http_client.post(base + path, json={"model": "demo"} | body)
            assert response.status_code == 200, (path, body, response.text)

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for _ in pool.map(send, range(count)):
                done += 1
        assert eventually(lambda: written(base) >= done and len(records(folder)) == written(base))
    return len(records(folder))


def replay(folder, flags):
    began = time.monotonic()
    run = subprocess.run(["build/release/octavo", "replay", str(folder), "--device", "cpu", *flags], capture_output=True, text=True)
    counts = re.search(r"^(\d+) identical, (\d+) different, (\d+) cannot be replayed$", run.stdout, re.MULTILINE)
    if not counts:
        return f"failed: {run.stderr.strip().splitlines()[-1:]}"
    first = next((line for line in run.stdout.splitlines() if ": answer " in line), "")
    return f"{counts[1]} identical, {counts[2]} different, {counts[3]} impossible, {time.monotonic() - began:.0f} s  {first}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--requests", type=int, default=10_000)
    arguments.add_argument("--images", type=int, default=500)
    arguments.add_argument("--first", type=int, default=0, help="number of the first request")
    options = arguments.parse_args()
    adapter = options.folder / "poet"
    options.folder.mkdir(parents=True)
    write_adapter(adapter, 1)
    lora = ["--enable-lora", "--lora-modules", f"poet={adapter}"]
    texts, pictures = options.folder / "texts", options.folder / "pictures"
    print(record(texts, options.requests, [*DRAFTS, *lora], lambda i: KINDS[i % len(KINDS)](options.first + i)), "records of texts", flush=True)
    vision = ["--model", str(VISION), "--dtype", "float32", "--limit-mm-per-prompt", '{"image": 3}']
    print(record(pictures, options.images, vision, lambda i: see(options.first + i)), "records of pictures", flush=True)
    for name, flags in LAYOUTS.items():
        print(f"{name}: texts: {replay(texts, ['--model', 'models/demo', *lora, *flags])}", flush=True)
        if flags is not DRAFTS:
            print(f"{name}: pictures: {replay(pictures, [*vision, *flags])}", flush=True)


if __name__ == "__main__":
    main()
