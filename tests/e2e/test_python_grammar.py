"""The package octavo.grammar. OCTAVO_GRAMMAR_LIBRARY: the liboctavo_grammar to test (default: build/release)."""

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest
from tokenizers import Tokenizer

ROOT = Path(__file__).parents[2]
os.environ.setdefault("OCTAVO_GRAMMAR_LIBRARY", str(ROOT / "build/release/liboctavo_grammar.so.1"))
sys.path.insert(0, str(ROOT / "bindings/python"))

from octavo.grammar import (Grammar, GrammarError, GrammarLogitsProcessor, LimitReached, Matcher,  # noqa: E402
                            MatcherPool, Options, Vocabulary, allocate_bitmask, apply_bitmask, compile_choice,
                            compile_ebnf, compile_json_object, compile_json_schema, compile_lark, compile_regex,
                            compile_structural_tag, compile_tools)
from octavo.grammar.engine import allowed_tokens  # noqa: E402

DEMO = ROOT / "models/demo"
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name", "age"]}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(DEMO / "tokenizer.json"))


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.from_file(DEMO)


def reads(grammar, text):
    matcher = Matcher(grammar)
    return matcher.accept_text(text) >= 0 and matcher.can_terminate


def test_vocabulary_from_files_and_tokenizers(vocabulary, tokenizer):
    assert vocabulary.eos == [4089, 4091]
    assert Vocabulary.from_file(DEMO / "tokenizer.json", size=5000).mask_words == (5000 + 31) // 32
    same = Vocabulary.from_tokenizer(tokenizer, eos=[4089, 4091])
    assert (same.size, same.mask_words) == (vocabulary.size, vocabulary.mask_words)
    with pytest.raises(GrammarError, match="eos"):
        Vocabulary.from_tokenizer(tokenizer)
    with pytest.raises(GrammarError, match="fast tokenizer"):
        Vocabulary.from_tokenizer(object(), eos=[0])


def test_vocabulary_from_a_tokenizer_of_transformers(vocabulary):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(DEMO / "tokenizer.json"), eos_token="<|im_end|>")
    assert Vocabulary.from_tokenizer(tokenizer).eos == [4091]


def test_sentencepiece_names_are_texts(tmp_path):
    names = {"<unk>": 0, "</s>": 1, "<0x0A>": 2, "\u2581yes": 3, "no": 4}
    model = {"model": {"type": "BPE", "vocab": names, "byte_fallback": True}, "decoder": {"type": "ByteFallback"},
             "added_tokens": [{"id": 1, "content": "</s>", "special": True}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(model))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    vocabulary = Vocabulary.from_file(tmp_path)
    matcher = Matcher(compile_regex(" yes\n|no", vocabulary))
    mask = allocate_bitmask(1, vocabulary)
    matcher.fill(mask[0])
    assert allowed_tokens(mask[0]) == [3, 4]
    assert matcher.accept(3) and matcher.accept(2) and matcher.accept(1) and matcher.is_terminated


def test_every_kind_of_grammar(vocabulary):
    schema = compile_json_schema(PERSON, vocabulary)
    assert reads(schema, '{"age": 3, "name": "Mira"}') and not reads(schema, '{"name": "Mira"}')
    in_order = compile_json_schema(json.dumps(PERSON), vocabulary, Options(any_order=False))
    assert reads(in_order, '{"name": "Mira", "age": 3}') and not reads(in_order, '{"age": 3, "name": "Mira"}')
    assert reads(compile_json_object(vocabulary), '{"a": [1]}')
    assert reads(compile_regex("[a-c]+", vocabulary), "abc")
    assert reads(compile_choice(["yes", "no"], vocabulary), "yes")
    assert reads(compile_ebnf('root ::= "a" [0-9]', vocabulary), "a7")
    assert reads(compile_lark('start: "a" NUMBER\nNUMBER: /[0-9]+/', vocabulary), "a77")
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "<f>"}}
    assert reads(compile_structural_tag(tag, vocabulary), "<f>")
    tools = [{"type": "function", "function": {"name": "f", "parameters": PERSON}}]
    assert reads(compile_tools(tools, vocabulary), '[{"name": "f", "parameters": {"name": "x", "age": 1}}]')
    hermes = compile_tools(tools, vocabulary, dialect="hermes")
    call = '<tool_call>\n{"name": "f", "arguments": {"name": "x", "age": %s}}\n</tool_call>'
    assert reads(hermes, call % "1") and not reads(hermes, call % '"1"')


