"""Random regexes, EBNF grammars and JSON Schemas that all engines read, and judges of whole texts that share no code
with them."""

import json
import math
import re

import jsonschema
import re2  # linear time: a backtracking judge takes hours for some of these
import regex  # matches prefixes, which neither re nor re2 does


def random_regex(rng, depth=0):
    pick = rng.random()
    if depth > 2 or pick < 0.35:  # XGrammar takes minutes for deeper ones
        return rng.choice(["a", "b", "ab", "the", " ", "1", "-", "x", "[a-f]", "[^a-z]", "\\d", "\\w", "[A-Z][a-z]", "é", ",", "\\.", "[0-9a-f]{2}"])
    if pick < 0.6:
        return "".join(random_regex(rng, depth + 1) for _ in range(rng.randint(1, 3)))
    if pick < 0.8:
        return "(" + "|".join(random_regex(rng, depth + 1) for _ in range(rng.randint(2, 3))) + ")"
    return "(" + random_regex(rng, depth + 1) + ")" + rng.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,7}"])


class Ebnf:
    """A grammar as trees, which this class writes as GBNF and also reads texts with. A call follows a literal, so no
    rule is left-recursive."""

    ATOMS = ['"a"', '"the "', '"("', '")"', '", "', "[a-z]", "[0-9]+", '[^"]', '"\\""', '"é"']

    def __init__(self, rng):
        names = ["root", "one", "two", "three"][: rng.randint(1, 4)]
        self.rules = {n: ("alt", [("re", f'"{n[0]}"'), ("seq", [("re", f'"{n[1]}"'), self.expression(rng, names, 0)])]) for n in names}

    def expression(self, rng, names, depth):
        pick = rng.random()
        if depth > 2 or pick < 0.4:
            return ("re", rng.choice(self.ATOMS))
        if pick < 0.6:
            return ("call", rng.choice(names))
        if pick < 0.8:
            return ("seq", [self.expression(rng, names, depth + 1) for _ in range(rng.randint(1, 3))])
        if pick < 0.9:
            return ("alt", [self.expression(rng, names, depth + 1) for _ in range(2)])
        return ("repeat", self.expression(rng, names, depth + 1), rng.choice(["*", "+", "?", "{1,3}"]))

    def text(self):
        def write(node):
            if node[0] in ("re", "call"):
                return node[1]
            if node[0] == "repeat":
                return f"({write(node[1])}){node[2]}"
            return "(" + (" " if node[0] == "seq" else " | ").join(map(write, node[1])) + ")"

        return "\n".join(f"{name} ::= {write(body)}" for name, body in self.rules.items())

    def matches(self, text):
        return self.read(text)[0]

    def begins(self, text):
        """Returns whether a text of the grammar begins so. Every rule can end, so a reading that needs more bytes
        suffices."""
        return any(self.read(text))

    def read(self, text):
        """Returns whether the grammar reads the whole text, and whether a reading needs more bytes."""
        known, more = {}, []

        def ends(node, at):
            """Returns the positions at which a text that begins at `at` may end."""
            if node[0] == "re":
                pattern = re.escape(json.loads(node[1])) if node[1][0] == '"' else node[1]
                if at == len(text) or (node[1][0] == '"' and json.loads(node[1]).startswith(text[at:])):
                    more.append(at)
                longest = re.compile(pattern).match(text, at)
                if not longest:
                    return set()
                return set(range(at + 1, longest.end() + 1)) if pattern.endswith("+") else {longest.end()}
            if node[0] == "call":
                if (node[1], at) not in known:
                    known[node[1], at] = ends(self.rules[node[1]], at)
                return known[node[1], at]
            if node[0] == "alt":
                return set().union(*(ends(part, at) for part in node[1]))
            if node[0] == "seq":
                here = {at}
                for part in node[1]:
                    here = set().union(*(ends(part, i) for i in here))
                return here
            low, high = {"*": (0, 1 << 30), "+": (1, 1 << 30), "?": (0, 1), "{1,3}": (1, 3)}[node[2]]
            out, here, seen, count = set(), {at}, set(), 0
            while here and count <= high:
                if count >= low:
                    out |= here
                count += 1
                here = set().union(*(ends(node[1], i) for i in here))
                if count > low:
                    here, seen = here - seen, seen | here
            return out

        return len(text) in ends(("call", "root"), 0), bool(more)


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


