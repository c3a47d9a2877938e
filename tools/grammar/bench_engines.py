"""Compares the times of Octavo's grammar engine with XGrammar's and llguidance's, for realistic JSON Schemas.

    python bench_engines.py GRAMMAR_TOOL NEIGHBOURS VOCABULARY.json [--schemas N] [--rounds N] [--seed N]

NEIGHBOURS is the folder of build_neighbours.sh. The schemas are like those of users (pydantic models, function calls,
API payloads, extraction forms, unions, trees, maps), with valid instances as tokens. For each schema, the engines
alternate: each compiles it and reads the same tokens, with a mask before each token. It does this twice: as the first
request with that schema, and as the next one. Each engine is a separate process, which measures its own times, in its
own language, on one thread.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess

import numpy as np

from engines import Octavo, load_vocabulary

WORDS = """account amount address area author balance batch body brand budget build category channel city client code
color comment company contact content cost count country created currency customer date delivery department description
device discount duration email employee end event expires file filter format group height history host image index item
label language latitude level limit link list location longitude manager message method model name note number offer
option order owner page parent part password path payment percent period person phone plan position price priority
product profile project quantity query rank rating reason record region request resource response result role route
sample schedule score section service session severity shipping size source stage start state status step street subject
summary supplier tag target task tax team template text time title token topic total type unit update url user value
vendor version view weight width year zone""".split()


class Maker:
    """Makes random schemas, each with a valid instance."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def name(self):
        parts = self.rng.sample(WORDS, self.rng.choice([1, 1, 2, 2, 3]))
        if self.rng.random() < 0.3:
            return parts[0] + "".join(p.title() for p in parts[1:])
        return "_".join(parts)

    def sentence(self, low=2, high=12):
        return " ".join(self.rng.choice(WORDS) for _ in range(self.rng.randint(low, high))).capitalize()

    def leaf(self):
        r = self.rng
        kind = r.randrange(16)
        if kind < 5:
            return {"type": "string", "description": self.sentence()}, self.sentence(1, 9)
        if kind == 5:
            low = r.randint(1, 3)
            return {"type": "string", "minLength": low, "maxLength": r.choice([40, 100, 255])}, self.sentence(1, 4)[:40]
        if kind < 8:
            return {"type": "integer"}, r.randint(-5, 100000)
        if kind == 8:
            return {"type": "integer", "minimum": 0, "maximum": r.choice([10, 100, 65535])}, r.randint(0, 10)
        if kind == 9:
            return {"type": "number"}, round(r.uniform(-100, 5000), 2)
        if kind == 10:
            return {"type": "boolean"}, r.random() < 0.5
        if kind == 11:
            values = [self.name() for _ in range(r.randint(2, 12))]
            return {"type": "string", "enum": sorted(set(values))}, r.choice(values)
        if kind == 12:
            text = {"date": "2024-03-09", "date-time": "2024-03-09T12:30:05Z", "email": "ann.lee@example.com",
                    "uuid": "123e4567-e89b-42d3-a456-426614174000"}
            form = r.choice(list(text))
            return {"type": "string", "format": form}, text[form]
        if kind == 13:
            pattern, value = r.choice([("^[A-Z]{2}-[0-9]{4}$", "AB-1234"), ("^\\+?[0-9]{7,15}$", "+4912345678"),
                                       ("^[a-z0-9]+(-[a-z0-9]+)*$", "a-few-words")])
            return {"type": "string", "pattern": pattern}, value
        if kind == 14:
            return {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, r.choice([None, self.sentence(1, 5)])
        return {"type": "array", "items": {"type": "string"}}, [self.sentence(1, 3) for _ in range(r.randint(0, 4))]

    def object(self, depth, fields=None):
        r = self.rng
        properties, value = {}, {}
        for _ in range(fields or r.randint(2, 9)):
            name = self.name()
            pick = r.random()
            if depth > 0 and pick < 0.15:
                child, instance = self.object(depth - 1, r.randint(2, 5))
            elif depth > 0 and pick < 0.25:
                item, first = self.object(depth - 1, r.randint(2, 4))
                child, instance = {"type": "array", "items": item}, [first] * r.randint(0, 2)
                if r.random() < 0.4:
                    child["maxItems"] = r.randint(3, 20)
            else:
                child, instance = self.leaf()
            properties[name], value[name] = child, instance
        required = [n for n in properties if r.random() < 0.75]
        for n in list(value):
            if n not in required and r.random() < 0.4:
                del value[n]
        schema = {"type": "object", "properties": properties, "required": required}
        if r.random() < 0.7:
            schema["additionalProperties"] = False
        if r.random() < 0.5:
            schema["title"] = self.name().title()
        return schema, value

    def model(self):  # pydantic: definitions and references
        part, piece = self.object(0, 4)
        schema, value = self.object(1)
        schema["$defs"] = {"Part": part}
        schema["properties"]["parts"] = {"type": "array", "items": {"$ref": "#/$defs/Part"}}
        schema["properties"]["main"] = {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]}
        value["parts"] = [piece] * self.rng.randint(1, 3)
        value["main"] = self.rng.choice([piece, None])
        return schema, value

    def union(self):
        variants, values = [], []
        for kind in self.rng.sample(WORDS, self.rng.randint(2, 5)):
            schema, value = self.object(0, 3)
            variants.append({"type": "object", "properties": {"kind": {"const": kind}, **schema["properties"]},
                             "required": ["kind", *schema["required"]], "additionalProperties": False})
            values.append({"kind": kind, **value})
        return {"type": "array", "items": {"anyOf": variants}}, [self.rng.choice(values) for _ in range(3)]

    def tools(self):
        calls, values = [], []
        for _ in range(self.rng.randint(1, 8)):
            schema, value = self.object(1, self.rng.randint(1, 5))
            name = self.name()
            calls.append({"type": "object", "properties": {"name": {"enum": [name]}, "parameters": schema},
                          "required": ["name", "parameters"], "additionalProperties": False})
            values.append({"name": name, "parameters": value})
        return {"type": "array", "minItems": 1, "items": {"anyOf": calls}}, [self.rng.choice(values)]

    def tree(self):
        name = self.name()
        node = {"type": "object", "properties": {name: {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": [name, "children"], "additionalProperties": False}
        leaf = {name: self.sentence(), "children": []}
        return {"$defs": {"Node": node}, "$ref": "#/$defs/Node"}, {name: self.sentence(), "children": [leaf, {name: "x", "children": [leaf]}]}

    def mapping(self):
        schema, value = self.object(0, 3)
        return ({"type": "object", "additionalProperties": schema},
                {self.name(): value for _ in range(self.rng.randint(1, 3))})

    def choice(self):
        labels = sorted({self.name() for _ in range(self.rng.choice([3, 10, 60, 200]))})
        return ({"type": "object", "properties": {"label": {"type": "string", "enum": labels}, "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                                                  "reason": {"type": "string"}}, "required": ["label", "confidence", "reason"], "additionalProperties": False},
                {"label": self.rng.choice(labels), "confidence": 0.75, "reason": self.sentence(5, 20)})

    def make(self):
        kind = self.rng.choice([lambda: self.object(1), lambda: self.object(2), self.model, self.model, self.tools, self.union, self.tree,
                                self.mapping, self.choice])
        return kind()


class Ours(Octavo):
    def read(self, schema, path):
        error, us = self.start("json", schema)
        walks = []
        for _ in range(0 if error else 2):
            self.restart()
            walks.append(self.ask(op="walk", tokens=path))
        return {"error": error} if error else {"us": us, "walks": walks}


class Neighbour:
    """A program of build_neighbours.sh, with the protocol of neighbours/xgrammar.cc."""

    def __init__(self, program, tokens):
        self.name = program.name.removesuffix("_walks")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.send([str(len(tokens)), *(token.hex() for token in tokens)])

    def send(self, lines):
        self.process.stdin.write("\n".join(lines) + "\n")
        self.process.stdin.flush()

    def read(self, schema, path):
        self.send([schema, " ".join(map(str, path))])
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("neighbours", type=pathlib.Path)
    parser.add_argument("vocabulary")
    parser.add_argument("--schemas", type=int, default=220)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tokens, eos, encode = load_vocabulary(options.vocabulary)
    programs = [options.neighbours / f"{name}_walks" for name in ("xgrammar", "llguidance")]
    plain = [*tokens[:eos], b""]  # the end token has no text
    engines = [Ours(options.tool, options.vocabulary), *(Neighbour(p, plain) for p in programs)]
    compiles, masks, again, accepts = (collections.defaultdict(list) for _ in range(4))
    left, refused = collections.Counter(), collections.Counter()
    for _ in range(options.rounds):
        maker = Maker(options.seed)
        for _ in range(options.schemas):
            schema, instance = maker.make()
            text = json.dumps(schema)
            path = encode(json.dumps(instance, ensure_ascii=False, separators=(",", ":"))) + [eos]
            for engine in engines:
                answer = engine.read(text, path)
                if "error" in answer:
                    refused[engine.name] += 1
                    print(engine.name, "refuses", answer["error"], text[:200])
                    continue
                compiles[engine.name].append(answer["us"])
                for times, walk in zip((masks, again), answer["walks"]):
                    times[engine.name] += walk["masks"]
                    accepts[engine.name] += walk["accepts"]
                    left[engine.name] += len(walk["accepts"]) < len(path)
    print(f"{len(tokens)} tokens, {options.schemas} schemas, {options.rounds} rounds; microseconds")
    print("| | compile p50 | p99 | first mask p50 | p99 | p99.9 | next p50 | p99 | p99.9 | per token | masks |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in masks:
        c, m, a = (np.array(times[name]) for times in (compiles, masks, again))
        per_token = (m.sum() + a.sum() + sum(accepts[name])) / (len(m) + len(a))
        values = [*np.percentile(c, [50, 99]), *np.percentile(m, [50, 99, 99.9]), *np.percentile(a, [50, 99, 99.9]), per_token]
        print(f"| {name} | " + " | ".join(f"{v:.2f}" for v in values) + f" | {len(m)} |")
    print("refused", dict(refused), "left the instance", dict(left))


main()
