"""Writes the vocabulary file of grammar_tool, {"tokens": [hex bytes ...], "specials": [names ...]}, from a real
tokenizer.

    python make_vocabulary.py FILE OUTPUT [--size N]

FILE is a tekken.json (that of the package mistral_common has 130k entries) or a byte-level tokenizer.json.
"""

import argparse
import base64
import json


def byte_alphabet():
    """Returns the characters with which byte-level BPE spells bytes (GPT-2): printable ones as themselves, others
    from 256."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = {chr(b): b for b in printable}
    for i, b in enumerate(b for b in range(256) if b not in printable):
        spelled[chr(256 + i)] = b
    return spelled


parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("output")
parser.add_argument("--size", type=int, default=1 << 30)
options = parser.parse_args()

data = json.load(open(options.file))
if "config" in data:
    wanted = min(options.size, data["config"]["default_vocab_size"])
    tokens = [base64.b64decode(entry["token_bytes"]) for entry in data["vocab"]][: wanted - 1]
else:
    alphabet = byte_alphabet()
    specials = {entry["id"] for entry in data["added_tokens"]}
    ordered = sorted(data["model"]["vocab"].items(), key=lambda entry: entry[1])
    tokens = [bytes(alphabet[c] for c in name) for name, number in ordered if number not in specials][: options.size - 1]
json.dump({"tokens": [token.hex() for token in tokens], "specials": ["</s>"]}, open(options.output, "w"))
print(len(tokens) + 1, "entries")
