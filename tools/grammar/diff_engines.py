"""Compares token masks of Octavo's grammar engine with those of XGrammar and llguidance (packages for tests only).

    python diff_engines.py GRAMMAR_TOOL VOCABULARY.json [--pairs N] [--steps N] [--walks N] [--minutes M] [--kinds regex,ebnf,json] [--seed N]

The grammars are random (random_grammars.py). Along random walks, every mask is compared with the masks of the other
engines. For a token that only one side allows, the text that it begins is completed. A judge that shares no code with
any engine (RE2, a recogniser for EBNF, jsonschema) decides whether this text is valid. If no end was found, it
decides for regexes and EBNF whether a valid text can begin so. Each difference thus gets a class. Two classes are
errors: Octavo allows a token that leads to an invalid text, or refuses a valid text. For JSON, Octavo may refuse
another text of the same value: a spelling, an order of members, a repeated name.
"""

import argparse
import collections
import random
import sys
import threading
import time

import numpy as np

from engines import bits, engines
from random_grammars import Case, why_narrower


# Errors for grammars without texts, and for schemas without values.
EMPTY = ["no text matches", "no instance", "leaves no ", "satisfies all of", "lists no value", "has no value that", "is required, but", "allows no type",
         "excludes all values", "is false", "without end"]


def some(rng, ids, count):
    """Returns a few of the ids, without a walk over all of them."""
    return [int(ids[rng.randrange(len(ids))]) for _ in range(min(count, len(ids)))]


def finish(engine, rng, tokens, eos, budget=200):
    """Continues with short tokens, preferably closing ones, until the text may end. Returns the bytes, or None."""
    out, taken = b"", 0
    order = (b'"', b"}", b"]", b")", b",", b"1", b"0", b"a", b"-", b"e")
    while taken < budget:
        mask, _ = engine.mask()
        if mask is None:
            break
        allowed = bits(mask, len(tokens))
        if allowed[eos]:
            engine.rollback(taken)
            return out
        choice = None
        if rng.random() < 0.8:
            for t in order:
                i = engine.single.get(t)
                if i is not None and allowed[i]:
                    choice = i
                    break
        if choice is None:
            ids = np.flatnonzero(allowed)
            if len(ids) == 0:
                break
            choice = min(some(rng, ids, 20), key=lambda i: len(tokens[i]))
        if not engine.accept(choice):
            break
        out += tokens[choice]
        taken += 1
    if taken:
        engine.rollback(taken)
    return None


