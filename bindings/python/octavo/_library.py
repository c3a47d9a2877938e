"""liboctavo (bindings/c/octavo.h) through ctypes. Other Python threads run during every call."""

import ctypes
import json
import os
import weakref
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

ABI = 1
PACKAGE = Path(__file__).parent

FINISH_REASONS = {0: None, 1: "stop", 2: "length", 3: "repetition", 4: "abort", 5: "error"}


class OctavoError(RuntimeError):
    """The engine has failed, or cannot do what was requested."""


class InvalidInput(OctavoError, ValueError):
    """The input is invalid, or Octavo does not support it."""


class ResourceExhausted(OctavoError):
    """A limit was reached; retry after running requests have ended."""


_ERRORS = {1: InvalidInput, 2: InvalidInput, 3: InvalidInput, 4: InvalidInput, 6: ResourceExhausted}


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("field", c_char * 64), ("message", c_char * 1024)]


class _Candidate(ctypes.Structure):
    _fields_ = [("token", c_int32), ("logprob", c_float)]


class _Logprobs(ctypes.Structure):
    _fields_ = [("token", c_int32), ("logprob", c_float), ("rank", c_int32), ("top", POINTER(_Candidate)),
                ("top_count", c_size_t)]


class _Output(ctypes.Structure):
    _fields_ = [("request", c_uint64), ("index", c_int32), ("finish", c_int32), ("last", c_int32),
                ("text", c_void_p), ("text_bytes", c_size_t),
                ("tokens", POINTER(c_int32)), ("token_count", c_size_t),
                ("logprobs", POINTER(_Logprobs)),
                ("stop_text", c_void_p), ("stop_text_bytes", c_size_t), ("stop_token", c_int32),
                ("error", c_void_p), ("error_bytes", c_size_t),
                ("prompt_tokens", POINTER(c_int32)), ("prompt_token_count", c_size_t),
                ("prompt_logprobs", POINTER(_Logprobs)), ("prompt_logprob_count", c_size_t),
                ("cached_tokens", c_int32),
                ("scheduled_s", c_double), ("first_token_s", c_double), ("last_token_s", c_double)]


class _Outputs(ctypes.Structure):
    _fields_ = [("items", POINTER(_Output)), ("count", c_size_t)]


class _Stats(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in ("healthy", "running", "waiting", "blocks_total", "blocks_used",
                                             "blocks_cached")] + \
               [(name, c_int64) for name in ("prompt_tokens", "prompt_tokens_cached", "generation_tokens",
                                             "prefix_queries", "prefix_hits", "preemptions")] + \
               [("sleep_level", c_int32)]


_SIGNATURES = {
    "octavo_abi": (c_int32,),
    "octavo_version": (c_char_p,),
    "octavo_create": (c_int32, c_char_p, POINTER(c_void_p), POINTER(_Error)),
    "octavo_destroy": (None, c_void_p),
    "octavo_info": (c_char_p, c_void_p),
    "octavo_submit": (c_int32, c_void_p, c_uint64, c_char_p, c_size_t, c_int32, POINTER(_Error)),
    "octavo_submit_texts": (c_int32, c_void_p, c_uint64, c_char_p, c_char_p, c_size_t, POINTER(_Error)),
    "octavo_abort": (None, c_void_p, c_uint64),
    "octavo_wait": (POINTER(_Outputs), c_void_p, c_int32),
    "octavo_outputs_free": (None, POINTER(_Outputs)),
    "octavo_details": (c_char_p, POINTER(_Outputs), c_size_t),
    "octavo_load_adapter": (c_int32, c_void_p, c_char_p, c_char_p, POINTER(_Error)),
    "octavo_options": (c_char_p,),
    "octavo_pause": (c_int32, c_void_p, c_char_p, POINTER(_Error)),
    "octavo_resume": (None, c_void_p),
    "octavo_encode": (c_int32, c_void_p, c_char_p, c_size_t, c_int32, POINTER(c_int32), c_size_t, POINTER(c_size_t),
                      POINTER(_Error)),
    "octavo_decode": (c_int32, c_void_p, POINTER(c_int32), c_size_t, c_int32, c_char_p, c_size_t, POINTER(c_size_t),
                      POINTER(_Error)),
    "octavo_get_stats": (None, c_void_p, POINTER(_Stats), c_size_t),
    "octavo_metrics": (c_int32, c_void_p, c_char_p, c_size_t, POINTER(c_size_t), POINTER(_Error)),
    "octavo_reset_prefix_cache": (None, c_void_p),
    "octavo_sleep": (c_int32, c_void_p, c_int32, POINTER(_Error)),
    "octavo_wake_up": (c_int32, c_void_p, POINTER(_Error)),
    "octavo_start_profile": (c_int32, c_void_p, c_char_p, POINTER(_Error)),
    "octavo_stop_profile": (c_int32, c_void_p, POINTER(_Error)),
}


