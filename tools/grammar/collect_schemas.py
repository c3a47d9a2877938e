"""Collects real JSON Schemas, with instances that an independent validator has judged, for judge_schemas.py.

    python collect_schemas.py OUTPUT SOURCE.. [--instances FOLDER..] [--each N]

A SOURCE is a folder or an archive (.tgz, .whl, .zip) of JSON files: schemas (those that say `$schema`, or have `type` and
`properties`), and OpenAPI documents, of which every schema of the components becomes one. Instances come from
FOLDER/NAME/*.json (as a collection of schemas keeps its tests) and are made from the schema: values that follow it, and the
same with one thing changed. Each is labelled by jsonschema, formats included; schemas that it cannot check are left out.
"""

import argparse
import copy
import glob
import hashlib
import json
import os
import random
import tarfile
import zipfile

import jsonschema


def documents(source):
    """(name, text) of the JSON files of a folder or an archive."""
    if os.path.isdir(source):
        for path in sorted(glob.glob(os.path.join(source, "**", "*.json"), recursive=True)):
            yield os.path.relpath(path, source), open(path, "rb").read()
    elif source.endswith((".tgz", ".tar.gz")):
        with tarfile.open(source) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".json"):
                    yield member.name, archive.extractfile(member).read()
    else:
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    yield name, archive.read(name)


def with_definitions(schema, components):
    """A schema of an OpenAPI document on its own: with the components that it reaches as definitions."""
    needed, open_names = {}, [schema]

    def moved(node):
        if isinstance(node, list):
            return [moved(n) for n in node]
        if not isinstance(node, dict):
            return node
        out = {}
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str) and value.startswith("#/components/schemas/"):
                name = value.rsplit("/", 1)[1]
                if name in components and name not in needed:
                    needed[name] = None
                    open_names.append(name)
                out[key] = "#/definitions/" + name
            else:
                out[key] = moved(value)
        return out

    root = moved(open_names.pop())
    while open_names:
        name = open_names.pop()
        needed[name] = moved(components[name])
    return {**root, "definitions": needed} if needed else root


def schemas(name, data):
    if not isinstance(data, dict):
        return
    components = data.get("components", {}).get("schemas") if isinstance(data.get("components"), dict) else None
    if isinstance(components, dict) and ("openapi" in data or "paths" in data):
        for key, schema in components.items():
            if isinstance(schema, dict):
                yield f"{name}#{key}", with_definitions(schema, components)
    elif "json-schema.org" in str(data.get("$schema", "")) or (isinstance(data.get("properties"), dict) and "type" in data):
        yield name, data


