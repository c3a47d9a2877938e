"""Compiled grammars and their matchers."""

import ctypes
import json
import weakref
from ctypes import byref, c_size_t, c_void_p
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence, Union

from octavo.grammar._library import Error, GrammarError, LimitReached, Immutable, check, created, lib
from octavo.grammar.bitmask import address_of
from octavo.grammar.vocabulary import Vocabulary

__all__ = ["Grammar", "GrammarError", "LimitReached", "Matcher", "MatcherPool", "Options"]


@dataclass(frozen=True)
class Options:
    """How JSON follows a schema."""
    any_whitespace: bool = True  # a space after ':', and line breaks with indentation around members
    additional_properties: bool = False  # default for objects with `properties` and without this keyword
    any_order: bool = True  # members may be in any order, in objects with at most 256 properties
    refuse_unknown: bool = False  # True: unknown keywords and formats are errors; False: they are ignored
    refuse_unique: bool = False  # True: `uniqueItems` is an error if it needs all earlier items


class Grammar(Immutable):
    """A compiled grammar: immutable, thread-safe, shared by any number of matchers. The compile_ functions make it.
    Their argument parser_bytes limits the parse cache of the grammar's matchers (0: 32 MiB). A full cache is cleared,
    and parses are computed again."""

    def __init__(self, handle: c_void_p, vocabulary: Vocabulary) -> None:
        self._handle = handle
        self._free = weakref.finalize(self, lib.octavo_grammar_free, handle)
        self.vocabulary = vocabulary

    @property
    def size(self) -> int:
        """Current size of the grammar in bytes."""
        return int(lib.octavo_grammar_size(self._handle))

    def to_bytes(self) -> bytes:
        """Returns the compiled grammar, for `from_bytes` of the same release and an equal vocabulary."""
        needed, error = c_size_t(), Error()
        check(lib.octavo_grammar_store(self._handle, None, 0, byref(needed), byref(error)), error)
        out = ctypes.create_string_buffer(needed.value)
        check(lib.octavo_grammar_store(self._handle, out, needed.value, byref(needed), byref(error)), error)
        return out.raw

    @classmethod
    def from_bytes(cls, data: bytes, vocabulary: Vocabulary, parser_bytes: int = 0) -> "Grammar":
        """Loads the bytes of `to_bytes`. GrammarError: they are damaged, or of another release or vocabulary."""
        handle, error = c_void_p(), Error()
        check(lib.octavo_grammar_load(vocabulary._handle, data, len(data), parser_bytes, byref(handle), byref(error)),
              error)
        return cls(handle, vocabulary)


def _compile(kind: str, text: str, vocabulary: Vocabulary, options: Optional[Options], parser_bytes: int) -> Grammar:
    if not isinstance(text, str):
        raise TypeError(f"{kind}: must be a text, got {type(text).__name__}")
    handle, error, data = c_void_p(), Error(), text.encode()
    given = json.dumps(asdict(options)).encode() if options else None
    check(lib.octavo_grammar_compile(vocabulary._handle, kind.encode(), data, len(data), given, parser_bytes,
                                     byref(handle), byref(error)), error)
    return Grammar(handle, vocabulary)


def _json(value: Any) -> str:
    if hasattr(value, "model_json_schema"):  # a class of pydantic
        value = value.model_json_schema()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def compile_json_schema(schema: Any, vocabulary: Vocabulary,
                        options: Optional[Options] = None, parser_bytes: int = 0) -> Grammar:
    """Compiles a JSON Schema (drafts 4 to 2020-12): a text, the loaded JSON, or a pydantic class. GrammarError names
    the keyword that cannot be enforced, and its JSON pointer."""
    return _compile("json_schema", _json(schema), vocabulary, options, parser_bytes)


def compile_json_object(vocabulary: Vocabulary, options: Optional[Options] = None, parser_bytes: int = 0) -> Grammar:
    """Compiles a grammar for any JSON object."""
    return _compile("json_object", "", vocabulary, options, parser_bytes)


def compile_regex(pattern: str, vocabulary: Vocabulary, parser_bytes: int = 0) -> Grammar:
    """Compiles a regex. Texts match the whole pattern."""
    return _compile("regex", pattern, vocabulary, None, parser_bytes)


def compile_ebnf(text: str, vocabulary: Vocabulary, parser_bytes: int = 0) -> Grammar:
    """Compiles a grammar in llama.cpp's GBNF."""
    return _compile("ebnf", text, vocabulary, None, parser_bytes)


def compile_lark(text: str, vocabulary: Vocabulary, parser_bytes: int = 0) -> Grammar:
    """Compiles a Lark grammar, with llguidance's `%json`."""
    return _compile("ebnf", text, vocabulary, None, parser_bytes)


def compile_choice(choices: Sequence[str], vocabulary: Vocabulary, parser_bytes: int = 0) -> Grammar:
    """Compiles a choice of these texts."""
    if isinstance(choices, str):
        raise TypeError("choices: must be a list of texts, got one text")
    return _compile("choice", json.dumps(list(choices), ensure_ascii=False), vocabulary, None, parser_bytes)


def compile_structural_tag(tag: Union[str, Dict[str, Any]], vocabulary: Vocabulary, options: Optional[Options] = None,
                           parser_bytes: int = 0) -> Grammar:
    """Compiles an XGrammar structural tag: free text with enforced parts."""
    return _compile("structural_tag", _json(tag), vocabulary, options, parser_bytes)


