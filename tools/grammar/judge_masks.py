"""Judges token masks by their definition: a token is allowed if and only if a text that begins with it is valid.

    python judge_masks.py FOLDER VOCABULARY [--tool grammar_tool] [--engines octavo,xgrammar,llguidance] [--schemas N]
        [--positions N] [--tokens N] [--limit SECONDS] [--minutes M] [--report FILE]

FOLDER contains JSON files {"schema": .., "tests": [{"data": .., "valid": true}, ..]} (MaskBench's data, or those of
collect_schemas.py). Needs jsonschema, jsonschema-rs, numpy, and the packages of the other engines.

Before each token of a valid instance, the mask is judged for that token. At some positions, further tokens are
judged, first those for which the engines differ: a search that uses JSON's rules and the schema's instances, but no
engine (json_prefix.py), tries to find a valid text that begins with the text so far and the token.

    over      refused, although a valid text begins so (two validators agree that it is valid):
              own     a token of the instance as json.dumps writes it
              other   the search's text; its difference from the usual way of writing is named
    under     allowed, although the search found no valid text, and the engine's own completion is invalid, or no JSON text can begin so
    open      allowed, the search found no valid text, and the engine's completion was not reached or has a repeated name: not decided

The end of the text is judged exactly: it is allowed if and only if the text so far is valid.
"""

import argparse
import collections
import glob
import json
import os
import random
import time

import numpy as np

from engine_process import EngineProcess
from engines import LLGuidance, Octavo, XGrammar, bits, load_vocabulary
from json_prefix import NUMBER, SPACE, START, Witnesses, run, step
from schema_texts import Validator, names_of, repeats_names, texts_of, values_of

CLOSING = (b'"', b"}", b"]", b",", b":", b"1", b"0", b"a", b"-", b"e")


class Asked:
    """Sends requests to an engine in a separate process: masks along a text, and the end of a text."""

    def pid(self):
        return self.process.pid if isinstance(self, Octavo) else os.getpid()

    def masks(self, path):
        self.restart()
        out = []
        for token in path:
            mask, _ = self.mask()
            out.append(mask)
            if mask is None or not self.accept(token):
                return out
        out.append(self.mask()[0])
        return out

    def end(self, path):
        """Returns the bytes with which the engine ends the text of these tokens, or None if it does not end it."""
        self.restart()
        for token in path:
            if not self.accept(token):
                return None
        return self.finish()


class Ours(Asked, Octavo):
    def compile(self, text):
        return self.ask(op="new", kind="json_schema", text=text, whitespace=1, strict=False).get("error")


class Package(Asked):
    def compile(self, text):
        try:
            self.open_schema(text)
            self.restart()
        except Exception as problem:  # the packages raise many kinds
            return str(problem)[:80] or "error"
        return self.problem()

    def finish(self):
        written, rng = b"", random.Random(len(self.tokens))
        for _ in range(150):
            allowed = bits(self.mask()[0], len(self.tokens))
            if allowed[self.eos]:
                return written
            choices = [self.single[c] for c in CLOSING if c in self.single and allowed[self.single[c]]]
            if not choices or rng.random() < 0.2:
                ids = np.flatnonzero(allowed)
                if not len(ids):
                    return None
                choices = sorted((int(i) for i in rng.choices(ids, k=12)), key=lambda i: len(self.tokens[i]))
            if not self.accept(choices[0]):
                return None
            written += self.tokens[choices[0]]
        return None


class Theirs(Package, XGrammar):
    def open_schema(self, text):
        self.grammar = self.compiler.compile_json_schema(text, strict_mode=False)

    def problem(self):
        return None


class Guidance(Package, LLGuidance):
    def open_schema(self, text):
        self.grammar = self.l.LLMatcher.grammar_from_json_schema(text)

    def problem(self):
        return self.matcher.get_error()[:80] if self.matcher.is_error() else None


def spelling(prefix, token):
    """Names what is unusual at the token about a text that begins so."""
    state, space, escape, number = run(START, prefix), False, False, False
    for byte in token:
        inside = state[0][0] in "sk"
        escape = escape or (inside and (byte == ord("\\") or state[0][1:2] in ("\\", "u")))
        space = space or (not inside and byte in SPACE)
        state = step(state, byte)
        number = number or state[0] in NUMBER
    return "escape" if escape else "white space" if space else "number" if number else "else"


