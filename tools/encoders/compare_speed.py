#!/usr/bin/env python3
"""Measures the tokens per second that an encoder reads: Octavo's server, sentence-transformers, ONNX Runtime and
fastembed, with the same texts and threads.

    pip install sentence-transformers onnx onnxscript onnxruntime fastembed
    tools/encoders/compare_speed.py FOLDER OCTAVO [--threads N] [--layers N --dim N] [--rounds N] [--dtype float32]

FOLDER is a Sentence Transformers folder. With --layers and --dim, the model is a BERT of that shape with random
weights and FOLDER's tokenizer (24 and 1024: 335M parameters). Each engine reads texts and returns vectors: Octavo
over HTTP in requests of 64 texts, in base64; sentence-transformers with encode(); ONNX Runtime with sorted and padded
batches; fastembed with embed(), which keeps the order of the texts. The engines alternate, with other texts in each
round. The median round counts. Padding does not count as tokens. It also measures the processor time of a single request, and the time until the vector of a
short text arrives, compared with the forward pass of sentence-transformers.
"""
import argparse
import asyncio
import base64
import json
import os
import pathlib
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her "
         "she there would their we him been has when who will no more if out so what up said about other into than its time only could new "
         "these may then do first any my now such like our over man me even most made after also did many before must through years where "
         "much your way well down should because each just those people mister how too little state good very make world still see own work").split()


def texts_of(kind, count, generator):
    def length():
        if kind == "short":
            return generator.randint(5, 16)
        return min(400, max(4, int(generator.lognormvariate(4, 0.9))))

    return [" ".join(generator.choice(WORDS) for _ in range(length())) for _ in range(count)]


def random_bert(folder, layers, dim, to):
    """Returns the tokenizer and modules of `folder` with a BERT of another shape."""
    import torch
    import transformers

    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.bin", "*.onnx", "*.safetensors", "*.h5", "*.ot"))
    vocab = json.loads((pathlib.Path(folder) / "config.json").read_text())["vocab_size"]
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=vocab, hidden_size=dim, num_hidden_layers=layers, num_attention_heads=dim // 64,
                                     intermediate_size=4 * dim)
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(to)
    pooling = pathlib.Path(to) / "1_Pooling/config.json"
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | {"word_embedding_dimension": dim}))
    return to


