"""Prefixes of JSON texts, without a grammar engine: whether bytes begin a JSON text, and continuations that complete it.

A state is (mode, stack). stack: "{" or "[" for each open object or array, the innermost last. Modes:

    value, item (value or ']'), name (a name), member (a name or '}'), colon, after (',' or a closing bracket), end
    s, k: inside a string that is a value, or a name; s\\ and su4..su1: inside an escape; s+n: n bytes of a character miss
    -, 0, int, ., frac, e, e+, exp: inside a number;  l:REST: inside a literal
"""

SPACE = b" \t\n\r"
CLOSING = {"{": ord("}"), "[": ord("]")}
ENDS_NUMBER = ("0", "int", "frac", "exp")


def closed(stack):
    return ("after" if stack else "end", stack)


def in_string(mode, byte, stack):
    kind, rest = mode[0], mode[1:]
    if rest == "\\":
        return (kind + "u4" if byte == ord("u") else kind, stack) if byte in b'"\\/bfnrtu' else None
    if rest[:1] == "u":
        left = int(rest[1]) - 1
        return (f"{kind}u{left}" if left else kind, stack) if byte in b"0123456789abcdefABCDEF" else None
    if rest[:1] == "+":
        left = int(rest[1]) - 1
        return (f"{kind}+{left}" if left else kind, stack) if 0x80 <= byte < 0xC0 else None
    if byte == ord('"'):
        return ("colon", stack) if kind == "k" else closed(stack)
    if byte == ord("\\"):
        return kind + "\\", stack
    if byte < 0x20 or 0x80 <= byte < 0xC2 or byte > 0xF4:
        return None
    return kind if byte < 0x80 else f"{kind}+{1 + (byte >= 0xE0) + (byte >= 0xF0)}", stack


NUMBER = {
    "-": {"0": "0", "123456789": "int"}, "0": {".": ".", "eE": "e"}, "int": {"0123456789": "int", ".": ".", "eE": "e"},
    ".": {"0123456789": "frac"}, "frac": {"0123456789": "frac", "eE": "e"}, "e": {"+-": "e+", "0123456789": "exp"},
    "e+": {"0123456789": "exp"}, "exp": {"0123456789": "exp"}}
STARTS = {ord('"'): "s", ord("-"): "-", ord("0"): "0", ord("t"): "l:rue", ord("f"): "l:alse", ord("n"): "l:ull",
          **{ord(d): "int" for d in "123456789"}}


def step(state, byte):
    """Returns the state after one more byte, or None if no JSON text begins so."""
    mode, stack = state
    if mode[0] in "sk":
        return in_string(mode, byte, stack)
    if mode in NUMBER:
        for characters, target in NUMBER[mode].items():
            if chr(byte) in characters:
                return target, stack
        return step(closed(stack), byte) if mode in ENDS_NUMBER else None
    if mode[:2] == "l:":
        if byte != ord(mode[2]):
            return None
        return (mode[:2] + mode[3:], stack) if mode[3:] else closed(stack)
    if byte in SPACE:
        return state
    if mode in ("value", "item"):
        if byte == ord("]") and mode == "item":
            return closed(stack[:-1])
        if byte in b"{[":
            return ("member" if byte == ord("{") else "item"), stack + chr(byte)
        return (STARTS[byte], stack) if byte in STARTS else None
    if mode in ("name", "member"):
        if byte == ord("}") and mode == "member":
            return closed(stack[:-1])
        return ("k", stack) if byte == ord('"') else None
    if mode == "colon":
        return ("value", stack) if byte == ord(":") else None
    if mode == "after":
        if byte == CLOSING[stack[-1]]:
            return closed(stack[:-1])
        return ("name" if stack[-1] == "{" else "value", stack) if byte == ord(",") else None
    return None


START = ("value", "")


def run(state, text):
    for byte in text:
        state = state and step(state, byte)
    return state