def _load() -> ctypes.CDLL:
    """Returns the library of the installed package, or the file in OCTAVO_LIBRARY."""
    path = os.environ.get("OCTAVO_LIBRARY", PACKAGE / "lib" / f"liboctavo.so.{ABI}")
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.octavo_abi() != ABI:
        raise ImportError(f"{path} has ABI {library.octavo_abi()}, this package needs {ABI}")
    return library


_lib = _load()
VERSION = _lib.octavo_version().decode()


def option_list() -> list[dict[str, Any]]:
    """Returns the options of an engine, see octavo_options() in octavo.h."""
    return json.loads(_lib.octavo_options())


def _check(code: int, error: _Error) -> None:
    if code == 0:
        return
    field, message = error.field.decode(), error.message.decode(errors="replace")
    raise _ERRORS.get(code, OctavoError)(f"{field}: {message}" if field else message)


def _text(address: Optional[int], size: int) -> str:
    return ctypes.string_at(address, size).decode() if size else ""


def _written(room: int, write: Callable[..., int]) -> str:
    """Returns the text of write(buffer, capacity, size, error). Retries with a larger buffer if needed."""
    error, size = _Error(), c_size_t()
    while True:
        text = ctypes.create_string_buffer(room + 1)
        _check(write(text, room, byref(size), byref(error)), error)
        if size.value <= room:
            return text.raw[:size.value].decode()
        room = size.value


# One position: (token, logprob, rank, [(token, logprob), ..]). The list has the most likely tokens first.
Position = tuple[int, float, int, list[tuple[int, float]]]


def _positions(logprobs: Any, count: int) -> Optional[list[Position]]:
    if not logprobs:
        return None
    return [(p.token, p.logprob, p.rank, [(t.token, t.logprob) for t in p.top[:p.top_count]])
            for p in logprobs[:count]]


@dataclass
class Piece:
    """A complete choice (FINAL), or its new part (DELTA)."""
    request: int
    index: int
    text: str
    token_ids: list[int]
    logprobs: Optional[list[Position]]
    finish_reason: Optional[str]
    stop_reason: Any  # a stop string, a stop token, or None
    error: str
    last: bool  # last output of the request
    prompt_token_ids: Optional[list[int]]
    prompt_logprobs: Optional[list[Position]]
    cached_tokens: int
    times: tuple[float, float, float]  # scheduled, first token, last token: seconds after the arrival
    details: dict[str, Any]  # kv_transfer_params and num_preemptions, if the output has them


def _piece(o: _Output, details: Optional[bytes]) -> Piece:
    stop_reason = _text(o.stop_text, o.stop_text_bytes) if o.stop_text else None
    if o.stop_token >= 0:
        stop_reason = o.stop_token
    return Piece(o.request, o.index, _text(o.text, o.text_bytes), o.tokens[:o.token_count],
                 _positions(o.logprobs, o.token_count), FINISH_REASONS[o.finish], stop_reason,
                 _text(o.error, o.error_bytes), bool(o.last),
                 o.prompt_tokens[:o.prompt_token_count] if o.prompt_token_count else None,
                 _positions(o.prompt_logprobs, o.prompt_logprob_count), o.cached_tokens,
                 (o.scheduled_s, o.first_token_s, o.last_token_s), json.loads(details) if details else {})


