"""vLLM's structured outputs by this grammar engine.

    VLLM_PLUGINS=octavo_grammar vllm serve MODEL --structured-outputs-config.backend xgrammar

The plugin takes the place of vLLM's backend "xgrammar", in every process of vLLM: requests, flags and the bitmask stay
the same. In a program, `octavo.grammar.vllm.install()` does this for the current process."""

import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, List, Optional, Set, Tuple

from vllm.v1.structured_output.backend_types import (StructuredOutputBackend, StructuredOutputGrammar,
                                                     StructuredOutputOptions)

from octavo.grammar.engine import (Grammar, GrammarError, LimitReached, Matcher, Options, compile_choice, compile_ebnf,
                                   compile_json_object, compile_json_schema, compile_regex, compile_structural_tag)
from octavo.grammar.vocabulary import Vocabulary

# The beginnings of vLLM's messages, for clients that look for them.
REFUSALS = {StructuredOutputOptions.JSON: "Failed to transform json schema into a grammar",
            StructuredOutputOptions.REGEX: "Failed to transform regex into a grammar",
            StructuredOutputOptions.CHOICE: "Failed to transform choices into a grammar",
            StructuredOutputOptions.GRAMMAR: "Invalid grammar specification",
            StructuredOutputOptions.STRUCTURAL_TAG: "Invalid structural tag specification"}
GRAMMARS_MAX = 256  # maximum number of compiled grammars that a backend keeps


def compile_request(kind: StructuredOutputOptions, text: str, vocabulary: Vocabulary, options: Options) -> Grammar:
    if kind == StructuredOutputOptions.JSON:
        return compile_json_schema(text, vocabulary, options)
    if kind == StructuredOutputOptions.JSON_OBJECT:
        return compile_json_object(vocabulary, options)
    if kind == StructuredOutputOptions.REGEX:
        return compile_regex(text, vocabulary)
    if kind == StructuredOutputOptions.GRAMMAR:
        return compile_ebnf(text, vocabulary)
    if kind == StructuredOutputOptions.CHOICE:
        return compile_choice(json.loads(text), vocabulary)
    if kind == StructuredOutputOptions.STRUCTURAL_TAG:
        return compile_structural_tag(text, vocabulary, options)
    raise ValueError(f"request_type: {kind} is not supported")


class OctavoGrammar(StructuredOutputGrammar):
    """The text of one request. stops: tokens that end the text, besides the vocabulary's end-of-text tokens."""

    def __init__(self, grammar: Grammar, stops: Set[int]) -> None:
        self.matcher = Matcher(grammar)
        self.eos = grammar.vocabulary.eos
        self.stops = stops - set(self.eos)
        self.stopped = False  # one of `stops` has ended the text; the matcher does not know them

    def _accept(self, token: int) -> bool:
        if token not in self.stops:
            return token >= 0 and self.matcher.accept(token)
        self.stopped = self.matcher.can_terminate
        return self.stopped

    def accept_tokens(self, request_id: str, tokens: List[int]) -> bool:
        for token in tokens:
            if self.is_terminated():
                return True
            if not self._accept(token):
                return False
        return True

    def validate_tokens(self, tokens: List[int]) -> List[int]:
        taken = 0
        while taken < len(tokens) and not self.is_terminated() and self._accept(tokens[taken]):
            taken += 1
        self.rollback(taken)
        return tokens[:taken]

    def rollback(self, num_tokens: int) -> None:
        if num_tokens and self.stopped:
            self.stopped = False
            num_tokens -= 1
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        row = bitmask[batch_index]
        try:
            if not self.is_terminated():
                self.matcher.fill(row)
                may_end = bool(self.stops) and self.matcher.can_terminate
                for token in self.stops:
                    _set(row, token, may_end)
                return
        except LimitReached:
            pass  # the text must end
        row[:] = 0
        for token in [*self.eos, *self.stops]:
            _set(row, token, True)

    def is_terminated(self) -> bool:
        return self.stopped or self.matcher.is_terminated

    def reset(self) -> None:
        self.stopped = False
        self.matcher.rollback(self.matcher.accepted)


def _set(row: Any, token: int, allowed: bool) -> None:
    word, bit = token // 32, token % 32
    if word < len(row):
        value = int(row[word]) & 0xFFFFFFFF
        value = value | 1 << bit if allowed else value & ~(1 << bit)
        row[word] = value - (1 << 32 if value >> 31 else 0)


@dataclass
class OctavoBackend(StructuredOutputBackend):
    _grammars: "OrderedDict[Tuple[StructuredOutputOptions, str], Grammar]" = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary.from_tokenizer(self.tokenizer, size=self.vocab_size)
        self.options = options_of(self.vllm_config)

    def compile_grammar(self, request_type: StructuredOutputOptions, grammar_spec: str,
                        stop_token_ids: Optional[Set[int]] = None) -> OctavoGrammar:
        key = (request_type, grammar_spec)
        with self._lock:
            grammar = self._grammars.pop(key, None)
        if grammar is None:
            grammar = compile_request(request_type, grammar_spec, self.vocabulary, self.options)
        with self._lock:
            self._grammars[key] = grammar  # newest last
            while len(self._grammars) > GRAMMARS_MAX:
                self._grammars.popitem(last=False)
        return OctavoGrammar(grammar, set(stop_token_ids or ()))

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        import torch
        return torch.full((max_num_seqs, self.vocabulary.mask_words), -1, dtype=torch.int32)

    def destroy(self) -> None:
        self._grammars.clear()


def options_of(vllm_config: Any) -> Options:
    """Returns XGrammar's defaults: members in the schema's order, and no members outside of the schema."""
    config = vllm_config.structured_outputs_config
    return Options(any_whitespace=not config.disable_any_whitespace, any_order=False)


def validate(sampling_params: Any) -> None:
    """Refuses an invalid grammar when the request arrives, and names the position of the error. Only the backend can
    check tokens of the model in a grammar or structural tag."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.request import get_structured_output_key
    if sampling_params.structured_outputs is None:
        return
    kind, text = get_structured_output_key(sampling_params.structured_outputs)
    names_tokens = kind in (StructuredOutputOptions.GRAMMAR, StructuredOutputOptions.STRUCTURAL_TAG)
    try:
        compile_request(kind, text, _bytes(), Options(any_order=False))
    except (GrammarError, ValueError) as problem:
        if names_tokens and "the vocabulary" in str(problem):
            return  # a token that bytes do not have
        raise VLLMValidationError(f"{REFUSALS.get(kind, 'structured_outputs')}: {problem}") from problem


_byte_vocabulary: List[Vocabulary] = []


def _bytes() -> Vocabulary:
    if not _byte_vocabulary:
        _byte_vocabulary.append(Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos=[256], special=[256]))
    return _byte_vocabulary[0]


def install() -> None:
    """Replaces the backend "xgrammar" in the current process."""
    import vllm.v1.structured_output as manager
    from vllm.v1.structured_output import backend_xgrammar
    manager.XgrammarBackend = backend_xgrammar.XgrammarBackend = OctavoBackend
    backend_xgrammar.validate_xgrammar_grammar = validate


def plugin() -> None:
    """vLLM calls it in each of its processes. It has an effect only if VLLM_PLUGINS names it, since vLLM loads every
    installed plugin if VLLM_PLUGINS is not set."""
    if "octavo_grammar" in os.environ.get("VLLM_PLUGINS", "").split(","):
        install()