def compile_tools(tools: Sequence[Dict[str, Any]], vocabulary: Vocabulary, tool_choice: str = "required",
                  dialect: Optional[str] = None, parallel: bool = True, options: Optional[Options] = None,
                  parser_bytes: int = 0) -> Grammar:
    """Compiles tool calls from OpenAI's tool definitions, in the dialect of a model ("hermes", "llama3_json", ..:
    vLLM's names of tool parsers). tool_choice: "required", or "auto" (free text, in which calls are valid). Without a
    dialect: the JSON list of {"name", "parameters"} that vLLM's `required` writes."""
    request: Dict[str, Any] = {"tools": list(tools), "tool_choice": tool_choice, "parallel": parallel}
    if dialect is not None:
        request["dialect"] = dialect
    return _compile("tools", _json(request), vocabulary, options, parser_bytes)


class Matcher:
    """The state of one text under a grammar. Use it in one thread at a time; different matchers may run concurrently.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._begin(lib.octavo_matcher_create(grammar._handle), grammar)

    def _begin(self, address: int, grammar: Grammar) -> None:
        self._handle = c_void_p(created(address))
        self._free = weakref.finalize(self, lib.octavo_matcher_free, self._handle)
        self.grammar = grammar

    def fork(self) -> "Matcher":
        """Returns an independent copy."""
        copy = Matcher.__new__(Matcher)
        copy._begin(lib.octavo_matcher_fork(self._handle), self.grammar)
        return copy

    __copy__ = fork

    def __deepcopy__(self, memo: Any) -> "Matcher":
        return self.fork()

    def __reduce__(self) -> Any:
        raise TypeError("a Matcher cannot be pickled; send its tokens, and accept them in the other process")

    def accept(self, token: int) -> bool:
        """Accepts a token. Returns False, without a change, if the token may not follow. An end-of-text token
        terminates the matcher."""
        token = int(token)
        if not 0 <= token < self.grammar.vocabulary.size:
            return False  # ctypes would truncate the number
        return bool(lib.octavo_matcher_accept(self._handle, token))

    def accept_text(self, text: Union[str, bytes]) -> int:
        """Accepts a text as tokens that spell it. Returns the number of tokens, for rollback(); -1, without a change,
        if the text may not follow."""
        data = text.encode() if isinstance(text, str) else text
        return int(lib.octavo_matcher_accept_text(self._handle, data, len(data)))

    def fill(self, mask: Any) -> None:
        """Sets the bits of the tokens that may follow, and clears all others. mask: one row of int32 words (numpy,
        torch on the CPU, DLPack). LimitReached: no token may follow, or the computation exceeds its limit; then the
        text must end."""
        address, rows, words = address_of(mask)
        if rows != 1:
            raise ValueError(f"mask: must have one row, got {rows}")
        error = Error()
        check(lib.octavo_matcher_fill(self._handle, address, words, byref(error)), error)

    def rollback(self, tokens: int) -> None:
        """Removes the last accepted tokens."""
        if tokens < 0:
            raise ValueError(f"tokens: must be at least 0, got {tokens}")
        lib.octavo_matcher_rollback(self._handle, tokens)

    @property
    def accepted(self) -> int:
        """Number of accepted tokens."""
        return int(lib.octavo_matcher_accepted(self._handle))

    def forced_text(self) -> bytes:
        """Returns the text that must follow; b"" if there is a choice."""
        out, needed = ctypes.create_string_buffer(4096), c_size_t()  # at least as long as any
        lib.octavo_matcher_forced_text(self._handle, out, len(out), byref(needed))
        return out.raw[:needed.value]

    @property
    def can_terminate(self) -> bool:
        """Whether the text may end here."""
        return bool(lib.octavo_matcher_can_terminate(self._handle))

    @property
    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted."""
        return bool(lib.octavo_matcher_is_terminated(self._handle))


class MatcherPool:
    """Threads that fill the masks of many matchers concurrently, one batch at a time."""

    def __init__(self, threads: int) -> None:
        if not 1 <= threads <= 1024:
            raise ValueError(f"threads: must be from 1 to 1024, got {threads}")
        self._handle = c_void_p(created(lib.octavo_pool_create(threads)))
        self._free = weakref.finalize(self, lib.octavo_pool_free, self._handle)

    def fill(self, matchers: Sequence[Matcher], masks: Any) -> int:
        """Fills row i of the masks from matchers[i]. A matcher must not occur twice. Rows for which Matcher.fill would
        fail are zero; returns their number."""
        address, rows, words = address_of(masks)
        if rows != len(matchers):
            raise ValueError(f"masks: must have one row for each of the {len(matchers)} matchers, got {rows}")
        if len({id(m) for m in matchers}) != len(matchers):
            raise ValueError("matchers: must not contain the same matcher twice: use fork()")
        handles = (c_void_p * len(matchers))(*(m._handle for m in matchers))
        failed = lib.octavo_matcher_fill_batch(self._handle, handles, len(matchers), address, words)
        if failed < 0:
            raise ValueError(f"masks: rows of {words} words are too short for the vocabulary")
        return int(failed)


def allowed_tokens(mask: Any) -> List[int]:
    """Returns the allowed tokens of one row, ascending; for tests and logs."""
    import numpy
    return numpy.flatnonzero(numpy.unpackbits(numpy.asarray(mask).view(numpy.uint8), bitorder="little")).tolist()