class Judge:
    def __init__(self, options):
        self.options = options
        self.tokens, self.eos, encode = load_vocabulary(options.vocabulary)
        self.encode = encode
        self.rng = random.Random(7)
        specials = set(range(self.eos, len(self.tokens)))
        single = {t: i for i, t in enumerate(self.tokens) if len(t) == 1 and i < self.eos}
        plain = [b"" if i in specials else t for i, t in enumerate(self.tokens)]

        def made(kind, *arguments):
            engine = kind(*arguments)
            engine.tokens, engine.eos, engine.single = self.tokens, self.eos, single
            return engine

        makers = {"octavo": lambda: made(Ours, options.tool, options.vocabulary), "xgrammar": lambda: made(Theirs, plain, self.eos),
                  "llguidance": lambda: made(Guidance, self.tokens, specials, self.eos, encode)}
        self.engines = {name: EngineProcess(makers[name], options.limit) for name in options.engines.split(",")}
        self.count = {name: collections.Counter() for name in self.engines}
        self.report = open(options.report, "w", buffering=1) if options.report else None

    def note(self, engine, kind, file, prefix, token, text):
        self.count[engine][kind] += 1
        if self.report:
            self.report.write(json.dumps({"engine": engine, "kind": kind, "file": file, "prefix": prefix.decode(errors="replace")[-200:],
                                          "token": token.decode(errors="replace"), "text": (text or b"").decode(errors="replace")[:400]}) + "\n")

    def judge(self, file, case):
        schema = case["schema"]
        validator = Validator(schema)
        values = [test["data"] for test in case["tests"] if test["valid"]]
        instances, texts = texts_of(schema, values, validator)
        instances = [t for t in instances if len(t) < 1500][:2]
        if not instances:
            return False
        witnesses = Witnesses([t for t in texts if len(t) < 2000], names_of(schema), values_of(schema))
        live = []
        for name, engine in self.engines.items():
            self.count[name]["schemas"] += 1
            error = engine.call("compile", json.dumps(schema, ensure_ascii=False))
            answered = engine.process is not None
            self.count[name]["refused" if error else "cut off" if not answered else "compiled"] += 1
            if answered and not error:
                live.append(name)
        for text in instances:
            self.along(file, validator, witnesses, text, live)
        return True

    def along(self, file, validator, witnesses, text, live):
        path = self.encode(text)
        masks = {}
        for name in live:
            found = self.engines[name].call("masks", path) if self.engines[name].process else None
            if found is not None:
                masks[name] = [None if m is None else bits(m, len(self.tokens)) for m in found]
        starts = [0]
        for token in path:
            starts.append(starts[-1] + len(self.tokens[token]))
        for name, rows in masks.items():
            for i, row in enumerate(rows):
                self.count[name]["masks"] += 1
                wanted = path[i] if i < len(path) else self.eos
                if row is None or not row[wanted]:
                    self.note(name, "over: own", file, text[: starts[i]], b"" if wanted == self.eos else self.tokens[wanted], text)
        chosen = self.rng.sample(range(len(path) + 1), min(self.options.positions, len(path) + 1))
        for i in chosen:
            rows = {name: r[i] for name, r in masks.items() if i < len(r) and r[i] is not None}
            if rows:
                self.at(file, validator, witnesses, text[: starts[i]], path[:i], rows)

    def at(self, file, validator, witnesses, prefix, path, rows):
        pattern = sum(row.astype(np.int32) << n for n, row in enumerate(rows.values()))
        whole = validator.perhaps(prefix)
        for name, row in rows.items():
            if row[self.eos] and not whole:
                self.note(name, "under: end", file, prefix, b"", prefix)
            if not row[self.eos] and validator.surely(prefix):
                self.note(name, "over: end", file, prefix, b"", prefix)
        for kind in np.unique(pattern[: self.eos]):
            ids = np.flatnonzero(pattern[: self.eos] == kind)
            every = 2 if kind in (0, (1 << len(rows)) - 1) else 1  # fewer tokens if all engines agree
            for token in self.rng.sample(list(map(int, ids)), min(self.options.tokens // every, len(ids))):
                self.token(file, validator, witnesses, prefix, path, rows, token)

    def token(self, file, validator, witnesses, prefix, path, rows, token):
        spelled = self.tokens[token]
        if not spelled:
            return
        begun = prefix + spelled
        possible = run(START, begun) is not None
        found = None
        if possible:
            # Some of the bytes that could complete an incomplete character do not form a character.
            found = next((t for t in witnesses.ends(begun, len(prefix), 90) if validator.valid(t)), None)
        for name, row in rows.items():
            self.count[name]["tokens"] += 1
            if not row[token]:
                if found and validator.surely(found):
                    self.note(name, "over: " + spelling(prefix, spelled), file, prefix, spelled, found)
            elif not found:
                self.allowed_without_end(name, file, validator, prefix, path, token, possible)

    def allowed_without_end(self, name, file, validator, prefix, path, token, possible):
        if not possible:
            return self.note(name, "under: no JSON", file, prefix, self.tokens[token], None)
        engine = self.engines[name]
        rest = engine.call("end", [*path, token]) if engine.process else None
        if rest is None:
            return self.note(name, "open", file, prefix, self.tokens[token], None)
        text = prefix + self.tokens[token] + rest
        if repeats_names(text):
            return self.note(name, "open", file, prefix, self.tokens[token], text)
        if not validator.perhaps(text):
            self.note(name, "under: invalid end", file, prefix, self.tokens[token], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("vocabulary")
    parser.add_argument("--tool", default="build/release/grammar_tool")
    parser.add_argument("--engines", default="octavo,xgrammar,llguidance")
    parser.add_argument("--schemas", type=int, default=1000)
    parser.add_argument("--positions", type=int, default=8, help="positions of a text at which further tokens are judged")
    parser.add_argument("--tokens", type=int, default=6, help="tokens judged there, of each set that the same engines allow")
    parser.add_argument("--limit", type=float, default=5, help="processor seconds that a schema may take an engine")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no schema after this")
    parser.add_argument("--report", help="a line of JSON for each finding")
    options = parser.parse_args()
    judge, judged, began = Judge(options), 0, time.monotonic()
    files = sorted(glob.glob(os.path.join(options.folder, "**", "*.json"), recursive=True))
    random.Random(7).shuffle(files)
    for file in files:
        if judged >= options.schemas or time.monotonic() - began > options.minutes * 60:
            break
        case = json.load(open(file))
        if not case.get("tests") or not isinstance(case["schema"], dict):
            continue
        try:
            judged += judge.judge(os.path.basename(file), case)
        except Exception as problem:  # a schema that a validator refuses, or a reference to another document
            print("left out", os.path.basename(file), type(problem).__name__, str(problem)[:60].replace("\n", " "))
    print(f"{judged} schemas, {len(judge.tokens)} tokens")
    columns = list(dict.fromkeys(key for count in judge.count.values() for key in count))
    columns.sort(key=lambda key: (":" in key, key))
    print("| engine | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for name, count in judge.count.items():
        print(f"| {name} | " + " | ".join(str(count[key]) for key in columns) + " |")


if __name__ == "__main__":
    main()