class Engine:
    """A model in this process. All methods are thread-safe, except close(): no other call may be running."""

    def __init__(self, options: dict[str, Any]):
        self._handle = c_void_p()
        error = _Error()
        _check(_lib.octavo_create(json.dumps(options).encode(), byref(self._handle), byref(error)), error)
        self.info: dict[str, Any] = json.loads(_lib.octavo_info(self._handle))
        self._token_texts: dict[int, str] = {}
        # Frees the engine with its last reference, but not at exit, when other threads may still be in a call.
        self._free = weakref.finalize(self, _lib.octavo_destroy, self._handle)
        self._free.atexit = False

    def close(self) -> None:
        self._free()
        self._handle = c_void_p()

    def submit(self, request: int, body: dict[str, Any], stream: bool) -> None:
        error, data = _Error(), json.dumps(body).encode()
        _check(_lib.octavo_submit(self._handle, request, data, len(data), int(stream), byref(error)), error)

    def submit_texts(self, request: int, route: str, body: dict[str, Any]) -> None:
        error, data = _Error(), json.dumps(body).encode()
        _check(_lib.octavo_submit_texts(self._handle, request, route.encode(), data, len(data), byref(error)), error)

    def abort(self, request: int) -> None:
        _lib.octavo_abort(self._handle, request)

    def load_adapter(self, name: str, path: str) -> None:
        error = _Error()
        _check(_lib.octavo_load_adapter(self._handle, name.encode(), path.encode(), byref(error)), error)

    def wait(self, timeout_ms: int) -> list[Piece]:
        outputs = _lib.octavo_wait(self._handle, timeout_ms)
        if not outputs:
            return []
        try:
            batch = outputs.contents
            return [_piece(o, _lib.octavo_details(outputs, i)) for i, o in enumerate(batch.items[:batch.count])]
        finally:
            _lib.octavo_outputs_free(outputs)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        data, error, count = text.encode(), _Error(), c_size_t()
        room = len(data) + 16
        ids = (c_int32 * room)()
        _check(_lib.octavo_encode(self._handle, data, len(data), int(add_special_tokens), ids, room, byref(count),
                                  byref(error)), error)
        return ids[:count.value]

    def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
        ids = (c_int32 * len(token_ids))(*token_ids)
        return _written(16 * len(token_ids), lambda text, room, size, error: _lib.octavo_decode(
            self._handle, ids, len(token_ids), int(skip_special_tokens), text, room, size, error))

    def token_text(self, token: int) -> str:
        """Returns the text of a token. Cached, since log-probabilities repeat tokens."""
        text = self._token_texts.get(token)
        if text is None:
            text = self._token_texts[token] = self.decode([token])
        return text

    def stats(self) -> dict[str, int]:
        stats = _Stats()
        _lib.octavo_get_stats(self._handle, byref(stats), ctypes.sizeof(stats))
        return {name: getattr(stats, name) for name, _ in _Stats._fields_}

    def metrics(self) -> str:
        return _written(1 << 16, lambda *into: _lib.octavo_metrics(self._handle, *into))

    def reset_prefix_cache(self) -> None:
        _lib.octavo_reset_prefix_cache(self._handle)

    def sleep(self, level: int) -> None:
        error = _Error()
        _check(_lib.octavo_sleep(self._handle, level, byref(error)), error)

    def wake_up(self) -> None:
        error = _Error()
        _check(_lib.octavo_wake_up(self._handle, byref(error)), error)

    def pause(self, mode: str) -> None:
        error = _Error()
        _check(_lib.octavo_pause(self._handle, mode.encode(), byref(error)), error)

    def resume(self) -> None:
        _lib.octavo_resume(self._handle)

    def start_profile(self, session: dict[str, Any]) -> None:
        error = _Error()
        _check(_lib.octavo_start_profile(self._handle, json.dumps(session).encode(), byref(error)), error)

    def stop_profile(self) -> None:
        error = _Error()
        _check(_lib.octavo_stop_profile(self._handle, byref(error)), error)
