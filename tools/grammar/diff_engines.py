"""Compares token masks of Octavo's grammar engine with those of XGrammar and llguidance (test-only packages).

    python diff_engines.py GRAMMAR_TOOL VOCABULARY.json [--cases N] [--steps N] [--walks N] [--kinds regex,ebnf,json] [--seed N]

Random regexes, EBNF grammars and JSON Schemas; along random walks every mask is compared with the masks of the others.
A token that only one side allows is explained by finishing the text that it begins and asking an independent judge
(Python's re, jsonschema; for EBNF XGrammar's own parser, byte by byte) about the whole:
  - we allow, the other does not, the text is valid:    the other is narrower      (fine)
  - we allow, the other does not, the text is invalid:  WRONG: we accept what is invalid
  - the other allows, we do not, its text is invalid:   the other is looser        (fine)
  - the other allows, we do not, its text is valid:     narrower: counted by kind; for regexes WRONG, too
xgrammar imports torch and transformers only to name types; --stubs adds a folder with empty stand-ins to the path.
"""

import argparse
import collections
import json
import random
import re
import subprocess
import sys
import time

import numpy as np


class Octavo:
    def __init__(self, tool, vocabulary):
        self.process = subprocess.Popen([tool, vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.name = "octavo"

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, kind, text):
        answer = self.ask(op="new", kind={"json": "json_schema"}.get(kind, kind), text=text, whitespace=0)
        return answer.get("error"), answer.get("us")

    def mask(self):
        answer = self.ask(op="mask")
        if "error" in answer:
            return None, 0.0
        return np.frombuffer(bytes.fromhex(answer["mask"]), dtype=np.int32), answer["us"]

    def accept(self, token):
        return self.ask(op="accept", token=int(token))["ok"]

    def rollback(self, count):
        self.ask(op="rollback", count=count)

    def restart(self):
        self.rollback(1_000_000)


class XGrammar:
    name = "xgrammar"

    def __init__(self, tokens, eos):
        import xgrammar

        self.x = xgrammar
        self.info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[eos])
        self.compiler = xgrammar.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        self.buffer = np.zeros((1, (len(tokens) + 31) // 32), dtype=np.int32)

    def start(self, kind, text):
        begin = time.perf_counter()
        try:
            if kind == "regex":
                grammar = self.compiler.compile_regex(text)
            elif kind == "ebnf":
                grammar = self.compiler.compile_grammar(text)
            else:
                grammar = self.compiler.compile_json_schema(text, any_whitespace=False, separators=(",", ":"), strict_mode=True)
        except Exception as problem:  # the package raises many kinds
            return str(problem)[:80] or "error", None
        us = (time.perf_counter() - begin) * 1e6
        self.grammar = grammar
        self.restart()
        return None, us

    def restart(self):
        self.matcher = self.x.GrammarMatcher(self.grammar)

    def reads(self, value, eos):
        """Whether it reads a whole text byte by byte, where no mask is asked for."""
        matcher = self.x.GrammarMatcher(self.grammar)
        return matcher.accept_string(value) and matcher.accept_token(eos)

    def fill(self):
        self.matcher.fill_next_token_bitmask(self.buffer)

    def mask(self):
        begin = time.perf_counter()
        self.fill()
        return self.buffer[0].copy(), (time.perf_counter() - begin) * 1e6

    def accept(self, token):
        return self.matcher.accept_token(int(token))

    def rollback(self, count):
        self.matcher.rollback(count)


class LLGuidance:
    name = "llguidance"

    def __init__(self, tokens, specials, eos, encode):
        import llguidance
        import llguidance.numpy as bits

        self.l, self.bits = llguidance, bits

        class Wrapper:
            eos_token_id, bos_token_id = eos, None

            def __call__(self, text):
                return encode(text)

        wrapper = Wrapper()
        wrapper.tokens, wrapper.special_token_ids = [b"\xff" + t if i in specials else t for i, t in enumerate(tokens)], sorted(specials)
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(wrapper))
        self.buffer = bits.allocate_token_bitmask(1, len(tokens))

    def start(self, kind, text):
        begin = time.perf_counter()
        try:
            if kind == "regex":
                grammar = self.l.LLMatcher.grammar_from_regex(text)
            elif kind == "ebnf":
                return "gbnf is not read", None
            else:
                grammar = self.l.LLMatcher.grammar_from_json_schema(
                    text, defaults={"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"})
            self.grammar = grammar
            self.restart()
        except Exception as problem:
            return str(problem)[:80] or "error", None
        if self.matcher.is_error():
            return self.matcher.get_error()[:80], None
        return None, (time.perf_counter() - begin) * 1e6

    def restart(self):
        self.matcher = self.l.LLMatcher(self.tokenizer, self.grammar, log_level=0)

    def fill(self):
        self.bits.fill_next_token_bitmask(self.matcher, self.buffer, 0)

    def mask(self):
        begin = time.perf_counter()
        self.fill()
        return self.buffer[0].copy(), (time.perf_counter() - begin) * 1e6

    def accept(self, token):
        return self.matcher.consume_token(int(token))

    def rollback(self, count):
        self.matcher.rollback(count)


# --- random grammars ---


def random_regex(rng, depth=0):
    pick = rng.random()
    if depth > 3 or pick < 0.35:
        return rng.choice(["a", "b", "ab", "the", " ", "1", "-", "x", "[a-f]", "[^a-z]", "\\d", "\\w", "[A-Z][a-z]", "é", ",", "\\.", "[0-9a-f]{2}"])
    if pick < 0.6:
        return "".join(random_regex(rng, depth + 1) for _ in range(rng.randint(1, 3)))
    if pick < 0.8:
        return "(" + "|".join(random_regex(rng, depth + 1) for _ in range(rng.randint(2, 3))) + ")"
    return "(" + random_regex(rng, depth + 1) + ")" + rng.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,70}"])


