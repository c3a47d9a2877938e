"""The tokens of a model as bytes."""

import ctypes
import json
import re
import weakref
from ctypes import byref, c_int32, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from octavo.grammar._library import Error, GrammarError, Immutable, check, lib


class Vocabulary(Immutable):
    """Immutable and thread-safe; grammars are compiled for one vocabulary.

    tokens[i]: the bytes that token i adds to a text, b"" for tokens that are never allowed. special: tokens that
    text never produces, whose bytes are their names. eos: tokens that end a text. mask_cache_bytes limits the masks
    that all grammars of the vocabulary share (0: 64 MiB)."""

    def __init__(self, tokens: Sequence[bytes], eos: Sequence[int], special: Sequence[int] = (),
                 mask_cache_bytes: int = 0) -> None:
        ends, total = (c_size_t * len(tokens))(), 0
        for i, token in enumerate(tokens):
            if not isinstance(token, bytes):
                raise TypeError(f"tokens: tokens[{i}] must be bytes, not {type(token).__name__}")
            total += len(token)
            ends[i] = total
        handle, error = c_void_p(), Error()
        check(lib.octavo_vocabulary_create(b"".join(tokens), ends, len(tokens), (c_int32 * len(special))(*special),
                                           len(special), (c_int32 * len(eos))(*eos), len(eos), mask_cache_bytes,
                                           byref(handle), byref(error)), error)
        self._handle = handle
        self._free = weakref.finalize(self, lib.octavo_vocabulary_free, handle)
        self.size: int = len(tokens)
        self.mask_words: int = lib.octavo_vocabulary_mask_words(handle)
        self.eos: List[int] = list(eos)

    @classmethod
    def from_file(cls, path: Union[str, Path], eos: Optional[Sequence[int]] = None, size: Optional[int] = None,
                  mask_cache_bytes: int = 0) -> "Vocabulary":
        """Reads a tokenizer.json, or the folder of a model. eos: by default, those of generation_config.json and
        tokenizer_config.json in this folder. size: number of the model's logits, if it exceeds the number of tokens."""
        path = Path(path)
        file = path / "tokenizer.json" if path.is_dir() else path
        with open(file, encoding="utf-8") as text:
            tokenizer = json.load(text)
        if eos is None:
            eos = _eos_of_folder(file.parent, tokenizer)
        return cls._from_json(tokenizer, eos, size, mask_cache_bytes)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, eos: Optional[Sequence[int]] = None, size: Optional[int] = None,
                       mask_cache_bytes: int = 0) -> "Vocabulary":
        """Reads a fast tokenizer of transformers, or a tokenizers.Tokenizer (which needs `eos`)."""
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str"):
            raise GrammarError("tokenizer: must be a fast tokenizer (AutoTokenizer.from_pretrained(.., use_fast=True))")
        if eos is None:
            if getattr(tokenizer, "eos_token_id", None) is None:
                raise GrammarError("eos: the tokenizer has no end-of-text token: give the ids of the tokens that end a text")
            eos = [tokenizer.eos_token_id]
        return cls._from_json(json.loads(backend.to_str()), eos, size, mask_cache_bytes)

    @classmethod
    def _from_json(cls, tokenizer: Dict[str, Any], eos: Sequence[int], size: Optional[int],
                   mask_cache_bytes: int) -> "Vocabulary":
        names = _names(tokenizer)
        added = {token["id"]: token for token in tokenizer.get("added_tokens") or []}
        count = max([*names, *added], default=-1) + 1
        if size is not None and size < count:
            count = size  # tokens without a logit
        tokens = [b""] * max(count, size or 0)
        to_bytes = _decoder(tokenizer)
        for i, name in names.items():
            if i < count:
                tokens[i] = to_bytes(name)
        for i, token in added.items():
            if i < count:
                tokens[i] = token["content"].encode()
        special = [i for i, token in added.items() if token.get("special") and i < count]
        return cls(tokens, [i for i in eos if i < count], special, mask_cache_bytes)


def _names(tokenizer: Dict[str, Any]) -> Dict[int, str]:
    model = tokenizer.get("model") or {}
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        return {i: name for name, i in vocab.items()}
    if isinstance(vocab, list):  # Unigram: [text, score]
        return {i: entry[0] for i, entry in enumerate(vocab)}
    raise GrammarError(f"tokenizer: model.type {model.get('type')!r} has no vocabulary that can be read")


def _parts(node: Any) -> List[Dict[str, Any]]:
    """Returns the steps of a decoder or pre-tokenizer."""
    if not isinstance(node, dict):
        return []
    inner = node.get("decoders") or node.get("pretokenizers") or []
    return [node] + [part for child in inner for part in _parts(child)]


def _decoder(tokenizer: Dict[str, Any]) -> Any:
    """Returns a function that maps a token's name to its bytes."""
    kinds = {part.get("type") for node in ("decoder", "pre_tokenizer") for part in _parts(tokenizer.get(node))}
    if "ByteLevel" in kinds:
        table = _byte_of_letter()
        return lambda name: bytes(table[c] for c in name) if all(c in table for c in name) else name.encode()
    if kinds & {"WordPiece", "BPEDecoder", "CTC"}:
        raise GrammarError(f"tokenizer: decoders {sorted(map(str, kinds))} write texts that tokens do not spell: "
                           "byte-level and SentencePiece vocabularies are supported")
    byte = re.compile(r"<0x([0-9A-Fa-f]{2})>")

    def to_bytes(name: str) -> bytes:
        match = byte.fullmatch(name)
        return bytes([int(match[1], 16)]) if match else name.replace("\u2581", " ").encode()

    return to_bytes


def _byte_of_letter() -> Dict[str, int]:
    """Returns the byte of each letter in byte-level vocabularies: printable Latin-1 is its own letter, the other bytes
    have the code points from 256 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in own]
    return {**{chr(b): b for b in own}, **{chr(256 + i): b for i, b in enumerate(others)}}


def _eos_of_folder(folder: Path, tokenizer: Dict[str, Any]) -> List[int]:
    ids: List[int] = []
    generation, config = folder / "generation_config.json", folder / "tokenizer_config.json"
    if generation.exists():
        found = json.loads(generation.read_text(encoding="utf-8")).get("eos_token_id")
        ids += found if isinstance(found, list) else [] if found is None else [found]
    if config.exists():
        name = json.loads(config.read_text(encoding="utf-8")).get("eos_token")
        name = name.get("content") if isinstance(name, dict) else name
        by_name = {text: i for i, text in _names(tokenizer).items()}
        by_name.update({token["content"]: token["id"] for token in tokenizer.get("added_tokens") or []})
        if name in by_name:
            ids.append(by_name[name])
    if not ids:
        raise GrammarError(f"eos: neither generation_config.json nor tokenizer_config.json in {folder} names an "
                           "end-of-text token: give its ids")
    return sorted(set(ids))
