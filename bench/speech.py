"""Compares speech recognition: Octavo's server and faster-whisper, with one Whisper model of random weights and the same sounds.

    pip install faster-whisper torch transformers tokenizers
    python bench/speech.py FOLDER --octavo build/release/octavo [--shape base] [--threads N] [--rounds 5]

FOLDER gets the model in both formats if it is empty. Each sound has 30 seconds, and each transcript has TOKENS tokens, because the model never
ends by itself. "one" is one sound at a time; "eight" is eight sounds at once: eight requests for Octavo, one batch for faster-whisper.
Engines alternate, after a first round that warms up. Octavo's figures contain HTTP.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import socket
import statistics
import subprocess
import time
import urllib.request
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SHAPES = {"tiny": (384, 4, 6), "base": (512, 6, 8)}  # width, layers and heads of encoder and decoder
LANGUAGES = 99
VOCABULARY = 51865
RATE, SECONDS = 16000, 30
TOKENS = 64
SOUNDS = 8
# (Octavo's flags, faster-whisper's compute type)
FORMATS = {"f32": (["--dtype", "float32"], "float32")}


def write_tokenizer(folder: Path) -> tuple[list[str], dict[str, int]]:
    """Writes a tokenizer of bytes with the special tokens at the ids of Whisper's. Returns the special tokens and their ids."""
    import tokenizers
    import transformers
    from transformers.models.whisper.tokenization_whisper import LANGUAGES as NAMES

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    languages = [f"<|{code}|>" for code in list(NAMES)[:LANGUAGES]]
    special = ["<|endoftext|>", "<|startoftranscript|>", *languages, "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>"]
    special += ["<|nospeech|>", "<|notimestamps|>"]
    times = [f"<|{i * 0.02:.2f}|>" for i in range(50 * SECONDS + 1)]
    fillers = VOCABULARY - len(letters) - len(special) - len(times)
    vocabulary = {token: i for i, token in enumerate([*letters, *(f"filler{i}" for i in range(fillers))])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False) for token in times])
    end = "<|endoftext|>"
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end).save_pretrained(folder)
    assert tokenizer.get_vocab_size() == VOCABULARY
    return special, {token: tokenizer.token_to_id(token) for token in special}


def write_model(folder: Path, shape: str) -> None:
    """Writes folder/hf and folder/ct2. The weights are small, so that all numbers are finite."""
    import torch
    import transformers
    from ctranslate2.converters import TransformersConverter

    width, layers, heads = SHAPES[shape]
    special, ids = write_tokenizer(folder / "hf")
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, pad_token_id=end, bos_token_id=end,
        eos_token_id=end, decoder_start_token_id=start, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config)
    languages = {token: ids[token] for token in special[2 : 2 + LANGUAGES]}
    model.generation_config = transformers.GenerationConfig(
        is_multilingual=True, lang_to_id=languages, task_to_id={task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")},
        no_timestamps_token_id=ids["<|notimestamps|>"], decoder_start_token_id=start, prev_sot_token_id=ids["<|startofprev|>"],
        pad_token_id=end, bos_token_id=end, eos_token_id=end, max_length=448, suppress_tokens=list(ids.values()),
        begin_suppress_tokens=[end], alignment_heads=[[layers - 1, 0]], return_timestamps=False,
    )  # fmt: skip
    model.save_pretrained(folder / "hf")
    transformers.WhisperFeatureExtractor().save_pretrained(folder / "hf")
    TransformersConverter(str(folder / "hf"), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(str(folder / "ct2"))


def sounds() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    t = np.arange(RATE * SECONDS) / RATE
    return [
        (0.3 * np.sin(2 * np.pi * (200 + 50 * i + 20 * t) * t) + random.normal(0, 0.02, t.shape)).astype(np.float32) for i in range(SOUNDS)
    ]


def wav(sound: np.ndarray) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound * 32767).astype(np.int16).tobytes())
    return out.getvalue()


