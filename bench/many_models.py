"""Measures swaps between the models of one server (octavo serve --models).

    python many_models.py [--server PROGRAM] [--shape demo | 1b] [--rounds 7] [--prompt 64] [--seconds 600] [--only swap | load]

swap  Two models, and memory for one. Prints the time to first token in ms of a new prompt for a loaded model, and for a model that is
      not loaded while the other one is idle; the time of a load by the server's metrics; and how many tokens of a prompt that the
      model has seen before the swap are cached after it. Measures first without and then with --weight-cache-dir.
load  Ten copies of the demo model, and memory for three. Each model has two clients that always have a request. Prints for each model
      the answers, the share of all output tokens, the median, 95th percentile and maximum of the time to first token in s, and the
      loads; and the number of requests that were lost or had wrong tokens.
"""

import argparse
import json
import pathlib
import random
import shutil
import statistics
import tempfile
import threading
import time
import urllib.request

from kept_cache import some_tokens
from kv_tiers import longer_demo, random_1b
from server import PROGRAM, Server

CACHE = 64 << 20


def models_file(folder, models):
    """Writes a list with {name: path}."""
    entries = [{"model": str(path), "served-model-name": name, "kv-cache-memory-bytes": CACHE, "max-model-len": 1024,
                "enable-prompt-tokens-details": True} for name, path in models.items()]  # fmt: skip
    (folder / "models.yaml").write_text(json.dumps({"models": entries}))
    return folder / "models.yaml"


def weights_of(path):
    return (path / "model.safetensors").stat().st_size


def measure_swaps(program, folder, options, weight_cache):
    """weight_cache: folder of converted weights; None: each load converts them."""
    models = {"a": folder / "a", "b": folder / "b"}
    memory = weights_of(models["a"]) * 3 // 2 + 2 * CACHE
    loaded, swapped, cached = [], [], []
    flags = ["--weight-cache-dir", weight_cache] if weight_cache else []
    with Server(program, "--models", models_file(folder, models), "--models-memory", memory, *flags) as server:
        def ask(model, number, tokens=4):
            return server.timed_completion(some_tokens(number, options.prompt), tokens, model=model)

        for number, model in enumerate(models, 1):
            ask(model, 1)
            while weight_cache and len(list(weight_cache.glob("*.octavo-weights"))) < number:
                time.sleep(0.1)
        for number in range(options.rounds):
            seen = ask("a", 100 + number)
            loaded.append(ask("a", 200 + number)[0])
            ask("b", 300 + number)
            time.sleep(2)  # b is idle for longer than its load took
            again = ask("a", 100 + number)
            assert again[1] == seen[1], "different tokens"
            cached.append(again[2])
            ask("b", 400 + number)
            time.sleep(2)
            swapped.append(ask("a", 500 + number)[0])
        seconds = server.metric("octavo:model_load_seconds_total") / server.metric("octavo:model_loads_total")
    print("with a weight cache:" if weight_cache else "without a weight cache:")
    for name, values in (("loaded", loaded), ("not loaded", swapped)):
        print(f"{name:<12} median {statistics.median(values) * 1e3:8.0f} ms, {min(values) * 1e3:.0f} to {max(values) * 1e3:.0f}")
    print(f"mean load {seconds * 1e3:.0f} ms; {min(cached)} to {max(cached)} of {options.prompt} prompt tokens cached after a swap", flush=True)


def measure_load(program, folder, options):
    names = [f"m{i}" for i in range(10)]
    model = longer_demo(folder / "demo")
    memory = weights_of(model) * 7 // 2 + 10 * CACHE
    waits, tokens, lost, lock = {name: [] for name in names}, dict.fromkeys(names, 0), [], threading.Lock()
    with Server(program, "--models", models_file(folder, dict.fromkeys(names, model)), "--models-memory", memory) as server:
        expected = {}
        for number in range(20):
            expected[number] = server.timed_completion(some_tokens(number, 100), 96, model="m0")[1]
        ends = time.perf_counter() + options.seconds

        def client(name, seed):
            draw = random.Random(seed)
            while time.perf_counter() < ends:
                number, count = draw.randrange(20), draw.randrange(8, 97)
                try:
                    wait, ids, _ = server.timed_completion(some_tokens(number, 100), count, model=name)
                    assert ids == expected[number][:count], "different tokens"
                except Exception as error:  # noqa: BLE001
                    lost.append(f"{name}: {error}")
                    continue
                with lock:
                    waits[name].append(wait)
                    tokens[name] += count

        threads = [threading.Thread(target=client, args=(name, 10 * i + j)) for i, name in enumerate(names) for j in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        page = urllib.request.urlopen(server.base + "/metrics").read().decode()
        loads = {name: line.split()[-1] for name in names for line in page.splitlines()
                 if line.startswith(f'octavo:model_loads_total{{model_name="{name}"')}  # fmt: skip
    print("model  answers  tokens %  TTFT p50   p95   max  loads")
    for name in names:
        times = sorted(waits[name])
        print(f"{name:<6} {len(times):7}  {100 * tokens[name] / sum(tokens.values()):8.1f}  {statistics.median(times):8.2f} {times[len(times) * 95 // 100]:5.2f}"
              f" {times[-1]:5.2f}  {loads[name]:>5}")  # fmt: skip
    print(f"{len(lost)} lost or wrong {lost[:3]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--shape", choices=["demo", "1b"], default="1b")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--only", choices=["swap", "load"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "load":
            first = {"demo": longer_demo, "1b": random_1b}[options.shape](pathlib.Path(folder) / "a")
            shutil.copytree(first, pathlib.Path(folder) / "b")
            for weight_cache in (None, pathlib.Path(folder) / "cache"):
                measure_swaps(options.server, pathlib.Path(folder), options, weight_cache)
        if options.only != "swap":
            measure_load(options.server, pathlib.Path(folder), options)


if __name__ == "__main__":
    main()