def test_masks_are_what_accept_takes(vocabulary, tokenizer):
    grammar, text = compile_json_schema(PERSON, vocabulary), '{"age": 31, "name": "Mira"}'
    matcher, mask = Matcher(grammar), allocate_bitmask(1, vocabulary)
    for token in tokenizer.encode(text, add_special_tokens=False).ids:
        matcher.fill(mask[0])
        allowed = allowed_tokens(mask[0])
        assert token in allowed
        assert allowed == [t for t in range(vocabulary.size) if matcher.fork().accept(t)]
        assert matcher.accept(token)
    assert matcher.can_terminate and matcher.accept(vocabulary.eos[0]) and matcher.is_terminated
    with pytest.raises(RuntimeError):
        matcher.fill(mask[0])


def test_texts_rollback_forced_text_and_forks(vocabulary):
    matcher = Matcher(compile_regex("abc(x|yz)", vocabulary))
    assert matcher.forced_text() == b"abc"
    taken = matcher.accept_text("abcy")
    assert taken == matcher.accepted > 0 and matcher.forced_text() == b"z"
    fork = matcher.fork()
    assert matcher.accept_text("x") == -1 and matcher.accepted == taken
    matcher.rollback(taken)
    assert matcher.accepted == 0 and matcher.accept_text(b"abcx") > 0 and matcher.can_terminate
    assert not fork.can_terminate and fork.accept_text("z") == 1 and fork.can_terminate


def test_batches_and_threads(vocabulary):
    grammar = compile_json_schema(PERSON, vocabulary)
    matchers = [Matcher(grammar) for _ in range(9)]
    for i, matcher in enumerate(matchers):
        assert matcher.accept_text('{"name": "Mira"'[:i]) >= 0
    masks, alone = allocate_bitmask(9, vocabulary), allocate_bitmask(9, vocabulary)
    pool = MatcherPool(3)
    assert pool.fill(matchers, masks) == 0
    for matcher, row in zip(matchers, alone):
        matcher.fill(row)
    assert (masks == alone).all()
    with pytest.raises(ValueError, match="must have one row for each"):
        pool.fill(matchers[:2], masks)
    with pytest.raises(ValueError, match="twice"):
        pool.fill([matchers[0]] * 9, masks)
    # Matchers of one grammar run on several threads of the caller.
    results = {}

    def run(i):
        mine, mask = Matcher(grammar), allocate_bitmask(1, vocabulary)
        assert mine.accept_text('{"name": "' + "x" * i) > 0
        mine.fill(mask[0])
        results[i] = len(allowed_tokens(mask[0]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results.values())) == 1 and len(results) == 8


def test_stored_grammars(vocabulary):
    data = compile_json_schema(PERSON, vocabulary).to_bytes()
    loaded = Grammar.from_bytes(data, vocabulary)
    assert reads(loaded, '{"age": 3, "name": "Mira"}') and not reads(loaded, "{}") and loaded.size > 0
    with pytest.raises(GrammarError, match="another vocabulary"):
        Grammar.from_bytes(data, Vocabulary.from_file(DEMO, size=5000))
    with pytest.raises(GrammarError, match="not a compiled grammar"):
        Grammar.from_bytes(b"{}", vocabulary)
    with pytest.raises(GrammarError, match="damaged"):
        Grammar.from_bytes(data[:-1], vocabulary)
    with pytest.raises(GrammarError, match="version"):
        Grammar.from_bytes(data[:8] + b"\0" * 8 + data[16:], vocabulary)


def test_masks_over_logits(vocabulary):
    matcher, mask = Matcher(compile_choice(["yes", "no"], vocabulary)), allocate_bitmask(2, vocabulary)
    matcher.fill(mask[0])
    allowed = allowed_tokens(mask[0])
    logits = numpy.zeros((2, vocabulary.size - 3), dtype=numpy.float32)  # fewer logits than bits
    apply_bitmask(logits, mask)
    assert numpy.isfinite(logits[0]).nonzero()[0].tolist() == allowed and numpy.isfinite(logits[1]).all()
    one = numpy.zeros(vocabulary.size, dtype=numpy.float32)
    apply_bitmask(one, mask[0])
    assert numpy.isfinite(one).nonzero()[0].tolist() == allowed
    with pytest.raises(ValueError, match="the logits have"):
        apply_bitmask(numpy.zeros((2, vocabulary.size + 64)), mask)
    with pytest.raises(ValueError, match="int32"):
        matcher.fill(numpy.zeros(vocabulary.mask_words, dtype=numpy.int64))


def test_logits_processor_keeps_a_batch_to_the_grammar(vocabulary, tokenizer):
    """Random logits are processed as in generate(), with a prompt before the text and rows that end early."""
    random, processor = numpy.random.default_rng(7), GrammarLogitsProcessor(
        compile_json_schema({"type": "object", "properties": {"kind": {"enum": ["a", "bb"]}, "n": {"type": "boolean"}},
                             "required": ["n", "kind"]}, vocabulary, Options(any_whitespace=False)))
    for prompt in ([5, 6, 7], [5, 6, 7], [5, 6, 8], [1] * 90):  # each prompt is another call of generate()
        ids = numpy.array([prompt] * 4)
        for _ in range(60):
            scores = processor(ids, random.normal(size=(4, vocabulary.size)))
            ids = numpy.concatenate([ids, scores.argmax(axis=1)[:, None]], axis=1)
        for row in ids[:, len(prompt):].tolist():
            end = min(row.index(token) for token in vocabulary.eos if token in row)
            value = json.loads(tokenizer.decode(row[:end], skip_special_tokens=False))
            assert set(value) == {"n", "kind"} and value["kind"] in ("a", "bb")