class Maker:
    """Values that follow a schema as far as it is simple; whether they do is the validator's word."""

    def __init__(self, root, rng):
        self.root, self.rng = root, rng

    def target(self, schema):
        for _ in range(20):
            ref = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(ref, str) or not ref.startswith("#"):
                break
            node = self.root
            for step in ref[1:].split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                node = node.get(step) if isinstance(node, dict) else None
            schema = node
        return schema if isinstance(schema, dict) else {}

    def value(self, schema, depth=0):
        rng, schema = self.rng, self.target(schema)
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                rest = {k: v for k, v in schema.items() if k != key}
                choice = self.target(rng.choice(schema[key]))
                schema = {**choice, **rest, "properties": {**rest.get("properties", {}), **choice.get("properties", {})},
                          "required": [*rest.get("required", []), *choice.get("required", [])]}
        for part in schema.get("allOf", []) if isinstance(schema.get("allOf"), list) else []:
            part = self.target(part)
            schema = {**part, **schema, "properties": {**schema.get("properties", {}), **part.get("properties", {})},
                      "required": [*schema.get("required", []), *part.get("required", [])]}
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return rng.choice(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = rng.choice(kind)
        if kind is None:
            kind = "object" if schema.get("properties") else "array" if "items" in schema else "string"
        if kind == "object":
            out = {}
            for name, sub in (schema.get("properties") or {}).items():
                if name in (schema.get("required") or []) or (depth < 4 and rng.random() < 0.6):
                    out[name] = self.value(sub, depth + 1)
            extra = schema.get("additionalProperties")
            if isinstance(extra, dict) and depth < 4:
                out[rng.choice(["alpha", "beta-2"])] = self.value(extra, depth + 1)
            return out
        if kind == "array":
            items = schema.get("items", {})
            least = schema.get("minItems", 0)
            count = max(least, 0 if depth > 4 else rng.randint(0, 2))
            return [self.value(items if isinstance(items, dict) else {}, depth + 1) for _ in range(min(count, 20))]
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 0), schema.get("maximum", 100)
            low, high = (low if isinstance(low, (int, float)) else 0), (high if isinstance(high, (int, float)) else 100)
            number = rng.uniform(low, max(low, high))
            return int(number) if kind == "integer" else round(number, 3)
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "null":
            return None
        texts = {"date-time": "2024-03-01T12:00:00Z", "date": "2024-03-01", "time": "12:00:00Z", "email": "jane.q.doe@mail.example.com",
                 "uri": "https://example.com/a/b?c=d#e", "uuid": "123e4567-e89b-12d3-a456-426614174000", "ipv4": "10.0.0.1",
                 "hostname": "a-1.example.com", "uri-reference": "../a/b", "ipv6": "::1"}
        text = texts.get(schema.get("format")) or rng.choice(["abc", "Some words", "v1.2.3", "a/b", "ünï"])
        return text + "x" * max(0, min(200, schema.get("minLength", 0) - len(text)) if isinstance(schema.get("minLength"), int) else 0)


def changed(value, rng):
    """The value with one thing changed somewhere."""
    out = copy.deepcopy(value)
    places = []

    def find(node, put):
        places.append((node, put))
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []:
            find(node[key], lambda v, n=node, k=key: n.__setitem__(k, v))

    holder = [out]
    find(out, lambda v: holder.__setitem__(0, v))
    node, put = rng.choice(places)
    if isinstance(node, dict) and node and rng.random() < 0.5:
        del node[rng.choice(list(node))]
    elif isinstance(node, dict) and rng.random() < 0.5:
        node["unheard_of"] = 1
    else:
        put(rng.choice([None, -1, 2.5, "", "text", [], {}, True]))
    return holder[0]


parser = argparse.ArgumentParser()
parser.add_argument("output")
parser.add_argument("sources", nargs="+")
parser.add_argument("--instances", nargs="*", default=[])
parser.add_argument("--each", type=int, default=6)
options = parser.parse_args()
os.makedirs(options.output, exist_ok=True)

seen, written = set(), 0
for source in options.sources:
    for name, text in documents(source):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for place, schema in schemas(name, data):
            key = hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]
            if key in seen or len(json.dumps(schema)) > 1_000_000:
                continue
            seen.add(key)
            rng = random.Random(key)
            values = []
            stem = os.path.basename(place).removesuffix(".json")
            for folder in options.instances:
                for path in sorted(glob.glob(os.path.join(folder, stem, "*.json")))[:6]:
                    try:
                        values.append(json.load(open(path)))
                    except ValueError:
                        pass
            try:
                maker = Maker(schema, rng)
                made = [maker.value(schema) for _ in range(options.each // 2)]
                values += made + [changed(value, rng) for value in made]
                kind = jsonschema.validators.validator_for(schema)
                kind.check_schema(schema)
                checker = kind(schema, format_checker=kind.FORMAT_CHECKER)
                tests = [{"data": value, "valid": checker.is_valid(value)} for value in values if len(json.dumps(value)) < 20_000]
            except Exception:  # the validator meets references to elsewhere, patterns it cannot read, ...
                continue
            if not tests:
                continue
            file = os.path.join(options.output, f"{stem.replace('#', '-').replace('/', '-')[:60]}-{key[:6]}.json")
            json.dump({"description": f"{os.path.basename(source)} {place}", "schema": schema, "tests": tests}, open(file, "w"))
            written += 1
print(written, "schemas")