def random_ebnf(rng):
    names = ["root", "one", "two", "three"][: rng.randint(1, 4)]

    def expr(depth):
        pick = rng.random()
        if depth > 2 or pick < 0.4:
            return rng.choice(['"a"', '"the "', '"("', '")"', '", "', "[a-z]", "[0-9]+", '[^"]', '"\\""', '"é"'])
        if pick < 0.6:
            return rng.choice(names)
        if pick < 0.8:
            return " ".join(expr(depth + 1) for _ in range(rng.randint(1, 3)))
        if pick < 0.9:
            return "(" + " | ".join(expr(depth + 1) for _ in range(2)) + ")"
        return "(" + expr(depth + 1) + ")" + rng.choice(["*", "+", "?", "{1,3}"])

    # The first branch of each rule calls nothing, so that every rule matches something; calls come after a literal.
    return "\n".join(f'{n} ::= "{n[0]}" | "{n[1]}" {expr(0)}' for n in names)


def random_schema(rng, depth=0):
    pick = rng.random()
    if depth > 2 or pick < 0.5:
        return rng.choice([
            {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {"type": "string"},
            {"type": "integer", "minimum": rng.randint(-50, 5), "maximum": rng.randint(6, 3000)},
            {"type": "number", "minimum": 0, "maximum": rng.choice([1, 10.5])},
            {"type": "string", "maxLength": rng.randint(1, 40)}, {"type": "string", "minLength": 2, "maxLength": rng.randint(3, 9)},
            {"type": "string", "pattern": "^[a-z]+(-[a-z0-9]+)*$"}, {"type": "string", "format": rng.choice(["date", "uuid", "ipv4"])},
            {"enum": rng.sample(["red", "green", "blue", "a b", 1, 2.5, None, True, "\"q\""], 3)}, {"const": rng.choice(["fixed", 7])},
            {"type": ["string", "null"]}])
    if pick < 0.8:
        names = rng.sample(["id", "name", "value", "items", "first name", "url", "é", "x", "xy"], rng.randint(1, 5))
        schema = {"type": "object", "properties": {n: random_schema(rng, depth + 1) for n in names},
                  "required": rng.sample(names, rng.randint(0, len(names)))}
        schema["additionalProperties"] = rng.choice([False, False, False, {"type": "integer"}])
        return schema
    if pick < 0.92:
        schema = {"type": "array", "items": random_schema(rng, depth + 1)}
        if rng.random() < 0.5:
            schema["minItems"], schema["maxItems"] = rng.randint(0, 2), rng.randint(2, 5)
        return schema
    return {"anyOf": [random_schema(rng, depth + 1) for _ in range(2)]}


# --- judging ---


def bits(mask, size):
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


def some(rng, ids, count):
    """A few of the ids, without a walk over all of them."""
    return [int(ids[rng.randrange(len(ids))]) for _ in range(min(count, len(ids)))]


def finish(engine, rng, tokens, eos, budget=400):
    """Goes on with short tokens, closing ones preferred, until the text may end; the bytes, or None."""
    out, taken = b"", 0
    order = (b'"', b"}", b"]", b",", b"1", b"0", b"a", b"-", b"e")
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


def judge(kind, text, value):
    try:
        value = value.decode()
    except UnicodeDecodeError:
        return False
    if kind == "regex":
        return re.fullmatch(text.replace("\\d", "[0-9]").replace("\\w", "[A-Za-z0-9_]"), value) is not None
    if kind == "json":
        import jsonschema

        try:
            jsonschema.Draft202012Validator(json.loads(text), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(json.loads(value))
            return True
        except Exception:
            return False
    return None


def engines(tool, vocabulary, stubs=None):
    """Octavo and the two others over one vocabulary; its tokens, the end token, and an encoder."""
    data = json.load(open(vocabulary))
    tokens = [bytes.fromhex(t) for t in data["tokens"]] + [s.encode() for s in data["specials"]]
    eos = len(data["tokens"])
    specials = set(range(eos, len(tokens)))
    ours = Octavo(tool, vocabulary)
    import tvm_ffi  # noqa: F401  looks for torch itself, and must not find the stand-in

    if stubs:
        sys.path.insert(0, stubs)
    spelled = {t: i for i, t in enumerate(tokens) if i < eos}

    def encode(text):
        """Longest match first; llguidance uses it for the tokens of forced text."""
        text, out = text.encode() if isinstance(text, str) else bytes(text), []
        while text:
            size = next(n for n in range(min(len(text), 64), 0, -1) if text[:n] in spelled)
            out.append(spelled[text[:size]])
            text = text[size:]
        return out

    others = [XGrammar([b"" if i in specials else t for i, t in enumerate(tokens)], eos), LLGuidance(tokens, specials, eos, encode)]
    single = {t: i for i, t in enumerate(tokens) if len(t) == 1 and i < eos}
    for engine in [ours, *others]:
        engine.single = single
    return ours, others, tokens, eos, encode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("vocabulary")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--walks", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no case after this")
    parser.add_argument("--kinds", default="regex,ebnf,json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stubs")
    options = parser.parse_args()

    ours, others, tokens, eos, _ = engines(options.tool, options.vocabulary, options.stubs)
    rng = random.Random(options.seed)
    count = collections.Counter()
    times = collections.defaultdict(list)
    wrong = []
    end = time.monotonic() + options.minutes * 60
    for case in range(options.cases):
        kind = rng.choice(options.kinds.split(","))
        text = {"regex": random_regex, "ebnf": random_ebnf, "json": lambda r: json.dumps(random_schema(r), ensure_ascii=False)}[kind](rng)
        error, us = ours.start(kind, text)
        if error:
            count[f"{kind}: we refuse"] += 1
            if kind != "json":
                wrong.append((kind, text, "refused", error))
            continue
        times["octavo compile"].append(us)
        live = []
        for other in others:
            error, us = other.start(kind, text)
            if error:
                count[f"{kind}: {other.name} refuses"] += 1
            else:
                live.append(other)
                times[f"{other.name} compile"].append(us)
        seen = set()
        for walk in range(options.walks):
            prefix, taken = b"", 0
            for step in range(options.steps):
                # A prefix is one pair however often a walk comes by.
                new, _ = prefix not in seen, seen.add(prefix)
                mask, us = ours.mask()
                if mask is None:
                    wrong.append((kind, text, prefix, "no mask"))
                    break
                times["octavo mask"].append(us)
                mine = bits(mask, len(tokens))
                count[f"{kind}: grammar and prefix"] += new and bool(live)
                for other in list(live) if new else []:
                    mask, us = other.mask()
                    times[f"{other.name} mask"].append(us)
                    theirs = bits(mask, len(tokens))
                    count[f"{kind}: pairs with {other.name}"] += 1
                    only_mine, only_theirs = np.flatnonzero(mine & ~theirs), np.flatnonzero(theirs & ~mine)
                    if len(only_mine) == 0 and len(only_theirs) == 0:
                        count[f"{kind}: equal to {other.name}"] += 1
                        continue
                    for ids, engine, label in ((only_mine, ours, "more"), (only_theirs, other, "less")):
                        if len(ids) == 0:
                            continue
                        token = some(rng, ids, 1)[0]
                        if token == eos:
                            value = prefix
                        else:
                            if not engine.accept(token):
                                wrong.append((kind, text, prefix, f"{engine.name} rejects what its mask allows"))
                                continue
                            rest = finish(engine, rng, tokens, eos)
                            engine.rollback(1)
                            if rest is None:
                                count[f"{kind}: {label} than {other.name}, text without end"] += 1
                                continue
                            value = prefix + tokens[token] + rest
                        verdict = others[0].reads(value, eos) if kind == "ebnf" else judge(kind, text, value)
                        if label == "more":
                            name = {True: f"{other.name} is narrower", False: "WRONG: we accept invalid", None: f"more than {other.name}"}[verdict]
                        else:
                            name = {True: f"narrower than {other.name}", False: f"{other.name} accepts invalid", None: f"less than {other.name}"}[verdict]
                        count[f"{kind}: {name}"] += 1
                        if verdict is False and label == "less" and rng.random() < 0.05:
                            wrong.append((kind, text, prefix, f"{name}: token {tokens[token]!r} as in {value!r}"))
                        if (label == "more" and verdict is False) or verdict is None or (kind == "regex" and verdict is True) or (kind == "ebnf" and label == "less" and verdict) or (kind == "json" and label == "less" and verdict):
                            wrong.append((kind, text, prefix, f"{name}: token {tokens[token]!r} as in {value!r}"))
                mine[eos] = False
                allowed = np.flatnonzero(mine)
                if len(allowed) == 0:
                    break
                token = some(rng, allowed, 1)[0]
                if rng.random() < 0.5:
                    token = max(some(rng, allowed, 8), key=lambda i: len(tokens[i]))
                if not ours.accept(token):
                    wrong.append((kind, text, prefix, f"we reject {tokens[token]!r} of our own mask"))
                    break
                for other in list(live):
                    if not other.accept(token):
                        live.remove(other)
                        count[f"{kind}: {other.name} left the walk"] += 1
                prefix += tokens[token]
                taken += 1
            for engine in [ours, *live]:
                if taken:
                    engine.rollback(taken)
        if case % 50 == 49:
            print(case + 1, "cases,", sum(n for name, n in count.items() if name.endswith("and prefix")), "pairs", file=sys.stderr)
        if time.monotonic() > end:
            break

    for name in sorted(count):
        print(f"{count[name]:8}  {name}")
    for name in sorted(times):
        t = np.array(times[name])
        print(f"{name:20} n={len(t):6}  mean {t.mean():9.1f}  p50 {np.percentile(t, 50):9.1f}  p99 {np.percentile(t, 99):9.1f}  p99.9 {np.percentile(t, 99.9):9.1f} us")
    for entry in wrong[:60]:
        print("NOTE", *entry)


if __name__ == "__main__":
    main()
