"""Token bitmasks: int32 words, bit i % 32 of word i // 32 is token i."""

import sys
from typing import TYPE_CHECKING, Any, Tuple

if TYPE_CHECKING:
    from octavo.grammar.vocabulary import Vocabulary


def allocate_bitmask(rows: int, vocabulary: "Vocabulary") -> Any:
    """Returns a numpy array of int32 [rows, words] in which all tokens are allowed; one row for each text."""
    import numpy
    return numpy.full((rows, vocabulary.mask_words), -1, dtype=numpy.int32)


def address_of(mask: Any) -> Tuple[int, int, int]:
    """Returns the address, the number of rows and the words of a row of a writable, contiguous int32 CPU array of one
    or two dimensions: numpy, torch or DLPack."""
    if hasattr(mask, "data_ptr"):  # torch
        if str(mask.dtype) != "torch.int32" or mask.device.type != "cpu" or not mask.is_contiguous():
            raise ValueError(f"a mask must be a contiguous int32 CPU tensor, not {mask.dtype} on {mask.device}")
        shape, address = tuple(mask.shape), mask.data_ptr()
    else:
        import numpy
        array = mask if isinstance(mask, numpy.ndarray) else numpy.from_dlpack(mask)
        if array.dtype != numpy.int32 or not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError("a mask must be a contiguous, writable int32 array")
        shape, address = array.shape, array.ctypes.data
    if len(shape) not in (1, 2):
        raise ValueError(f"a mask must have one or two dimensions, not {len(shape)}")
    return address, shape[0] if len(shape) == 2 else 1, shape[-1]


def apply_bitmask(logits: Any, mask: Any) -> None:
    """Sets the logits of tokens that are not allowed to -inf, in place. logits: [rows, tokens] or [tokens], numpy or
    torch on any device, with at most one token per bit of a mask's row. mask: the same number of rows, or one row."""
    tokens = logits.shape[-1]
    torch = sys.modules.get("torch") if hasattr(logits, "masked_fill_") else None
    if torch is not None:
        words = torch.as_tensor(mask).to(logits.device)
        bits = words.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32, device=logits.device) & 1
        allowed = bits.flatten(-2)[..., :tokens].bool()
        _check_width(allowed.shape[-1], tokens)
        logits.masked_fill_(~allowed.reshape(logits.shape if allowed.numel() == logits.numel() else (1, tokens)),
                            float("-inf"))
        return
    import numpy
    words = numpy.ascontiguousarray(mask)
    if words.dtype != numpy.int32:
        raise ValueError(f"a mask must be int32, not {words.dtype}")
    allowed = numpy.unpackbits(words.view(numpy.uint8), axis=-1, bitorder="little")[..., :tokens].astype(bool)
    _check_width(allowed.shape[-1], tokens)
    logits[~numpy.broadcast_to(allowed.reshape(-1, tokens) if logits.ndim == 2 else allowed.reshape(tokens),
                               logits.shape)] = -numpy.inf


def _check_width(bits: int, tokens: int) -> None:
    if bits < tokens:
        raise ValueError(f"the mask has bits for {bits} tokens, the logits have {tokens}: give the vocabulary the "
                         f"model's size (Vocabulary.from_file(.., size={tokens}))")
