"""vLLM's offline classes for pooling models, with small random encoders, compared with transformers' vectors."""

import math
import os
import re
import sys
from pathlib import Path

import pytest

from conftest import eventually
from test_embeddings import close, folder_of, golden, ids_of

ROOT = Path(__file__).parents[2]
os.environ.setdefault("OCTAVO_LIBRARY", str(ROOT / "build/release/liboctavo.so.1"))
os.environ.setdefault("OCTAVO_GRAMMAR_LIBRARY", str(ROOT / "build/release/liboctavo_grammar.so.1"))
sys.path.insert(0, str(ROOT / "bindings/python"))

from octavo import LLM, PoolingParams, SamplingParams  # noqa: E402
from octavo.config import PoolerConfig  # noqa: E402
from octavo.pooling_params import LateChunkingParams  # noqa: E402


def load(case, tmp_path_factory, **options):
    return LLM(str(folder_of(case, tmp_path_factory.mktemp(case))), dtype="float32", **options)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    with load("roberta", tmp_path_factory, runner="pooling") as llm:
        yield llm


def test_embed(embedder):
    cases = golden("roberta", "first")
    outputs = embedder.embed([{"prompt_token_ids": ids} for ids, _ in cases], use_tqdm=False)
    for (ids, expected), output in zip(cases, outputs, strict=True):
        length = math.sqrt(sum(x * x for x in expected))
        assert output.prompt_token_ids == ids and output.finished
        assert close(output.outputs.embedding, [x / length for x in expected])
    raw, = embedder.embed(cases[0][0], pooling_params=PoolingParams(use_activation=False))
    assert close(raw.outputs.embedding, cases[0][1])
    short, = embedder.embed("the quick brown fox", pooling_params=PoolingParams(dimensions=5))
    assert short.outputs.hidden_size == 5 and short.prompt_token_ids == ids_of("the quick brown fox")


def test_encode_says_what_the_head_says(embedder):
    text = "the quick brown fox"
    (vector,), (encoded,) = embedder.embed(text), embedder.encode(text, pooling_task="embed")
    assert encoded.outputs.data == vector.outputs.embedding
    with pytest.raises(ValueError, match="task"):
        embedder.encode(text, pooling_task="plugin")


def test_more_texts_than_fit_at_once(embedder):
    texts = ["abc " * (i % 9 + 1) for i in range(1500)]
    outputs = embedder.embed(texts)
    assert all(outputs[i].outputs == outputs[i % 9].outputs for i in range(1500))
    assert outputs[0].outputs != outputs[1].outputs


def test_scores_of_vectors_are_their_cosine(embedder):
    texts = ["a b c", "the answer is here", "nothing of the kind"]
    one, *others = (o.outputs.embedding for o in embedder.embed(texts))
    scores = [o.outputs.score for o in embedder.score(texts[0], texts[1:])]
    assert scores == pytest.approx([sum(x * y for x, y in zip(one, other)) for other in others], abs=1e-5)


def test_mistakes_are_named_and_leave_nothing_behind(embedder):
    with pytest.raises(ValueError, match="the model accepts at most 318"):
        embedder.embed(["fine"] * 9 + ["x " * 400])
    assert len(embedder.embed(["x " * 400], pooling_params=PoolingParams(truncate_prompt_tokens=9))[0].prompt_token_ids) == 9
    with pytest.raises(ValueError, match="dimensions"):
        embedder.embed("x", pooling_params=PoolingParams(dimensions=100000))
    with pytest.raises(ValueError, match="pooling_params"):
        embedder.embed(["x", "y"], pooling_params=[PoolingParams()])
    with pytest.raises(ValueError, match="data_1"):
        embedder.score(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="classify"):
        embedder.classify("x")
    with pytest.raises(ValueError):
        embedder.generate("x", SamplingParams())
    assert eventually(lambda: embedder.stats()["running"] == 0)


def test_classify(tmp_path_factory):
    with load("bert-classifier", tmp_path_factory) as llm:
        for output in llm.classify(["the quick brown fox", "a"]):
            assert output.outputs.num_classes > 1
            assert all(0 <= p <= 1 for p in output.outputs.probs) and output.outputs.label
        (probs,), (encoded,) = llm.classify("a"), llm.encode("a")
        assert encoded.outputs.data == pytest.approx(probs.outputs.probs)


def test_tokens_have_rows_and_chunks_have_places(tmp_path_factory):
    text = "the quick brown fox"
    with load("roberta", tmp_path_factory, pooler_config=PoolerConfig(task="token_embed")) as llm:
        tokens, = llm.encode(text, pooling_params=PoolingParams(use_activation=False))
        assert tokens.outputs.data.shape == (len(ids_of(text)), 64) and tokens.late_chunking is None
        chunks, = llm.embed(text, pooling_params=PoolingParams(use_activation=False,
                                                               late_chunking_params=LateChunkingParams(chunk_size=6)))
        assert chunks.outputs.data.shape == (3, 64)
        assert close(chunks.outputs.data[0], [sum(column) / 6 for column in zip(*tokens.outputs.data[:6])])
        first, *_, last = chunks.late_chunking.chunks
        assert first.token_range == (0, 6) and text[slice(*first.char_range)] == "the qu"
        assert last.token_range[1] == len(tokens.prompt_token_ids) and last.char_range[1] == len(text)


def test_cross_encoders_read_pairs(tmp_path_factory):
    with load("bert-reranker", tmp_path_factory) as llm:
        pair, = llm.score("where is it", "here")
        swapped, = llm.score("here", "where is it")
        assert 0 < pair.outputs.score < 1 and pair.outputs.score != swapped.outputs.score
        assert pair.prompt_token_ids == ids_of("where is it") + ids_of("here")[1:]
        assert [o.outputs.score for o in llm.score(["where is it", "here"], ["here", "where is it"])] == \
            [pair.outputs.score, swapped.outputs.score]


def examples(page):
    """Returns the Python code blocks of a page, except those that need a server."""
    blocks = re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", re.sub(r"(?s)## LangChain.*", "", page.read_text()))
    code = [re.sub(r"(?m)^    ", "", block).strip() for block in blocks]
    return [block for block in code if "llm = " in block or block.startswith("from octavo")]


EXAMPLES = [block for page in ("docs/start/five-minutes.md", "docs/guides/python.md") for block in examples(ROOT / page)]


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.splitlines()[-1][:60])
def test_the_examples_of_the_pages_run(code, tmp_path, tmp_path_factory, monkeypatch):
    """The demo model or an encoder replaces the reader's model."""
    code = re.sub(r"path/to/model|Qwen/Qwen3-0.6B", str(ROOT / "models/demo"), code)
    code = code.replace("BAAI/bge-small-en-v1.5", str(folder_of("roberta", tmp_path_factory.mktemp("roberta"))))
    monkeypatch.chdir(tmp_path)
    exec("from octavo import LLM, SamplingParams\n" + code, {})


def test_there_are_examples():
    assert len(EXAMPLES) == 7