class Witnesses:
    """Valid texts of a schema, indexed by their states, and completions of other texts from their parts."""

    VALUES = [b"null", b"0", b"1", b'""', b'"a"', b"true", b"false", b"{}", b"[]", b"-1", b"0.5"]

    def __init__(self, texts, names, values):
        self.by_state, self.texts = {}, texts
        self.names, self.values = names, [*values, *self.VALUES]
        for text in texts:
            state = START
            for at in range(len(text) + 1):
                self.by_state.setdefault(state, []).append((at, text))
                if at < len(text):
                    state = step(state, text[at])

    def begins(self, prefix):
        return any(text.startswith(prefix) for text in self.texts)

    def tails(self, state, near):
        """Returns the rests of the witnesses from this state, the nearest position first."""
        entries = self.by_state.get(state, [])
        if state[0] == "name":  # the first member may also be a later one
            first = self.by_state.get(("member", state[1]), [])
            entries = entries + [(at, text) for at, text in first if text[at:].lstrip()[:1] == b'"']
        found = sorted(entries, key=lambda entry: abs(entry[0] - near))[:8]
        return dict.fromkeys(text[at:] for at, text in found)

    def after_new_name(self, text, state, near):
        """Completes a text inside a name that is not listed: a value, and the members that a witness has at this
        point."""
        fill = b"\x80" * int(state[0][2]) if state[0][1:2] == "+" else b""
        for value in [b'":1', b'":"a"', *(b'":' + value for value in self.values[:6])]:
            begun = text + fill + value
            for tail in self.tails(("name", state[1]), near):
                yield begun + b"," + tail
            for tail in self.tails(("after", state[1]), near):
                yield begun + tail

    def parts(self, state, written):
        """Returns bytes that end a string, number, literal or name, and values if one must follow."""
        mode = state[0]
        if mode[0] in "sk":
            fill = {"\\": b"n", "u": b"0061"[4 - int(mode[2]):] if mode[1:2] == "u" else b""}.get(mode[1:2], b"")
            if mode[1:2] == "+":
                fill = b"\x80" * int(mode[2])
            begun = written[written.rfind(b'"') + 1:]
            if mode[0] == "s":
                rests = [value[1 + len(begun):] for value in self.values if value.startswith(b'"' + begun)]
                return [*rests[:6], fill + b'"', fill + b'a"', fill + b'0"', fill]
            rests = [name[len(begun):] for name in self.names if name.startswith(begun)]
            return [rest + b'":' for rest in rests[:12]] + [fill + b'":']
        if mode[:2] == "l:":
            return [mode[2:].encode()]
        if mode in NUMBER:
            return ([b","] if mode in ENDS_NUMBER and state[1] else []) + [b"0", b"1", b"5", b"00", b"25", b"+1", b"-05"]
        if mode in ("value", "item"):
            return [b"", *self.values] + ([b"]"] if mode == "item" else [])
        if mode in ("name", "member"):
            return [b"", *(b'"' + name + b'":' for name in self.names[:12])] + ([b"}"] if mode == "member" else [])
        return {"colon": [b":"], "after": [b","]}.get(mode, [])

    def ends(self, text, near, most):
        """Returns whole texts that begin with `text`: the text, at most three parts, and the rest of a witness or
        closing brackets."""
        state, given = run(START, text), set()
        if state and state[0][0] == "k":
            yield from self.after_new_name(text, state, near)
        layer = [(text, state)] if state else []
        for _ in range(4):
            following = []
            for written, at in layer:
                tails = list(self.tails(at, near + len(written) - len(text)))
                if at[0] in ("after", "end", *ENDS_NUMBER):
                    tails.append("".join(chr(CLOSING[c]) for c in reversed(at[1])).encode())
                for whole in (written + tail for tail in tails):
                    if whole not in given:
                        given.add(whole)
                        yield whole
                        if len(given) >= most:
                            return
                for part in self.parts(at, written):
                    if part and (state := run(at, part)):
                        following.append((written + part, state))
                if at[0] == "after":
                    closing = bytes([CLOSING[at[1][-1]]])
                    following.append((written + closing, run(at, closing)))
            layer = following[:60]
