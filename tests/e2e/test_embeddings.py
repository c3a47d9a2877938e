"""Embedding models, with OpenAI's client: small random encoders (tests/data/encoders), compared with transformers'
vectors."""

import json
import math
import pathlib
import shlex
import shutil
import struct
import subprocess

import openai
import pytest

from conftest import http_client, serve, serve_command

ENCODERS = pathlib.Path("tests/data/encoders")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tensors(path):
    """Returns the F32 and I32 tensors of a safetensors file, as flat lists."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        kind = {"F32": "f", "I32": "i"}[tensor["dtype"]]
        found[name] = struct.unpack(f"<{(end - begin) // 4}{kind}", body[begin:end])
    return found


def golden(case, name):
    """Returns pairs of token ids and transformers' values for them."""
    all = tensors(ENCODERS / case / "golden.safetensors")
    starts, rows = all["starts"], all[name]
    width = len(rows) // (len(starts) - 1)
    return [(list(all["ids"][starts[i]:starts[i + 1]]), rows[i * width:(i + 1) * width])
            for i in range(len(starts) - 1)]


def folder_of(case, path):
    """Copies the checkpoint of a case, and adds a WordPiece tokenizer of letters, configured like BERT's."""
    shutil.copytree(ENCODERS / case, path, dirs_exist_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *("##" + letter for letter in LETTERS)]
    special = [{"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i in range(4)]
    a, b = ({"Sequence": {"id": name, "type_id": kind}} for kind, name in enumerate("AB"))

    def token(name, kind):
        return {"SpecialToken": {"id": name, "type_id": kind}}

    tokenizer = {
        "version": "1.0",
        # must have no effect
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]", 0), a, token("[SEP]", 0)],
            "pair": [token("[CLS]", 0), a, token("[SEP]", 0), b, token("[SEP]", 1)],
            "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in ((2, "[CLS]"), (3, "[SEP]"))},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(words)}},
    }
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    folder = folder_of("roberta", tmp_path_factory.mktemp("roberta"))
    with serve("--model", str(folder), "--served-model-name", "tiny", "--dtype", "float32") as base:
        yield base


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    folder = folder_of("bert-reranker", tmp_path_factory.mktemp("reranker"))
    with serve("--model", str(folder), "--dtype", "float32") as base:
        yield base


def ids_of(text):
    """Returns [CLS], the letters of each word, [SEP]."""
    ids = [4 + LETTERS.index(letter) + (0 if first else 26)
           for word in text.split() for first, letter in zip([True] + [False] * len(word), word)]
    return [2, *ids, 3]


def close(a, b, tolerance=1e-5):
    return len(a) == len(b) and all(abs(x - y) < tolerance for x, y in zip(a, b))


def test_openai_client_gets_the_vectors_of_transformers(embedder):
    client = openai.OpenAI(base_url=embedder + "/v1", api_key="none", max_retries=0)
    cases = golden("roberta", "first")
    # the client requests base64
    reply = client.embeddings.create(model="tiny", input=[ids for ids, _ in cases])
    assert [item.index for item in reply.data] == list(range(len(cases)))
    assert reply.usage.prompt_tokens == sum(len(ids) for ids, _ in cases)
    for (_, expected), item in zip(cases, reply.data):
        length = math.sqrt(sum(x * x for x in expected))
        assert close(item.embedding, [x / length for x in expected])
    floats = client.embeddings.create(model="tiny", input=cases[2][0], encoding_format="float")
    assert floats.data[0].embedding == pytest.approx(reply.data[2].embedding, rel=1e-6)
    short = client.embeddings.create(model="tiny", input=cases[2][0], dimensions=5).data[0].embedding
    assert math.isclose(sum(x * x for x in short), 1, rel_tol=1e-5) and len(short) == 5


def test_texts_are_framed_and_cut(embedder):
    client = openai.OpenAI(base_url=embedder + "/v1", api_key="none", max_retries=0)

    def vector(text, **more):
        return client.embeddings.create(model="tiny", input=text, extra_body=more).data[0].embedding

    text = "the quick brown fox"
    assert vector(text) == vector(ids_of(text))
    assert vector("The QUICK  brown fox") == vector(text)
    assert vector("x " * 400, truncate_prompt_tokens=9) == vector("x " * 7)  # special tokens remain
    with pytest.raises(openai.BadRequestError, match="a text has 402 tokens, but the model accepts at most 318"):
        vector("x " * 400)
    with pytest.raises(openai.NotFoundError, match="do not generate text"):
        client.completions.create(model="tiny", prompt="x")


def test_many_at_once_change_nothing(embedder):
    client = openai.OpenAI(base_url=embedder + "/v1", api_key="none", max_retries=0)
    texts = [f"{'abc ' * (i % 60)} {LETTERS[i % 26]}" for i in range(300)]
    together = [item.embedding for item in client.embeddings.create(model="tiny", input=texts).data]
    for i in (0, 17, 59, 255, 299):
        assert client.embeddings.create(model="tiny", input=texts[i]).data[0].embedding == together[i]


def test_rerankers_read_pairs(reranker):
    documents = ["a b c", "the answer is here", "nothing of the kind"]
    body = {"query": "where is the answer", "documents": documents}
    results = http_client.post(reranker + "/v1/rerank", json=body).json()["results"]
    scores = [result["relevance_score"] for result in results]
    assert sorted(result["index"] for result in results) == [0, 1, 2] and scores == sorted(scores, reverse=True)
    assert all(result["document"]["text"] == documents[result["index"]] for result in results)
    for result in results:
        pair = {"text_1": body["query"], "text_2": documents[result["index"]]}
        alone = http_client.post(reranker + "/score", json=pair).json()["data"][0]["score"]
        raw = http_client.post(reranker + "/score", json=pair | {"use_activation": False}).json()["data"][0]["score"]
        assert alone == result["relevance_score"] and math.isclose(alone, 1 / (1 + math.exp(-raw)), rel_tol=1e-5)
        swapped = {"text_1": pair["text_2"], "text_2": pair["text_1"]}
        assert http_client.post(reranker + "/score", json=swapped).json()["data"][0]["score"] != alone
    assert http_client.post(reranker + "/v1/embeddings", json={"input": "a"}).status_code == 404


def test_each_token_has_a_vector(tmp_path):
    golden = tensors(ENCODERS / "colbert/golden.safetensors")
    starts, width = golden["starts"], len(golden["tokens"]) // len(golden["ids"])
    folder = folder_of("colbert", tmp_path / "colbert")
    with serve("--model", str(folder), "--dtype", "float32") as base:
        texts = [list(golden["ids"][begin:end]) for begin, end in zip(starts, starts[1:])]
        data = http_client.post(base + "/pooling", json={"input": texts, "task": "token_embed"}).json()["data"]
        assert [len(item["data"]) for item in data] == [len(text) for text in texts]
        assert all(len(vector) == width and math.isclose(sum(x * x for x in vector), 1, rel_tol=1e-5) for vector in data[2]["data"])
        results = http_client.post(base + "/v1/rerank", json={"query": "the fox", "documents": ["a b c", "the fox", "fox"]}).json()["results"]
        assert results[0]["index"] == 1
        # the best match of each token is the token itself
        assert math.isclose(results[0]["relevance_score"], len(ids_of("the fox")), rel_tol=1e-5)
        embedded = http_client.post(base + "/v1/embeddings", json={"input": texts}).json()["data"]
        assert [item["embedding"] for item in embedded] == [item["data"] for item in data]
        refusal = http_client.post(base + "/classify", json={"input": "x"})
        assert refusal.status_code == 404 and refusal.json()["detail"] == "Not Found" and "do not classify texts" in refusal.text


def test_bge_m3_gives_vectors_and_weights_of_tokens(tmp_path):
    folder = folder_of("bge-m3", tmp_path / "m3")
    given = tensors(ENCODERS / "bge-m3/golden.safetensors")
    width = len(given["vectors"]) // len(given["ids"])
    begin, end = given["starts"][1:3]
    ids, weights = list(given["ids"][begin:end]), list(given["weights"][begin:end])
    vectors = [list(given["vectors"][i * width:(i + 1) * width]) for i in range(begin, end)]
    overrides = json.dumps({"architectures": ["BgeM3EmbeddingModel"]})
    with serve("--model", str(folder), "--dtype", "float32", "--hf-overrides", overrides, "--pooler-config",
               json.dumps({"task": "token_classify"})) as base:

        def read(ids, **more):
            reply = http_client.post(base + "/pooling", json={"input": ids} | more)
            assert reply.status_code == 200, reply.text
            return reply.json()["data"][0]["data"]

        assert close(read(ids), weights) and any(weights)
        assert close(read(ids, task="token_classify"), weights)
        made = read(ids, task="token_embed")
        assert len(made) == len(ids) and all(close(ours, theirs) for ours, theirs in zip(made, vectors))
        # <s> and </s> have no weights; <s> has no vector.
        assert len(read([0, *ids, 2])) == len(ids) and len(read([0, *ids, 2], task="token_embed")) == len(ids) + 1
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
        dense = client.embeddings.create(model=str(folder), input=ids).data[0].embedding
        assert close(read(ids, task="embed"), dense)
    command = serve_command("--model", str(folder), "--pooler-config", json.dumps({"task": "classify"})).replace("{port}", "0")
    refused = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=600)
    assert refused.returncode != 0 and "is not supported by XLMRobertaModel models" in refused.stderr


