"""Trains the byte-level BPE tokenizer on a sample of the corpus.

    python train_tokenizer.py --out DIR    writes tokenizer.json and its config
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from chat import END_OF_TEXT, MARKUP, SPECIAL, TURN_END, chat_template
from corpus import SHORT_DOMAINS, Drawer, documents

VOCAB_SIZE = 4096
# How the Qwen family splits text before merging: single digits, and words with the space before them.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(sample: int) -> Tokenizer:
    """Returns a tokenizer of exactly VOCAB_SIZE entries. Added tokens are last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    stream = documents(Drawer("tokenizer", held_out=False), SHORT_DOMAINS)
    added = SPECIAL + MARKUP

    def texts() -> str:
        text = "".join(piece for piece, _ in next(stream))
        for mark in added:
            text = text.replace(mark, "\n")
        return text

    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(added),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator((texts() for _ in range(sample)), trainer)
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in SPECIAL])
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in MARKUP])
    return tokenizer


def config(max_length: int = 2048) -> dict[str, object]:
    """Returns the files that transformers needs in addition to tokenizer.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False,
        "bos_token": None,
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "unk_token": None,
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "chat_template": chat_template(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=40000)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = train(args.documents)
    tokenizer.save(str(args.out / "tokenizer.json"))
    (args.out / "tokenizer_config.json").write_text(json.dumps(config(), indent=2, ensure_ascii=False) + "\n")
    print(f"{tokenizer.get_vocab_size()} entries")


if __name__ == "__main__":
    main()
