"""liboctavo_grammar (bindings/grammar/octavo_grammar.h) through ctypes, which releases the GIL during every call."""

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

ABI = 1
PACKAGE = Path(__file__).parent.parent


class GrammarError(ValueError):
    """A grammar, a vocabulary or an argument is invalid or not supported. The message names the position."""


class LimitReached(GrammarError):
    """A limit of work or memory was reached, or no token may follow."""


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("field", c_char * 64), ("message", c_char * 1024)]


_SIGNATURES = {
    "octavo_grammar_abi": (c_int32,),
    "octavo_vocabulary_create": (c_int32, c_char_p, POINTER(c_size_t), c_size_t, POINTER(c_int32), c_size_t,
                                 POINTER(c_int32), c_size_t, c_size_t, POINTER(c_void_p), POINTER(Error)),
    "octavo_vocabulary_free": (None, c_void_p),
    "octavo_vocabulary_mask_words": (c_size_t, c_void_p),
    "octavo_grammar_compile": (c_int32, c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_void_p),
                               POINTER(Error)),
    "octavo_grammar_free": (None, c_void_p),
    "octavo_grammar_size": (c_size_t, c_void_p),
    "octavo_grammar_store": (c_int32, c_void_p, c_void_p, c_size_t, POINTER(c_size_t), POINTER(Error)),
    "octavo_grammar_load": (c_int32, c_void_p, c_char_p, c_size_t, c_size_t, POINTER(c_void_p), POINTER(Error)),
    "octavo_matcher_create": (c_void_p, c_void_p),
    "octavo_matcher_fork": (c_void_p, c_void_p),
    "octavo_matcher_free": (None, c_void_p),
    "octavo_matcher_accept": (c_int32, c_void_p, c_int32),
    "octavo_matcher_accept_text": (c_int64, c_void_p, c_char_p, c_size_t),
    "octavo_matcher_fill": (c_int32, c_void_p, c_void_p, c_size_t, POINTER(Error)),
    "octavo_pool_create": (c_void_p, c_int32),
    "octavo_pool_free": (None, c_void_p),
    "octavo_matcher_fill_batch": (c_int64, c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_size_t),
    "octavo_matcher_rollback": (None, c_void_p, c_size_t),
    "octavo_matcher_accepted": (c_size_t, c_void_p),
    "octavo_matcher_forced_text": (None, c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "octavo_matcher_can_terminate": (c_int32, c_void_p),
    "octavo_matcher_is_terminated": (c_int32, c_void_p),
}


def _load() -> ctypes.CDLL:
    """Returns the library of the installed package, or the file in OCTAVO_GRAMMAR_LIBRARY."""
    path = os.environ.get("OCTAVO_GRAMMAR_LIBRARY", PACKAGE / "lib" / f"liboctavo_grammar.so.{ABI}")
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.octavo_grammar_abi() != ABI:
        raise ImportError(f"{path} has ABI {library.octavo_grammar_abi()}, this package needs {ABI}")
    return library


lib = _load()


def check(code: int, error: Error) -> None:
    if code == 0:
        return
    field, message = error.field.decode(), error.message.decode(errors="replace")
    text = f"{field}: {message}" if field else message
    if code == 3:
        raise LimitReached(text)
    raise GrammarError(text) if code in (1, 2) else RuntimeError(text)


class Immutable:
    """An object of the library. Copies share it."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled; send Grammar.to_bytes() and the tokens, and make it "
                        "again in the other process")


def created(address: int) -> int:
    if not address:
        raise MemoryError("the grammar engine does not have enough memory")
    return address