def test_cohere_and_jina_style_bodies(embedder):
    client = openai.OpenAI(base_url=embedder + "/v1", api_key="none", max_retries=0)
    texts = ["the quick brown fox", "jumps"]
    expected = [item.embedding for item in client.embeddings.create(model="tiny", input=texts).data]
    body = {"model": "tiny", "texts": texts, "input_type": "search_document", "embedding_types": ["float", "ubinary"]}
    reply = http_client.post(embedder + "/v2/embed", json=body).json()
    assert all(close(a, b) for a, b in zip(reply["embeddings"]["float"], expected))
    bits = [sum((x > 0) << (7 - k) for k, x in enumerate(expected[1][i:i + 8])) for i in range(0, len(expected[1]), 8)]
    assert reply["embeddings"]["ubinary"][1] == bits
    body = {"model": "tiny", "input": [{"text": text} for text in texts], "task": "retrieval.passage", "normalized": True}
    data = http_client.post(embedder + "/v1/embeddings", json=body).json()["data"]
    assert all(close(item["embedding"], vector) for item, vector in zip(data, expected))


@pytest.mark.parametrize(
    ("case", "made"),
    [
        ("roberta", "first"),  # post-norms, learned positions; a vocabulary of 97 tokens, which ranks
                               # cannot divide evenly
        ("embedding_gemma", "mean"),  # attention to both sides within windows; a dense layer after the
                                      # pooling
        ("qwen3-embedder", "last"),
        ("xlm-roberta-classifier", "scores"),
        ("qwen3-word-reranker-untied", "scores"),  # two rows of the output matrix
        ("qwen2-process-reward", "tokens"),
        ("nomic_moe", "mean"),  # experts whose sum has a bias, which only one rank adds
    ],
)
def test_two_ranks_read_texts(case, made, tmp_path):
    folder = folder_of(case, tmp_path / case)
    flags = ["--model", str(folder), "--runner", "pooling", "--dtype", "float32", "--device", "cpu"]
    if case.startswith("qwen3-word"):
        overrides = {"architectures": ["Qwen3ForSequenceClassification"], "classifier_from_token": ["h", "d"], "is_original_qwen3_reranker": True}
        flags += ["--hf-overrides", json.dumps(overrides)]
    ranks = ["--tensor-parallel-size", "2"] + (["--enable-expert-parallel"] if case == "nomic_moe" else [])
    given = tensors(ENCODERS / case / "golden.safetensors")
    texts = [list(given["ids"][begin:end]) for begin, end in zip(given["starts"], given["starts"][1:])]

    def read(base, texts):
        body = {"input": texts} | ({"task": "token_classify"} if made == "tokens" else {})
        reply = http_client.post(base + "/pooling", json=body)
        assert reply.status_code == 200, reply.text
        rows = [item["data"] for item in reply.json()["data"]]
        return [[x for row in rows for x in (row if isinstance(row, list) else [row])] for rows in rows]

    with serve(*flags) as base:
        one = read(base, texts)
    with serve(*flags, *ranks) as base:
        two = read(base, texts)
        # bit-identical, with any other requests in the batch
        assert [read(base, [text])[0] for text in texts] == two
    assert len(one) == len(texts) and all(close(ours, theirs) for ours, theirs in zip(two, one))


