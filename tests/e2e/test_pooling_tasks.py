"""Tasks of pooling models as vLLM has them: scores of tokens, late chunking, padding. Small random encoders
(tests/data/encoders)."""

import json
import math
import struct

import pytest

from conftest import http_client, serve
from test_embeddings import close, folder_of, golden, ids_of

TEXTS = ["the quick brown fox", "a b c", "x"]


def read_file(path):
    """Returns the tensors of a safetensors file: {name: (description, bytes)}."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: (one, body[slice(*one["data_offsets"])]) for name, one in header.items() if name != "__metadata__"}


def write_file(path, found):
    header, body = {}, b""
    for name, (one, data) in found.items():
        header[name] = {**one, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def numbers(tensor):
    """Returns the numbers of a BF16 tensor, whose bytes are the upper half of those of a float."""
    one, data = tensor
    assert one["dtype"] == "BF16"
    return [struct.unpack("<f", bytes([0, 0, *data[i:i + 2]]))[0] for i in range(0, len(data), 2)]


def pooled(base, task, **fields):
    reply = http_client.post(base + "/pooling", json={"input": TEXTS, "task": task, **fields})
    assert reply.status_code == 200, reply.text
    return [item["data"] for item in reply.json()["data"]]


def test_a_classifier_scores_each_token(tmp_path):
    """The reference: the last layer applied to the token vectors of the same encoder."""
    folder = folder_of("bert-classifier", tmp_path / "classifier")
    weights = read_file(folder / "model.safetensors")
    with serve("--model", str(folder), "--dtype", "float32") as base:
        rows = pooled(base, "token_classify", use_activation=False)
        shares = pooled(base, "token_classify")
        whole = pooled(base, "classify", use_activation=False)
        refused = http_client.post(base + "/pooling", json={"input": "x", "task": "embed"})
        assert refused.status_code == 400
        assert refused.json()["error"]["message"].startswith("Unsupported task: 'embed'")
    write_file(folder / "model.safetensors", {name: tensor for name, tensor in weights.items()
                                              if not name.startswith(("classifier.", "bert.pooler."))})
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    with serve("--model", str(folder), "--dtype", "float32") as base:
        vectors = pooled(base, "token_embed", use_activation=False)
    matrix, bias = numbers(weights["classifier.weight"]), numbers(weights["classifier.bias"])
    for text, scores, states in zip(rows, whole, vectors, strict=True):
        assert len(text) == len(states) and not close(text[0], scores), "the pooler is not part of token scores"
        for row, state in zip(text, states):
            width = len(state)
            assert close(row, [b + sum(w * x for w, x in zip(matrix[i * width:], state)) for i, b in enumerate(bias)])
    for text, raw in zip(shares, rows):
        powers = [math.exp(x) for x in raw[0]]
        assert close(text[0], [x / sum(powers) for x in powers])


def test_the_last_token_of_a_decoder_has_the_score_of_the_text(tmp_path):
    folder = folder_of("gpt2-classifier", tmp_path / "gpt2")
    cases = golden("gpt2-classifier", "scores")
    with serve("--model", str(folder), "--dtype", "float32") as base:
        reply = http_client.post(base + "/pooling", json={"input": [ids for ids, _ in cases], "task": "token_classify",
                                                          "use_activation": False}).json()["data"]
        for (ids, expected), item in zip(cases, reply, strict=True):
            assert len(item["data"]) == len(ids) and close(item["data"][-1], expected)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    folder = folder_of("roberta", tmp_path_factory.mktemp("roberta"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    with serve("--model", str(folder), "--dtype", "float32", "--pooler-config.task", "token_embed") as base:
        yield base


@pytest.mark.parametrize("size", [1, 3, 2**63 - 1])
def test_late_chunks_are_means_of_token_vectors(embedder, size):
    tokens = pooled(embedder, "token_embed", use_activation=False)
    body = {"input": TEXTS, "late_chunking_params": {"chunk_size": size}}
    raw = http_client.post(embedder + "/v1/embeddings", json={**body, "use_activation": False}).json()
    unit = http_client.post(embedder + "/v1/embeddings", json=body).json()
    assert raw["usage"]["prompt_tokens"] == sum(len(ids_of(text)) for text in TEXTS)
    for text, vectors, item, normed in zip(TEXTS, tokens, raw["data"], unit["data"], strict=True):
        parts = [vectors[i:i + size] for i in range(0, len(vectors), size)]
        assert len(parts) == len(item["embedding"]) == len(item["late_chunking"]["chunks"])
        for part, mean, one in zip(parts, item["embedding"], normed["embedding"]):
            assert close(mean, [sum(column) / len(part) for column in zip(*part)])
            assert math.isclose(sum(x * x for x in one), 1, rel_tol=1e-5)
        # One token for each letter, and the special tokens, which have no characters.
        letters = [None, *([i, i + 1] for i, letter in enumerate(text) if letter != " "), None]
        for chunk in item["late_chunking"]["chunks"]:
            begin, end = chunk["token_range"]
            own = [pair for pair in letters[begin:end] if pair]
            assert chunk["char_range"] == ([own[0][0], own[-1][1]] if own else None)


def test_padding_fills_the_models_context(embedder):
    def embedded(**body):
        reply = http_client.post(embedder + "/pooling", json={"task": "embed", **body})
        assert reply.status_code == 200, reply.text
        return reply.json()

    padded = embedded(input="a b", padding="max_length")
    length = padded["usage"]["prompt_tokens"]
    assert length > len(ids_of("a b"))
    assert padded["data"] == embedded(input=ids_of("a b") + [0] * (length - len(ids_of("a b"))))["data"]
    assert padded["data"] != embedded(input="a b", padding="do_not_pad")["data"] == embedded(input="a b")["data"]
    refused = http_client.post(embedder + "/pooling", json={"input": "a", "padding": "longest"})
    assert refused.status_code == 400 and "padding" in refused.json()["error"]["message"]
