#!/usr/bin/env python3
"""Compares Octavo with llama.cpp on the same GGUF files: tokens, greedy continuations, probabilities.

Makes random models of many architectures in several formats, each with a tokenizer of tests/data/text, serves them
with octavo and runs them with llama-cpp-python. Prints a table:

    ids       texts with the same token ids in octavo, llama.cpp and the original tokenizer
    argmax    positions of octavo's greedy continuation with the same best token in llama.cpp
    |dlogp|   mean and largest difference of the log-probabilities of octavo's five best tokens at each position

Usage: check_gguf.py OCTAVO_BINARY [CASE ...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import gguf
import llama_cpp
import numpy as np
import tokenizers

import gguf_files
import make_gguf_goldens
import make_text_goldens

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = 18417
SIZES = dict(vocab_size=768, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, head_dim=64, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT2 = dict(vocab_size=768, n_embd=256, n_inner=512, n_layer=4, n_head=4, n_positions=512)
NEOX = {k: v for k, v in SIZES.items() if k not in ("num_key_value_heads", "head_dim")}
GEMMA3 = make_gguf_goldens.GEMMA3
# name: (class, configuration, tokenizer, its model and pre-tokenizer, its BOS)
CASES = {
    "llama": ("Llama", SIZES, "llama3", "gpt2", "llama-bpe", 700),
    "llama-3.1": ("Llama", dict(SIZES, rope_parameters=make_gguf_goldens.LLAMA3), "llama2", "llama", "default", 1),
    "qwen2": ("Qwen2", SIZES, "qwen", "gpt2", "qwen2", None),
    "qwen3": ("Qwen3", SIZES, "qwen", "gpt2", "qwen2", None),
    "gemma": ("Gemma", SIZES, "gemma", "llama", "default", 1),
    "gemma2": ("Gemma2", dict(SIZES, query_pre_attn_scalar=64, sliding_window=16), "gemma", "llama", "default", 1),
    "gemma3": ("Gemma3Text", dict(SIZES, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=16,
                                  rope_parameters=GEMMA3, layer_types=["sliding_attention"] * 5 + ["full_attention"]),
               "gemma", "llama", "default", 1),
    "phi3": ("Phi3", dict(SIZES, sliding_window=None), "llama2", "llama", "default", 1),
    "olmo2": ("Olmo2", SIZES, "gpt2", "gpt2", "gpt-2", None),
    "granite": ("Granite", dict(SIZES, attention_multiplier=0.1, embedding_multiplier=12.0, logits_scaling=8.0,
                                residual_multiplier=0.22), "gpt2", "gpt2", "gpt-2", None),
    "glm4": ("Glm4", dict(SIZES, partial_rotary_factor=0.5), "llama3", "gpt2", "glm4", None),
    "stablelm": ("StableLm", dict(NEOX, num_key_value_heads=2), "gpt2", "gpt2", "gpt-2", None),
    "gpt_neox": ("GPTNeoX", NEOX, "gpt2", "gpt2", "gpt-2", None),
    "gpt2": ("GPT2", GPT2, "gpt2", "gpt2", "gpt-2", None),
}
FORMATS = ["F32", "BF16", "Q8_0", "Q4_K_M"]
# only for qwen3
ALL_FORMATS = ["F16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q6_K", "Q5_K_M", "Q3_K_M", "Q2_K", "IQ4_NL"]
PROMPT = list(range(5, 45))
NEW = 24


def post(path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))


class Octavo:
    def __init__(self, binary, path):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([binary, "serve", str(path), "--port", str(PORT), "--cpu-threads", "2",
                                         "--kv-cache-memory-bytes", "32M"], stdout=self.log, stderr=self.log)
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        self.log.seek(0)
        sys.exit(self.log.read().decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def compare_ids(peer, tokenizer, bos):
    same = 0
    for text in make_text_goldens.TEXTS:
        ours = post("/tokenize", {"prompt": text, "add_special_tokens": True})["tokens"]
        theirs = peer.tokenize(text.encode(), add_bos=bos is not None, special=True)
        original = tokenizer.encode(text).ids
        if ours == theirs == original:
            same += 1
        else:
            print(f"    {text[:40]!r}: octavo {'==' if ours == original else '!='} original, "
                  f"llama.cpp {'==' if theirs == original else '!='} original", file=sys.stderr)
    return same


def compare_logits(peer):
    answer = post("/v1/completions", {"prompt": PROMPT, "max_tokens": NEW, "temperature": 0, "ignore_eos": True,
                                      "logprobs": 5, "return_tokens_as_token_ids": True})["choices"][0]["logprobs"]
    ids = [int(token.removeprefix("token_id:")) for token in answer["tokens"]]
    peer.reset()
    peer.eval(PROMPT + ids)
    logits = peer.scores[len(PROMPT) - 1:len(PROMPT) + len(ids) - 1].astype(np.float64)
    top = logits.max(axis=1, keepdims=True)
    logp = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    agree = int((logp.argmax(axis=1) == ids).sum())
    differences = [abs(value - logp[i][int(token.removeprefix("token_id:"))])
                   for i, best in enumerate(answer["top_logprobs"]) for token, value in best.items()]
    return agree, len(ids), np.mean(differences), np.max(differences)


def write(directory, name, fields, family, kind, tokenizer):
    model = make_gguf_goldens.random_model(family, fields)
    path = directory / f"{name}-{kind}.gguf"
    try:
        gguf.quants.quantize(np.zeros((1, 256), np.float32), gguf.GGMLQuantizationType[kind])
        gguf_files.write(model, path, lambda *_: gguf.GGMLQuantizationType[kind], tokenizer)
    except (KeyError, NotImplementedError):
        plain = directory / "plain.gguf"
        gguf_files.write(model, plain, lambda *_: gguf.GGMLQuantizationType.F32, tokenizer)
        gguf_files.requantize(plain, path, kind)
    return path


def main():
    binary, chosen = sys.argv[1], sys.argv[2:] or CASES
    print("| file | ids | argmax | mean dlogp | max dlogp |\n|---|---:|---:|---:|---:|", flush=True)
    for name in chosen:
        family, fields, tokenizer_name, kind, pre, bos = CASES[name]
        source = ROOT / "tests/data/text/tokenizers" / tokenizer_name
        original = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
        for number, form in enumerate(FORMATS + (ALL_FORMATS if name == "qwen3" else [])):
            with tempfile.TemporaryDirectory() as directory:
                path = write(pathlib.Path(directory), name, fields, family, form, (source, kind, pre, bos))
                with Octavo(binary, path):
                    peer = llama_cpp.Llama(str(path), n_ctx=256, logits_all=True, verbose=False, n_threads=2)
                    texts = len(make_text_goldens.TEXTS)
                    ids = f"{compare_ids(peer, original, bos)}/{texts}" if number == 0 else ""
                    agree, count, mean, most = compare_logits(peer)
                    print(f"| {name}-{form} | {ids} | {agree}/{count} | {mean:.1e} | {most:.1e} |", flush=True)
                    peer.close()


main()
