"""vLLM's structured-output backend with octavo.grammar. Without vLLM, the test uses a stand-in of its interface."""

import abc
import dataclasses
import enum
import importlib.util
import json
import os
import sys
import types
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
os.environ.setdefault("OCTAVO_GRAMMAR_LIBRARY", str(ROOT / "build/release/liboctavo_grammar.so.1"))
sys.path.insert(0, str(ROOT / "bindings/python"))

from octavo.grammar.engine import allowed_tokens  # noqa: E402

transformers = pytest.importorskip("transformers")
KINDS = ["JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG"]


def stand_in():
    """Replaces vllm/v1/structured_output/backend_types.py and the modules that install() changes."""

    class Grammar(abc.ABC):
        pass

    for name in ["accept_tokens", "validate_tokens", "rollback", "fill_bitmask", "is_terminated", "reset"]:
        setattr(Grammar, name, abc.abstractmethod(lambda self: None))
    abc.update_abstractmethods(Grammar)

    @dataclasses.dataclass
    class Backend(abc.ABC):
        vllm_config: object
        tokenizer: object
        vocab_size: int

    for name in ["compile_grammar", "allocate_token_bitmask", "destroy"]:
        setattr(Backend, name, abc.abstractmethod(lambda self: None))
    abc.update_abstractmethods(Backend)

    def key_of(params):
        return params.kind, params.text

    modules = {"vllm": {}, "vllm.exceptions": {"VLLMValidationError": type("VLLMValidationError", (ValueError,), {})},
               "vllm.v1": {}, "vllm.v1.structured_output": {"XgrammarBackend": None},
               "vllm.v1.structured_output.request": {"get_structured_output_key": key_of},
               "vllm.v1.structured_output.backend_xgrammar": {"XgrammarBackend": None, "validate_xgrammar_grammar": None},
               "vllm.v1.structured_output.backend_types": {
                   "StructuredOutputGrammar": Grammar, "StructuredOutputBackend": Backend,
                   "StructuredOutputOptions": enum.Enum("StructuredOutputOptions", KINDS)}}
    for name, members in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


if importlib.util.find_spec("vllm") is None:
    stand_in()
from octavo.grammar import vllm as ours  # noqa: E402

Kind = ours.StructuredOutputOptions
CONFIG = types.SimpleNamespace(structured_outputs_config=types.SimpleNamespace(disable_any_whitespace=True),
                               speculative_config=None)
PERSON = json.dumps({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                     "required": ["name", "age"]})


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "models/demo/tokenizer.json"), eos_token="<|im_end|>")


@pytest.fixture(scope="module")
def backend(tokenizer):
    return ours.OctavoBackend(CONFIG, tokenizer, len(tokenizer))


def tokens_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def mask_of(backend, grammar):
    mask = numpy.full((3, backend.vocabulary.mask_words), -1, dtype=numpy.int32)
    grammar.fill_bitmask(mask, 1)
    assert (mask[[0, 2]] == -1).all()
    return allowed_tokens(mask[1])


