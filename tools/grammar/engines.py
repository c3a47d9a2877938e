"""Octavo's grammar engine, XGrammar and llguidance with one interface. The latter two are packages for tests only.

xgrammar imports torch and transformers only for the names of types. `stubs` is a folder with empty replacements.
"""

import json
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

    def finish(self):
        """Returns bytes that end the text, or None."""
        answer = self.ask(op="finish")
        return bytes.fromhex(answer["text"]) if "text" in answer else None

    def matches(self, text):
        return self.ask(op="matches", text=text)["ok"]


class XGrammar:
    name = "xgrammar"

    def __init__(self, tokens, eos):
        import xgrammar

        self.x = xgrammar
        self.eos = eos
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


def bits(mask, size):
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


def load_vocabulary(path):
    """Returns the tokens, the end token, and an encoder that prefers the longest match."""
    data = json.load(open(path))
    tokens = [bytes.fromhex(t) for t in data["tokens"]] + [s.encode() for s in data["specials"]]
    eos = len(data["tokens"])
    spelled = {t: i for i, t in enumerate(tokens) if i < eos}

    def encode(text):
        text, out = text.encode() if isinstance(text, str) else bytes(text), []
        while text:
            size = next(n for n in range(min(len(text), 64), 0, -1) if text[:n] in spelled)
            out.append(spelled[text[:size]])
            text = text[size:]
        return out

    return tokens, eos, encode


def engines(tool, vocabulary, stubs=None):
    """Returns Octavo and the two others with one vocabulary, its tokens and the end token."""
    tokens, eos, encode = load_vocabulary(vocabulary)  # llguidance encodes forced text
    specials = set(range(eos, len(tokens)))
    ours = Octavo(tool, vocabulary)
    import tvm_ffi  # noqa: F401  it searches for torch, and must not find the replacement

    if stubs:
        sys.path.insert(0, stubs)
    others = [XGrammar([b"" if i in specials else t for i, t in enumerate(tokens)], eos), LLGuidance(tokens, specials, eos, encode)]
    single = {t: i for i, t in enumerate(tokens) if len(t) == 1 and i < eos}
    for engine in [ours, *others]:
        engine.single = single
    return ours, others, tokens, eos
