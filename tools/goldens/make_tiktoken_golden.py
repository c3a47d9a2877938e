#!/usr/bin/env python3
"""Makes tests/data/text/tiktoken: a small tiktoken.model with a tokenizer_config.json like Kimi's, and tiktoken's ids of
texts.

Needs tokenizers and tiktoken (made with 0.23 and 0.14). Usage: make_tiktoken_golden.py OUT_DIR
"""
import base64
import json
import pathlib
import sys

import tiktoken
from make_tekken_golden import TEXTS, tokens_by_rank

UPPER, LOWER, NOT_HAN, SHORT = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}", r"&&[^\p{Han}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([r"[\p{Han}]+",
                    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}{NOT_HAN}]*[{LOWER}{NOT_HAN}]+{SHORT}",
                    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}{NOT_HAN}]+[{LOWER}{NOT_HAN}]*{SHORT}",
                    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
MORE = ["我们在2026年測試漢字とかな, mixedだ。They'RE it's CamelCASE I'LL", "\u6f22abc\u6f22 ABC\u6f22", "<|im_user|>user<|im_middle|>Hi<|im_end|>", "a/b\n\n\nc 1234567"]
SPECIAL = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 17: "<|im_middle|>", 254: "[UNK]", 255: "[PAD]"}


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    texts = TEXTS + MORE
    tokens = tokens_by_rank(texts, PATTERN, 440)
    tokens[:256] = tokens[33:127] + tokens[:33] + tokens[127:256]  # tiktoken has bytes in another order
    (out / "tiktoken.model").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)))
    config = {"tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]", "eos_token": "[EOS]", "unk_token": "[UNK]", "pad_token": "[PAD]",
              "added_tokens_decoder": {str(len(tokens) + place): dict(content=token, special=True, normalized=False, lstrip=False, rstrip=False, single_word=False)
                                       for place, token in SPECIAL.items()}}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    names = {SPECIAL.get(place, f"<|reserved_token_{len(tokens) + place}|>"): len(tokens) + place for place in range(256)}
    reference = tiktoken.Encoding("kimi", pat_str=PATTERN, mergeable_ranks={token: rank for rank, token in enumerate(tokens)}, special_tokens=names)
    golden = [[text, reference.encode(text, allowed_special="all")] for text in texts]
    (out / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(len(tokens), [len(ids) for _, ids in golden])


if __name__ == "__main__":
    main()