def test_copies_live_longer_than_their_originals(vocabulary):
    """copy and deepcopy return objects that stay valid. Objects that cannot be sent to another process raise an
    error."""
    grammar = compile_regex("ab+", vocabulary)
    matcher = Matcher(grammar)
    assert matcher.accept_text("a") >= 0
    copies = [copy.copy(matcher), copy.deepcopy(matcher), Matcher(copy.copy(grammar))]
    del matcher
    gc.collect()
    assert copies[0].accept_text("b") >= 0 and not copies[1].can_terminate and copies[2].accepted == 0
    assert copy.deepcopy(vocabulary) is vocabulary
    for thing in (grammar, copies[0], vocabulary):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)


def test_token_numbers_beyond_32_bits_are_unknown(vocabulary):
    matcher, mask = Matcher(compile_regex("ab+", vocabulary)), allocate_bitmask(1, vocabulary)
    matcher.fill(mask[0])
    token = allowed_tokens(mask[0])[0]
    assert not matcher.accept(token + 2**32) and not matcher.accept(-1) and not matcher.accept(vocabulary.size)
    assert matcher.accept(numpy.int64(token))


def test_classes_of_pydantic_are_schemas(vocabulary):
    class Model:
        @staticmethod
        def model_json_schema():
            return {"type": "integer"}

    assert Matcher(compile_json_schema(Model, vocabulary)).accept_text("12") >= 0


def test_mistakes_are_named(vocabulary):
    with pytest.raises(GrammarError, match="'maxLength' at #/properties/a/maxLength: must be a whole number"):
        compile_json_schema({"properties": {"a": {"maxLength": -1}}}, vocabulary)
    with pytest.raises(GrammarError, match="regex"):
        compile_regex("(", vocabulary)
    with pytest.raises(GrammarError, match="dialect"):
        compile_tools([{"name": "f"}], vocabulary, dialect="none")
    with pytest.raises(GrammarError, match="is not in the vocabulary"):
        Vocabulary([b"a"], eos=[1])
    with pytest.raises(TypeError, match=r"tokens\[1\] must be bytes, not str"):
        Vocabulary([b"a", "b"], eos=[0])
    with pytest.raises(TypeError, match="choices: must be a list of texts, got one text"):
        compile_choice("abc", vocabulary)
    with pytest.raises(TypeError, match="regex: must be a text, got NoneType"):
        compile_regex(None, vocabulary)
    assert issubclass(LimitReached, GrammarError)


def test_needs_nothing_but_its_own_library():
    """octavo.grammar works without liboctavo and without numpy."""
    code = ("import sys; sys.modules['numpy'] = None\n"
            "from octavo.grammar import Matcher, Vocabulary, compile_regex\n"
            "m = Matcher(compile_regex('a', Vocabulary([b'a', b''], eos=[1])))\n"
            "assert m.accept(0) and m.accept(1) and m.is_terminated")
    environment = {k: v for k, v in os.environ.items() if k != "OCTAVO_LIBRARY"}
    environment["PYTHONPATH"] = str(ROOT / "bindings/python")
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_example_with_transformers():
    pytest.importorskip("torch")
    example = ROOT / "bindings/examples/python/grammar_transformers.py"
    written = subprocess.run([sys.executable, example, DEMO, "Mira is 31."], check=True, capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(ROOT / "bindings/python")}).stdout
    person = json.loads(written)
    assert set(person) == {"name", "age"} and 0 <= person["age"] <= 150


def test_the_wheel_of_the_grammar_alone(tmp_path):
    library = os.environ["OCTAVO_GRAMMAR_LIBRARY"]
    subprocess.run([sys.executable, ROOT / "tools/grammar_wheel.py", library, tmp_path], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 10e6
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "site"], check=True)
    code = ("from octavo.grammar import Matcher, Vocabulary, compile_regex\n"
            "v = Vocabulary([bytes([b]) for b in range(256)] + [b'<end>'], eos=[256], special=[256])\n"
            "m = Matcher(compile_regex('a+b', v))\n"
            "assert m.accept_text('aab') == 3 and m.can_terminate\n")
    environment = {name: value for name, value in os.environ.items() if name != "OCTAVO_GRAMMAR_LIBRARY"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment | {"PYTHONPATH": str(tmp_path / "site")})