CHAT = "{% for m in messages %}{{ m.content }} {% endfor %}{% if add_generation_prompt %}go{% endif %}"


def test_conversations_and_long_texts(tmp_path):
    folder = folder_of("roberta", tmp_path / "roberta")
    config = {"pooling_type": "MEAN", "dimensions": 20, "enable_chunked_processing": True, "max_embed_len": 1000}
    with serve("--model", str(folder), "--served-model-name", "tiny", "--dtype", "float32", "--chat-template", CHAT,
               "--pooler-config", json.dumps(config)) as base:
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)

        def vector(text, **more):
            return client.embeddings.create(model="tiny", input=text, extra_body=more).data[0].embedding

        cases = golden("roberta", "mean")
        for ids, mean in cases:
            short = mean[:20]
            length = math.sqrt(sum(x * x for x in short))
            assert close(vector(ids), [x / length for x in short])
        messages = [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": "jumps"}]
        reply = http_client.post(base + "/v1/embeddings", json={"model": "tiny", "messages": messages, "add_special_tokens": True}).json()
        assert close(reply["data"][0]["embedding"], vector("the fox jumps"))
        # Chunks of 318, 318 and 64 tokens are computed separately. The result is the mean of their vectors,
        # weighted by their numbers of tokens.
        ids = (cases[-1][0] * 3)[:700]
        parts = [client.embeddings.create(model="tiny", input=ids[at:at + 318]).data[0].embedding for at in (0, 318, 636)]
        mean = [sum(n * x for n, x in zip((318, 318, 64), column)) for column in zip(*parts)]
        length = math.sqrt(sum(x * x for x in mean))
        assert close(vector(ids), [x / length for x in mean])
        with pytest.raises(openai.BadRequestError, match="a text has 1001 tokens, but the model accepts at most 1000"):
            vector(ids[:1] * 1001)


def test_rerankers_that_say_a_word(tmp_path):
    folder = folder_of("qwen3-word-reranker", tmp_path / "words")
    tokens = ["d", "h"]  # ids 7 and 11
    overrides = {"architectures": ["Qwen3ForSequenceClassification"], "classifier_from_token": tokens[::-1], "is_original_qwen3_reranker": True}
    template = "{% for m in messages %}{{ m.role[:1] }} {{ m.content }} {% endfor %}"
    with serve("--model", str(folder), "--dtype", "float32", "--hf-overrides", json.dumps(overrides), "--chat-template", template) as base:
        for ids, (score,) in golden("qwen3-word-reranker", "scores"):
            probs = http_client.post(base + "/classify", json={"input": ids}).json()["data"][0]["probs"]
            assert close(probs, [1 / (1 + math.exp(-score))])
        # The template is applied to a pair.
        pair = http_client.post(base + "/score", json={"text_1": "fox", "text_2": "dog"}).json()["data"][0]["score"]
        alone = http_client.post(base + "/classify", json={"input": "q fox d dog "}).json()["data"][0]["probs"][0]
        assert math.isclose(pair, alone, rel_tol=1e-6)
        reply = http_client.post(base + "/v1/rerank", json={"query": "fox", "documents": ["dog", "cat"]}).json()
        assert math.isclose(next(r["relevance_score"] for r in reply["results"] if r["index"] == 0), pair, rel_tol=1e-6)


def test_adapters_read_texts_for_tasks(tmp_path):
    """The tasks of Jina v3 are adapters, which the model's name or the task selects."""
    folder = folder_of("jina_v3", tmp_path / "model")
    adapter = str(folder / "adapter")
    with serve("--model", str(folder), "--served-model-name", "jina", "--dtype", "float32", "--enable-lora", "--max-loras", "2",
               "--lora-modules", f"retrieval.query={adapter}", f"other={adapter}") as base:
        def vector(ids, **fields):
            reply = http_client.post(f"{base}/v1/embeddings", json={"model": "jina", "input": ids, **fields})
            assert reply.status_code == 200, reply.text
            return reply.json()["data"][0]["embedding"]

        def unit(vector):
            return [x / math.sqrt(sum(x * x for x in vector)) for x in vector]

        (ids, plain), (_, adapted) = (golden("jina_v3", name)[1] for name in ("mean", "adapted"))
        for given, wanted in ((vector(ids), plain), (vector(ids, task="retrieval.query"), adapted),
                              (vector(ids, model="other"), adapted), (vector(ids, task="text-matching"), plain)):
            assert close(given, unit(wanted))
        assert not close(unit(plain), unit(adapted), 0.1)
        assert {model["id"] for model in http_client.get(f"{base}/v1/models").json()["data"]} == {"jina", "retrieval.query", "other"}
