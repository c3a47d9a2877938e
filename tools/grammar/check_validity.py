"""Generates texts for random JSON Schemas with Octavo's grammar engine, and validates them with the jsonschema package.

    python check_validity.py GRAMMAR_TOOL VOCABULARY.json [--schemas N] [--texts N] [--seed N]

Every finished text must be valid. Prints the number of refused schemas by reason, and every violation.
"""

import argparse
import collections
import json
import random
import re
import subprocess

import jsonschema
import numpy as np

from random_schemas import schema

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("vocabulary")
    parser.add_argument("--schemas", type=int, default=300)
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = json.load(open(options.vocabulary))
    tokens = [bytes.fromhex(t) for t in data["tokens"]]
    eos = len(tokens)
    lengths = np.array([len(t) for t in tokens])
    closing = np.array([i for i, t in enumerate(tokens) if t in (b'"', b"}", b"]", b"1", b"a", b"-", b"0")])
    process = subprocess.Popen([options.tool, options.vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(**request):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    rng = random.Random(options.seed)
    count, reasons, bad = collections.Counter(), collections.Counter(), []
    for _ in range(options.schemas):
        text = json.dumps(schema(rng), ensure_ascii=False)
        judge = jsonschema.Draft202012Validator(json.loads(text), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        strict = rng.random() < 0.5
        for _ in range(options.texts):
            answer = ask(op="new", kind="json_schema", text=text, whitespace=rng.choice([0, 0, 1]), strict=strict)
            if "error" in answer:
                count["refused"] += 1
                reasons[re.sub(r" at #\S*|'[^']*' points|\d+", "", answer["error"])[:90]] += 1
                break
            value = b""
            for step in range(400):
                answer = ask(op="mask")
                if "error" in answer:
                    bad.append((text, value, answer["error"]))
                    break
                mask = np.unpackbits(np.frombuffer(bytes.fromhex(answer["mask"]), dtype=np.uint8), bitorder="little").astype(bool)
                if mask[eos] and (rng.random() < 0.7 or not mask[:eos].any()):
                    try:
                        judge.validate(json.loads(value))
                        count["valid"] += 1
                    except Exception as problem:
                        count["INVALID"] += 1
                        bad.append((text, value, str(problem).split("\n")[0]))
                    break
                allowed = np.flatnonzero(mask[:eos])
                if len(allowed) == 0:
                    bad.append((text, value, "dead end"))
                    break
                close = closing[mask[closing]]
                if len(close) and rng.random() < min(0.9, 0.25 + step / 100):
                    token = int(rng.choice(list(close)))
                elif rng.random() < 0.5:
                    token = int(rng.choice(list(allowed)))
                else:
                    short = allowed[lengths[allowed] <= 2]
                    token = int(rng.choice(list(short if len(short) else allowed)))
                if not ask(op="accept", token=token)["ok"]:
                    bad.append((text, value, f"rejects {tokens[token]} of its mask"))
                    break
                value += tokens[token]
            else:
                count["unfinished"] += 1
    for name in sorted(count):
        print(f"{count[name]:8}  {name}")
    for reason, n in reasons.most_common(20):
        print(f"{n:8}  refused: {reason}")
    for entry in bad[:40]:
        print("BAD", *entry)


main()