class Octavo:
    def __init__(self, folder: Path, binary: str, threads: int, flags: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [binary, "serve", str(folder / "hf"), "--port", str(self.port), "--cpu-threads", str(threads), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health").close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("octavo serve ended before it was ready") from None
                time.sleep(0.02)

    def one(self, file: bytes) -> None:
        fields = {"language": "en", "temperature": "0", "max_completion_tokens": str(TOKENS), "response_format": "json"}
        boundary = "8a7b6c5d"
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n'.encode() for n, v in fields.items()]
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
        body = b"".join(parts) + head + file + f"\r\n--{boundary}--\r\n".encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/v1/audio/transcriptions", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 200 or not json.loads(text)["text"]:
            raise SystemExit(f"octavo: {reply.status} {text[:300]}")

    def run(self, files: list[bytes]) -> None:
        with ThreadPoolExecutor(len(files)) as pool:
            list(pool.map(self.one, files))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class FasterWhisper:
    def __init__(self, folder: Path, threads: int, compute_type: str) -> None:
        import faster_whisper

        self.model = faster_whisper.WhisperModel(str(folder / "ct2"), device="cpu", cpu_threads=threads, compute_type=compute_type)
        self.batched = faster_whisper.BatchedInferencePipeline(self.model)
        self.options = dict(
            # CTranslate2 ends at half of the limit, which counts the four tokens before the transcript.
            language="en", beam_size=1, temperature=0, max_new_tokens=2 * TOKENS - 4, without_timestamps=True, suppress_tokens=self.special(),
            condition_on_previous_text=False, no_speech_threshold=None, log_prob_threshold=None, compression_ratio_threshold=None,
        )  # fmt: skip

    def special(self) -> list[int]:
        return [self.model.hf_tokenizer.token_to_id("<|endoftext|>")]

    def run(self, files: list[bytes]) -> None:
        import faster_whisper

        decoded = [faster_whisper.decode_audio(io.BytesIO(file), RATE) for file in files]
        if len(files) == 1:
            segments, _ = self.model.transcribe(decoded[0], vad_filter=False, **self.options)
        else:
            clips = [{"start": i * SECONDS, "end": (i + 1) * SECONDS} for i in range(len(files))]
            segments, _ = self.batched.transcribe(
                np.concatenate(decoded), vad_filter=False, clip_timestamps=clips, batch_size=len(files), **self.options
            )
        counts = [len(segment.tokens) for segment in segments]
        if sum(counts) < TOKENS * len(files) * 0.98:
            raise SystemExit(f"faster-whisper: {counts} tokens instead of {TOKENS} each")

    def stop(self) -> None:
        del self.model, self.batched


def measure(folder: Path, binary: str, threads: int, rounds: int, format: str) -> None:
    flags, compute_type = FORMATS[format]
    engines = {"octavo": Octavo(folder, binary, threads, flags), "faster-whisper": FasterWhisper(folder, threads, compute_type)}
    files = [wav(sound) for sound in sounds()]
    try:
        for name, work in {"one": files[:1], "eight": files}.items():
            seconds: dict[str, list[float]] = {engine: [] for engine in engines}
            for turn in range(rounds + 1):
                for engine, runner in engines.items():
                    began = time.perf_counter()
                    runner.run(work)
                    if turn > 0:
                        seconds[engine].append(time.perf_counter() - began)
            medians = {engine: statistics.median(times) for engine, times in seconds.items()}
            shown = "  ".join(f"{e} {medians[e] * 1e3:.0f} ms ({min(t) * 1e3:.0f} to {max(t) * 1e3:.0f})" for e, t in seconds.items())
            ratio = medians["faster-whisper"] / medians["octavo"]
            print(f"{format:5} {name:6} {shown}  speed of Octavo / faster-whisper {ratio:.2f}", flush=True)
    finally:
        for runner in engines.values():
            runner.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--octavo", required=True)
    parser.add_argument("--shape", choices=SHAPES, default="base")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    args = parser.parse_args()
    if not (args.folder / "ct2").exists():
        write_model(args.folder, args.shape)
    for format in args.formats:
        measure(args.folder, args.octavo, args.threads, args.rounds, format)


if __name__ == "__main__":
    main()