class Comparison:
    def __init__(self, options):
        self.options = options
        self.ours, self.others, self.tokens, self.eos = engines(options.tool, options.vocabulary, options.stubs)
        self.rng = random.Random(options.seed)
        self.pairs = collections.Counter()
        self.classes = collections.Counter()  # (kind, other, class)
        self.grammars = collections.Counter()
        self.notes, self.wrong = {}, []

    def whole(self, engine, token, prefix):
        """Returns a whole text that begins with the prefix and this token, which the engine allows; or None."""
        if token == self.eos:
            return prefix
        if not engine.accept(token):
            return None
        rest = engine.finish() if engine is self.ours else None
        for _ in range(3):
            rest = rest if rest is not None else finish(engine, self.rng, self.tokens, self.eos)
        engine.rollback(1)
        return None if rest is None else prefix + self.tokens[token] + rest

    def explain(self, case, prefix, other, ids, ours_allow):
        token = some(self.rng, ids, 1)[0]
        value = self.whole(self.ours if ours_allow else other, token, prefix)
        if value is None:  # no end of the text was found
            begins = case.begins(prefix + self.tokens[token])
            if begins is None:
                label = "we allow, undecided" if ours_allow else "it allows, undecided"
            elif begins:
                label = "it refuses a valid text" if ours_allow else "WRONG: we refuse a valid text"
            else:
                label = "WRONG: we allow an invalid text" if ours_allow else "it allows an invalid text"
        elif case.valid(value):
            label = "it refuses a valid text" if ours_allow else "WRONG: we refuse a valid text"
            if not ours_allow and case.kind == "json":
                label = "we refuse " + why_narrower(case, value, self.ours.matches)
        else:
            label = "WRONG: we allow an invalid text" if ours_allow else "it allows an invalid text"
        key = (case.kind, other.name, label)
        self.classes[key] += 1
        example = f"{case.text[:300]} {prefix!r} token {self.tokens[token]!r} as in {value!r}"
        self.notes.setdefault(key, example)
        if "WRONG" in label or "UNKNOWN" in label:
            self.wrong.append((*key, example))
            print(*self.wrong[-1], file=sys.stderr, flush=True)

    def compare(self, case, prefix, mine, live):
        self.pairs[case.kind] += bool(live)
        for other in live:
            theirs = bits(other.mask()[0], len(self.tokens))
            differ = np.flatnonzero(mine != theirs)
            if len(differ) == 0:
                self.classes[case.kind, other.name, "equal"] += 1
                continue
            for ours_allow in (True, False):
                ids = differ[mine[differ] == ours_allow]
                if len(ids):
                    self.explain(case, prefix, other, ids, ours_allow)

    def run(self, case):
        error, _ = self.ours.start(case.kind, case.text)
        if error:
            self.grammars[case.kind, "we refuse"] += 1
            if not any(part in error for part in EMPTY):
                self.wrong.append((case.kind, "refused", error, case.text))
            return
        self.grammars[case.kind, "compared"] += 1
        live = []
        for other in self.others:
            error, _ = other.start(case.kind, case.text)
            self.grammars[case.kind, f"{other.name} refuses"] += error is not None
            live += [] if error else [other]
        compiled, seen = list(live), set()
        for _ in range(self.options.walks):
            live = list(compiled)
            for engine in [self.ours, *live]:
                engine.restart()
            self.walk(case, live, seen)

    def walk(self, case, live, seen):
        prefix = b""
        for _ in range(self.options.steps):
            mask, _ = self.ours.mask()
            if mask is None:
                self.wrong.append((case.kind, "no mask", case.text, prefix))
                return
            mine = bits(mask, len(self.tokens))
            if prefix not in seen:  # a prefix counts once, even if several walks reach it
                seen.add(prefix)
                self.compare(case, prefix, mine, live)
            mine[self.eos] = False
            allowed = np.flatnonzero(mine)
            if len(allowed) == 0:
                return
            token = some(self.rng, allowed, 1)[0]
            if self.rng.random() < 0.5:
                token = max(some(self.rng, allowed, 8), key=lambda i: len(self.tokens[i]))
            if not self.ours.accept(token):
                self.wrong.append((case.kind, "we reject a token of our own mask", case.text, prefix, self.tokens[token]))
                return
            for other in list(live):
                if not other.accept(token):
                    live.remove(other)
            if not live:
                return
            prefix += self.tokens[token]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("vocabulary")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--walks", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no grammar after this")
    parser.add_argument("--kinds", default="regex,ebnf,json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stubs")
    comparison = Comparison(parser.parse_args())
    options, begin, case = comparison.options, time.monotonic(), 0
    while sum(comparison.pairs.values()) < options.pairs and time.monotonic() < begin + options.minutes * 60:
        comparison.run(Case(comparison.rng.choice(options.kinds.split(",")), comparison.rng))
        case += 1
        if case % 50 == 0:
            print(case, "grammars,", sum(comparison.pairs.values()), "pairs,", len(comparison.wrong), "wrong", file=sys.stderr, flush=True)
    print("grammars", {" ".join(k): n for k, n in sorted(comparison.grammars.items())})
    print("pairs", dict(comparison.pairs), sum(comparison.pairs.values()))
    print("| kind | beside | class | masks |")
    print("| --- | --- | --- | --- |")
    for key, n in sorted(comparison.classes.items()):
        print("| " + " | ".join(key) + f" | {n} |")
    for key, example in sorted(comparison.notes.items()):
        print("EXAMPLE", *key, ":", example)
    for entry in comparison.wrong[:40]:
        print("WRONG", *entry)


if __name__ == "__main__":
    # The recogniser of EBNF uses recursion for nested rules.
    sys.setrecursionlimit(200_000)
    threading.stack_size(1 << 30)
    work = threading.Thread(target=main)
    work.start()
    work.join()