class Octavo:
    def __init__(self, folder, threads, binary, dtype):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([binary, "serve", str(folder), "--port", str(self.port), "--cpu-threads", str(threads), "--dtype", dtype],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(self.base + "/health").close()
                break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("the server ended")
                time.sleep(0.05)

    def embed(self, texts):
        vectors = []
        for begin in range(0, len(texts), 64):
            body = {"input": texts[begin:begin + 64], "encoding_format": "base64", "truncate_prompt_tokens": -1}
            request = urllib.request.Request(self.base + "/v1/embeddings", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                vectors += [np.frombuffer(base64.b64decode(item["embedding"]), np.float32) for item in json.load(reply)["data"]]
        return np.array(vectors)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class SentenceTransformers:
    def __init__(self, folder, threads):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self.model = SentenceTransformer(str(folder), device="cpu")
        self.embed = lambda texts: self.model.encode(texts, batch_size=64, normalize_embeddings=True)

    def stop(self):
        pass


class OnnxRuntime:
    """The model's export, with ONNX Runtime's optimisations and batches of sorted texts, which need little padding."""

    def __init__(self, folder, threads):
        import onnxruntime
        import tokenizers
        import torch
        import transformers

        file = pathlib.Path(folder) / "exported.onnx"
        if not file.exists():
            model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

            class Hidden(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.model = model

                def forward(self, input_ids, attention_mask):
                    return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

            ids = torch.randint(5, 500, (2, 9))
            axes = {0: "batch", 1: "length"}
            torch.onnx.export(Hidden(), (ids, torch.ones_like(ids)), str(file), input_names=["input_ids", "attention_mask"],
                              output_names=["hidden"], dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes}, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
        limits = json.loads((pathlib.Path(folder) / "sentence_bert_config.json").read_text())
        self.tokenizer.enable_truncation(limits["max_seq_length"])
        self.tokenizer.enable_padding()

    def embed(self, texts):
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = [None] * len(texts)
        for begin in range(0, len(texts), 64):
            batch = order[begin:begin + 64]
            encoded = self.tokenizer.encode_batch([texts[i] for i in batch])
            ids = np.array([e.ids for e in encoded], np.int64)
            mask = np.array([e.attention_mask for e in encoded], np.int64)
            hidden = self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            means = (hidden * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            for i, mean in zip(batch, means / np.linalg.norm(means, axis=1)[:, None]):
                vectors[i] = mean
        return np.array(vectors)

    def stop(self):
        pass


class FastEmbed:
    """fastembed with the file that OnnxRuntime exported."""

    def __init__(self, folder, threads):
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        dim = json.loads((pathlib.Path(folder) / "config.json").read_text())["hidden_size"]
        TextEmbedding.add_custom_model(model="local", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="local"), dim=dim,
                                       model_file="exported.onnx")
        model = TextEmbedding("local", specific_model_path=str(folder), threads=threads)
        limits = json.loads((pathlib.Path(folder) / "sentence_bert_config.json").read_text())
        model.model.tokenizer.enable_truncation(limits["max_seq_length"])  # fastembed reads another limit, from tokenizer_config.json
        self.embed = lambda texts: np.array(list(model.embed(texts, batch_size=64)))

    def stop(self):
        pass


def throughput(engines, count_tokens, rounds, count):
    generator = random.Random(1)
    reference = None
    for kind in ("short", "mixed"):
        speeds = {name: [] for name in engines}
        for turn in range(rounds + 1):  # the first round warms up
            texts = texts_of(kind, count, generator)
            tokens = count_tokens(texts)
            for name, engine in engines.items():
                began = time.perf_counter()
                vectors = engine.embed(texts)
                seconds = time.perf_counter() - began
                if turn > 0:
                    speeds[name].append(tokens / seconds)
                elif reference is None or name == next(iter(engines)):
                    reference = vectors
                else:
                    cosine = float((reference * vectors).sum(1).min())
                    if cosine < 0.999:
                        sys.exit(f"{name} and {next(iter(engines))} give other vectors: cosine {cosine}")
        for name, all in speeds.items():
            print(f"  {kind:6} {name:24} {statistics.median(all):10.0f} tokens/s ({min(all):.0f} to {max(all):.0f})", flush=True)


async def single_requests(port, count, connections):
    """Sends requests with one short text each. Returns the time in seconds."""
    body = json.dumps({"input": "the time of new people"}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def client(share):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(share):
            writer.write(head + body)
            header = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in header.split(b"\r\n")[0]:
                sys.exit(header.decode())
            length = next(int(line.split(b":")[1]) for line in header.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(length)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client(count // connections) for _ in range(connections)))
    return time.perf_counter() - began


def processor_seconds(pid):
    """Returns the processor time of a process and its children, in seconds."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def overhead(server, count):
    for connections in (1, 16):
        asyncio.run(single_requests(server.port, 200, connections))
        before = processor_seconds(server.process.pid)
        seconds = asyncio.run(single_requests(server.port, count, connections))
        spent = processor_seconds(server.process.pid) - before
        print(f"  {connections:2} connections: {count / seconds:7.0f} requests/s, {spent / count * 1e6:6.0f} us of processor time each", flush=True)


def latency(server, peer, rounds):
    """Measures one short text at a time: the time until its vector arrives, and the peer's forward pass of the same
    ids."""
    import torch

    text = "the central bank raised its interest rate"
    ours, bare = [], []
    encoded = peer.model.tokenize([text]) if hasattr(peer.model, "tokenize") else peer.model.preprocess([text])
    encoded = {name: tensor for name, tensor in encoded.items() if torch.is_tensor(tensor)}
    network = peer.model[0].auto_model if hasattr(peer.model[0], "auto_model") else peer.model[0].model
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    body = json.dumps({"input": text, "encoding_format": "base64"})
    for turn in range(rounds + 20):
        began = time.perf_counter()
        connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        half = time.perf_counter()
        with torch.inference_mode():
            network(**encoded)
        end = time.perf_counter()
        if turn >= 20:
            ours.append(half - began)
            bare.append(end - half)
    print(f"  one text of {encoded['input_ids'].shape[1]} tokens: over HTTP p50 {statistics.median(ours) * 1e3:.2f} ms, "
          f"torch's bare forward {statistics.median(bare) * 1e3:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("octavo")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--layers", type=int)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", choices=["throughput", "single"])
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "model")
        if asked.layers:
            random_bert(asked.folder, asked.layers, asked.dim, folder)
        else:
            shutil.copytree(asked.folder, folder)
        engines = {"octavo": Octavo(folder, asked.threads, asked.octavo, asked.dtype),
                   "sentence-transformers": SentenceTransformers(folder, asked.threads)}
        try:
            if asked.only != "single":
                engines["onnxruntime"] = OnnxRuntime(folder, asked.threads)
                engines["fastembed"] = FastEmbed(folder, asked.threads)
                tokenizer = engines["onnxruntime"].tokenizer
                throughput(engines, lambda texts: sum(sum(e.attention_mask) for e in tokenizer.encode_batch(texts)), asked.rounds, asked.count)
            if asked.only != "throughput":
                overhead(engines["octavo"], 4000)
                latency(engines["octavo"], engines["sentence-transformers"], 100)
        finally:
            engines["octavo"].stop()


if __name__ == "__main__":
    main()