@pytest.mark.parametrize("kind, spec, text", [
    ("JSON", PERSON, '{"name":"Mira","age":31}'), ("JSON_OBJECT", "", '{"a":[1,null]}'), ("REGEX", "[a-c]+\\d", "abc1"),
    ("GRAMMAR", 'root ::= "yes" | "no"', "no"), ("GRAMMAR", 'start: "yes" | "no"', "yes"),
    ("CHOICE", '["red", "green"]', "green"),
    ("STRUCTURAL_TAG", json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": "hello"}}), "hello")])
def test_every_kind_of_request(backend, tokenizer, kind, spec, text):
    grammar = backend.compile_grammar(Kind[kind], spec)
    for token in tokens_of(tokenizer, text):
        assert not grammar.is_terminated()
        assert token in mask_of(backend, grammar)
        assert grammar.accept_tokens("r", [token])
    end = tokenizer.eos_token_id
    assert end in mask_of(backend, grammar)
    assert grammar.accept_tokens("r", [end]) and grammar.is_terminated()
    assert grammar.accept_tokens("r", [5])  # tokens after the end are ignored
    assert set(mask_of(backend, grammar)) == {end}
    grammar.rollback(1)
    assert not grammar.is_terminated() and end in mask_of(backend, grammar)
    grammar.reset()
    assert grammar.accept_tokens("r", tokens_of(tokenizer, text))


def test_drafts_are_cut_where_they_leave_the_grammar(backend, tokenizer):
    grammar = backend.compile_grammar(Kind.JSON, PERSON)
    good, bad = tokens_of(tokenizer, '{"name":"Mira"'), tokens_of(tokenizer, "}")
    assert grammar.validate_tokens(good + bad) == good
    assert grammar.validate_tokens([-1, *good]) == []  # padding of draft tokens
    assert grammar.accept_tokens("r", good) and not grammar.accept_tokens("r", bad)


def test_stop_tokens_of_a_request_wait_for_the_end(backend, tokenizer):
    stop = tokens_of(tokenizer, "!")[0]
    grammar = backend.compile_grammar(Kind.CHOICE, '["a", "b"]', {stop, tokenizer.eos_token_id})
    assert stop not in mask_of(backend, grammar) and not grammar.accept_tokens("r", [stop])
    a = tokens_of(tokenizer, "a")
    assert grammar.accept_tokens("r", a)
    assert stop in mask_of(backend, grammar)
    assert grammar.validate_tokens([stop, stop]) == [stop] and not grammar.is_terminated()
    assert grammar.accept_tokens("r", [stop]) and grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated() and stop in mask_of(backend, grammar)


def test_a_grammar_is_compiled_once(backend):
    one, two = (backend.compile_grammar(Kind.JSON, PERSON) for _ in range(2))
    assert one.matcher.grammar is two.matcher.grammar


def test_errors_name_the_place(backend):
    with pytest.raises(ours.GrammarError, match="'maxLength' at #/maxLength"):
        backend.compile_grammar(Kind.JSON, '{"type":"string","minLength":5,"maxLength":2}')


def params_of(kind, text):
    """Returns sampling parameters with vLLM's fields, which the stand-in also reads."""
    fields = dict.fromkeys(["json", "json_object", "regex", "choice", "grammar", "structural_tag"]) | {kind.lower(): text}
    return types.SimpleNamespace(structured_outputs=types.SimpleNamespace(kind=Kind[kind], text=text, **fields))


def test_a_request_is_refused_when_it_arrives():
    from vllm.exceptions import VLLMValidationError
    for kind, text, part in [("JSON", '{"minLength":-1}', "#/minLength"), ("REGEX", "(?=a)", "lookaround"), ("CHOICE", "[]", "choice"),
                             ("GRAMMAR", "not a grammar", "line 1"), ("STRUCTURAL_TAG", '{"nope": 1}', "structural tag")]:
        with pytest.raises(VLLMValidationError, match=part):
            ours.validate(params_of(kind, text))
    with pytest.raises(VLLMValidationError, match="^Invalid grammar specification: "):
        ours.validate(params_of("GRAMMAR", "not a grammar"))
    ours.validate(params_of("JSON", PERSON))
    for token in ["<|im_start|>", "<[70000]>"]:  # the message names a token of the model
        ours.validate(params_of("GRAMMAR", f"root ::= {token}"))
    ours.validate(params_of("STRUCTURAL_TAG", '{"format": {"type": "const_string", "value": "<|im_start|>"}}'))  # the message names a token


def test_install_takes_the_place_of_xgrammar(monkeypatch):
    import vllm.v1.structured_output as manager
    from vllm.v1.structured_output import backend_xgrammar
    monkeypatch.setattr(manager, "XgrammarBackend", None)
    monkeypatch.setattr(backend_xgrammar, "XgrammarBackend", None)
    monkeypatch.setattr(backend_xgrammar, "validate_xgrammar_grammar", None)
    monkeypatch.setenv("VLLM_PLUGINS", "lora,another")
    ours.plugin()
    assert manager.XgrammarBackend is None
    monkeypatch.setenv("VLLM_PLUGINS", "another,octavo_grammar")
    ours.plugin()
    assert manager.XgrammarBackend is backend_xgrammar.XgrammarBackend is ours.OctavoBackend
    assert backend_xgrammar.validate_xgrammar_grammar is ours.validate
