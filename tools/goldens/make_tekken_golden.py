#!/usr/bin/env python3
"""Makes tests/data/text/tekken: a small tekken.json, and mistral_common's ids of texts.

Needs tokenizers and mistral_common (made with 0.23 and 1.13). Usage: make_tekken_golden.py OUT_DIR

OUT_DIR gets tekken.json and golden.json: a list of [text, ids], with <s> first.
"""
import base64
import json
import pathlib
import sys

import tokenizers

PATTERN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
           r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
           r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = ["The house is small and old; the ships on the water are larger than the houses.", "camelCaseWords, 12 345 and 2026-11-26!\n\n  indented\r\n",
         "Die Häuser stehen am Fluß, größer als früher: naïve café.", "日本語のテキスト、漢字とかな。", "emoji \U0001f600\U0001f468\u200d\U0001f469 and \u0000 bytes", "",
         "    tabs\tand   spaces   ", "thethethe hohoho aaaaaaaaaaaaaaaa"]
SPECIAL, EXTRA, SIZE = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], 3, 420


def tokens_by_rank(texts, pattern, size):
    """Returns the bytes of each token of a byte-level BPE that is trained on the texts. Single bytes are first."""
    signs = tokenizers.Tokenizer(tokenizers.models.BPE())
    signs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    signs.train_from_iterator(texts * 3, tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    byte_of = {}
    for byte in range(256):  # as GPT-2 writes them
        visible = 33 <= byte <= 126 or 161 <= byte and byte != 173
        byte_of[chr(byte) if visible else chr(256 + len([b for b in byte_of.values() if not (33 <= b <= 126 or 161 <= b and b != 173)]))] = byte
    vocabulary = sorted(signs.get_vocab().items(), key=lambda item: item[1])
    merged = [bytes(byte_of[sign] for sign in token) for token, _ in vocabulary if len(token) > 1]
    return [bytes([byte]) for byte in range(256)] + merged


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    tokens = tokens_by_rank(TEXTS, PATTERN, SIZE)
    file = {"config": {"pattern": PATTERN, "num_vocab_tokens": len(tokens), "default_vocab_size": len(SPECIAL) + EXTRA + len(tokens) - 2,
                       "default_num_special_tokens": len(SPECIAL) + EXTRA, "version": "v11"},
            "vocab": [{"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for rank, token in enumerate(tokens)],
            "special_tokens": [{"rank": rank, "token_str": token, "is_control": True} for rank, token in enumerate(SPECIAL)]}
    with open(out / "tekken.json", "w") as target:
        json.dump(file, target)
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    reference = Tekkenizer.from_file(out / "tekken.json")
    with open(out / "golden.json", "w") as target:
        json.dump([[text, reference.encode(text, bos=True, eos=False)] for text in TEXTS], target, indent=1)
        target.write("\n")
    print(len(tokens), [len(reference.encode(text, bos=True, eos=False)) for text in TEXTS])


if __name__ == "__main__":
    main()
