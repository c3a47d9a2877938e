"""Measures how one stream under the worst grammar slows down 15 plain streams: ITL p99 with this stream, divided by ITL p99 without it.

    python grammar_tail.py octavo vocabulary.json [--rounds 7] [--tokens 200] [--step-ms 20]

Starts `octavo serve` with a simulated device, so that a step takes the same time on every machine, and with a tokenizer from
vocabulary.json (tools/grammar/make_vocabulary.py). `octavo bench serve` alternates between the plain streams alone and the plain
streams together with requests under new patterns. The server must compile each pattern, and its token masks take milliseconds.
Prints the percentiles of each run, the median of the ratios, and the time that the server reports for token masks.
"""

import argparse
import itertools
import json
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

STREAMS = 15
DEMO = pathlib.Path(__file__).parent.parent / "models/demo"


def write_model(folder: pathlib.Path, vocabulary: dict, step_ms: float) -> None:
    """Creates a model with this vocabulary, without weights, and a file with the time of its steps."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = {b: chr(b) for b in printable}  # byte-level BPE (GPT-2)
    spelled |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)}
    tokens = ["".join(spelled[b] for b in bytes.fromhex(token)) for token in vocabulary["tokens"]]
    end = len(tokens)
    config = json.loads((DEMO / "config.json").read_text())
    config |= {"vocab_size": end + 1, "eos_token_id": end, "pad_token_id": end, "max_position_embeddings": 32768}
    tokenizer = json.loads((DEMO / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [tokenizer["added_tokens"][0] | {"id": end, "content": "<|end|>"}]
    tokenizer["model"] |= {"vocab": {token: i for i, token in enumerate(tokens)}, "merges": []}
    settings = json.loads((DEMO / "tokenizer_config.json").read_text())
    settings |= {"eos_token": "<|end|>", "pad_token": "<|end|>", "model_max_length": 32768}
    for name, value in {"config": config, "tokenizer": tokenizer, "tokenizer_config": settings, "timing": {"fixed_us": step_ms * 1e3}}.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


class Server:
    def __init__(self, octavo: str, folder: pathlib.Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.octavo, self.folder = octavo, folder
        self.process = subprocess.Popen(
            [octavo, "serve", folder, "--executor", f"simulated={folder}/timing.json", "--port", str(self.port), "--max-num-seqs", "32",
             "--disable-log-stats"],
            stdout=subprocess.DEVNULL,
        )

    def get(self, path: str, body: dict | None = None) -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode() if body else None, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as reply:
            return reply.read().decode()

    def wait(self) -> None:
        for _ in range(600):
            try:
                self.get("/health")
                return
            except urllib.error.URLError:
                time.sleep(0.5)
        raise SystemExit("the server does not begin")

    def metric(self, name: str) -> float:
        return sum(float(value) for value in re.findall(rf"^\S*{name}(?:{{.*}})? (\S+)$", self.get("/metrics"), re.MULTILINE))

    def plain_streams(self, tokens: int, seed: int) -> dict:
        subprocess.run(
            [self.octavo, "bench", "serve", "--port", str(self.port), "--tokenizer", self.folder, "--num-prompts", str(STREAMS),
             "--random-input-len", "16", "--random-output-len", str(tokens), "--ignore-eos", "--seed", str(seed),
             "--metric-percentiles", "50,99", "--save-result", "--result-dir", self.folder, "--result-filename", "result.json"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return json.loads((self.folder / "result.json").read_text())


class Worst:
    """Sends one stream after the other, each under a new schema: a pattern that allows nearly every character, and a length.

    Every state of the pattern needs a new token mask, because no state is like another, in this pattern or in earlier ones.
    """

    numbers = itertools.count()

    def __init__(self, server: Server, tokens: int) -> None:
        self.server, self.tokens, self.said = server, tokens, 0

    def __enter__(self):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def run(self) -> None:
        while not self.ended.is_set():
            number = next(self.numbers)
            letter = chr(0x4E00 + number)
            schema = {"type": "string", "pattern": f"^(?:[^{letter}]+ )*[^{letter}]+$", "maxLength": 256}
            body = {"prompt": f"Text {number}:", "max_tokens": self.tokens, "temperature": 1, "seed": number}
            self.said += json.loads(self.server.get("/v1/completions", body | {"structured_outputs": {"json": schema}}))["usage"]["completion_tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("vocabulary")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--step-ms", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder, json.loads(pathlib.Path(options.vocabulary).read_text()), options.step_ms)
        server = Server(options.octavo, folder)
        try:
            server.wait()
            ratios = []
            for round in range(options.rounds + 1):
                alone = server.plain_streams(options.tokens, round)
                with Worst(server, 10) as worst:
                    beside = server.plain_streams(options.tokens, round)
                if round == 0:
                    continue  # the first round only warms the caches
                ratios.append(beside["p99_itl_ms"] / alone["p99_itl_ms"])
                print(
                    f"ITL p50 / p99: alone {alone['p50_itl_ms']:.2f} / {alone['p99_itl_ms']:.2f} ms, "
                    f"beside {worst.said} tokens {beside['p50_itl_ms']:.2f} / {beside['p99_itl_ms']:.2f} ms, p99 {ratios[-1]:.3f}"
                )
            print(f"median of the ratios {statistics.median(ratios):.3f}")
            masks, deferred, seconds = (server.metric(f"grammar_mask{part}_total") for part in ("s", "s_deferred", "_seconds"))
            print(f"{masks:.0f} masks, {deferred:.0f} of them made beside the steps, which spent {seconds * 1e6 / masks:.1f} us on each")
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