class Case:
    """One random grammar: its text, and the judge of whole texts."""

    def __init__(self, kind, rng):
        self.kind = kind
        if kind == "regex":
            self.text = random_regex(rng)
            self.pattern = re2.compile(self.text.replace("\\d", "[0-9]").replace("\\w", "[A-Za-z0-9_]"))
        elif kind == "ebnf":
            self.grammar = Ebnf(rng)
            self.text = self.grammar.text()
        else:
            self.schema = random_schema(rng)
            self.text = json.dumps(self.schema, ensure_ascii=False)
            form = jsonschema.Draft202012Validator
            self.validator = form(self.schema, format_checker=form.FORMAT_CHECKER)

    def begins(self, value):
        """Returns whether a valid text begins with these bytes, or None if the judge cannot decide."""
        if self.kind == "json":
            return None
        text = value.decode(errors="ignore")
        half = value[len(text.encode()) :]
        try:
            return any(self.text_begins(text + character) for character in completions(half, self.text))
        except TimeoutError:
            return None

    def text_begins(self, text):
        if self.kind == "ebnf":
            return self.grammar.begins(text)
        return regex.fullmatch(self.pattern.pattern, text, partial=True, timeout=10) is not None

    def valid(self, value):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return False
        if self.kind == "regex":
            return self.pattern.fullmatch(value) is not None
        if self.kind == "ebnf":
            return self.grammar.matches(value)
        try:
            return self.validator.is_valid(json.loads(value))
        except ValueError:
            return False


def completions(half, text):
    """Returns characters that begin with these bytes: those in the grammar's text, and some of the others, which the
    grammar treats alike."""
    if not half:
        return [""]
    found = [c for c in text if c.encode().startswith(half)]
    for fill in (b"\x80", b"\x90", b"\xa0", b"\xbf"):
        for length in range(1, 4):
            try:
                found.append((half + fill * length).decode())
            except UnicodeDecodeError:
                continue
    return [c for c in found if len(c) == 1]


def in_order(value, schema):
    """Returns the value with its members in the schema's order; for an anyOf, in all orders."""
    if "anyOf" in schema:
        return [v for branch in schema["anyOf"] for v in in_order(value, branch)][:16]
    if isinstance(value, dict):
        out, properties = [{}], schema.get("properties", {})
        for name in [*(n for n in properties if n in value), *(n for n in value if n not in properties)]:
            out = [{**o, name: v} for o in out for v in in_order(value[name], properties.get(name, {}))][:16]
        return out
    if isinstance(value, list):
        out = [[]]
        for item in value:
            out = [[*o, v] for o in out for v in in_order(item, schema.get("items", {}))][:16]
        return out
    return [value]


def why_narrower(case, value, matches):
    """Returns the reason why Octavo does not accept a valid JSON text. matches: whether Octavo accepts a text."""
    twice = []

    def members(pairs):
        twice.extend(pairs if len(dict(pairs)) < len(pairs) else [])
        return dict(pairs)


    def number(text):
        value = float(text)
        if math.isinf(value):
            return int(math.copysign(1, value)) * 10**400
        return int(value) if value.is_integer() else value

    data = json.loads(value, object_pairs_hook=members, parse_float=number)
    if twice:
        return "a name twice"
    spell = lambda v: json.dumps(v, ensure_ascii=False, separators=(",", ":"))
    try:
        spell(data).encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair"
    if matches(spell(data)):
        return "a spelling of the same value"
    if any(matches(spell(v)) for v in in_order(data, case.schema)):
        return "an order of members"
    return "UNKNOWN"
