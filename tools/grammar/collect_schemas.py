"""Collects real JSON Schemas for judge_schemas.py, with instances that an independent validator has labelled.

    python collect_schemas.py OUTPUT SOURCE.. [--instances FOLDER..] [--each N] [--most N]

A SOURCE is one of:
- a folder or an archive (.tgz, .whl, .zip) of JSON files
- npm:NAME or pypi:NAME, a package that is downloaded into OUTPUT.packages
- a file with a list of these, one per line (schema_packages.txt, about 3,100 schemas)

It collects schemas (files with `$schema`, or with `properties` and `type` or similar keywords), every schema of the
components of an OpenAPI document, and the parameters of functions and tools; at most `--most` from one source.
Instances come from FOLDER/NAME/*.json (the tests of a collection of schemas), or are made from the schema: values
that follow it, and the same values with one change. jsonschema labels each instance, including its formats. Schemas
that it cannot check, and schemas that refer to another document, are omitted.
"""

import argparse
import copy
import glob
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import zipfile

import jsonschema


def listed(sources):
    """Returns the sources, with each list replaced by its lines."""
    for source in sources:
        if source.endswith(".txt"):
            lines = (line.split("#")[0].strip() for line in open(source))
            yield from (line for line in lines if line)
        else:
            yield source


def fetched(source, packages):
    """Returns the archive of a package. Downloads it the first time."""
    registry, _, name = source.partition(":")
    folder = os.path.join(packages, registry, name)
    os.makedirs(folder, exist_ok=True)
    if not os.listdir(folder):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", name]
        subprocess.run(["npm", "pack", "--silent", name] if registry == "npm" else pip, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, os.listdir(folder)[0])


def documents(source):
    """Yields (name, text) of the JSON files of a folder or an archive."""
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
    """Returns a schema of an OpenAPI document by itself, with the components that it refers to as definitions."""
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


def values(text):
    """Returns the JSON values of a file: one, or one per line."""
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return []


def functions(node):
    """Yields (name, parameters) of the functions and tools that a document defines."""
    if isinstance(node, list):
        for item in node:
            yield from functions(item)
    elif isinstance(node, dict):
        parameters = node.get("parameters") or node.get("inputSchema") or node.get("input_schema")
        if isinstance(node.get("name"), str) and isinstance(parameters, dict) and isinstance(parameters.get("properties"), dict):
            yield node["name"], with_json_types(parameters)
        else:
            for item in node.values():
                yield from functions(item)


def with_json_types(node):
    """Converts Python types in some function definitions to those of JSON Schema, as the clients of models do."""
    renamed = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "str": "string", "int": "integer"}
    if isinstance(node, list):
        return [with_json_types(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: with_json_types(value) for key, value in node.items()}
    if isinstance(out.get("type"), str):
        out["type"] = renamed.get(out["type"], out["type"])
        if out["type"] == "any":
            del out["type"]
    return out


def schemas(name, data):
    if "json-schema.org" not in str(data)[:2000]:
        for function, parameters in functions(data):
            yield f"{name}#{function}", parameters
    if not isinstance(data, dict):
        return
    components = data.get("components", {}).get("schemas") if isinstance(data.get("components"), dict) else None
    if isinstance(components, dict) and ("openapi" in data or "paths" in data):
        for key, schema in components.items():
            if isinstance(schema, dict):
                yield f"{name}#{key}", with_definitions(schema, components)
    elif "json-schema.org" in str(data.get("$schema", "")) or (
        isinstance(data.get("properties"), dict) and data.keys() & {"type", "required", "additionalProperties"}
    ):
        yield name, data


class Maker:
    """Makes values that follow simple parts of a schema. The validator decides whether they are valid."""

    def __init__(self, root, rng):
        self.root, self.rng, self.size = root, rng, 0

    def make(self):
        self.size = 0
        return self.value(self.root)

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
        self.size += 1
        wide = depth < 4 and self.size < 150
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
                if name in (schema.get("required") or []) or (wide and rng.random() < 0.6):
                    out[name] = self.value(sub, depth + 1)
            extra = schema.get("additionalProperties")
            if isinstance(extra, dict) and wide:
                out[rng.choice(["alpha", "beta-2"])] = self.value(extra, depth + 1)
            return out
        if kind == "array":
            items = schema.get("items", {})
            least = schema.get("minItems", 0)
            count = max(least, rng.randint(0, 2) if wide else 0)
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
                 "hostname": "a-1.example.com", "uri-reference": "../a/b", "uri-template": "https://example.com/{id}", "ipv6": "::1"}
        text = texts.get(schema.get("format")) or rng.choice(["abc", "Some words", "v1.2.3", "a/b", "ünï"])
        return text + "x" * max(0, min(200, schema.get("minLength", 0) - len(text)) if isinstance(schema.get("minLength"), int) else 0)


def changed(value, rng):
    """Returns the value with one change."""
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


def with_null(node):
    """Converts OpenAPI 3.0's `nullable: true` to JSON Schema."""
    if isinstance(node, list):
        return [with_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: with_null(value) for key, value in node.items()}
    if out.get("nullable") is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def leads_outside(node, ids):
    """Returns whether a reference leads to another document: neither to a part of this one, nor to one of its
    `$id`s."""
    if isinstance(node, list):
        return any(leads_outside(item, ids) for item in node)
    if not isinstance(node, dict):
        return False
    target = node.get("$ref")
    if isinstance(target, str) and not target.startswith("#") and not any(target.split("#")[0].endswith(i) for i in ids):
        return True
    return any(leads_outside(item, ids) for item in node.values())


def ids_of(node):
    """Returns the last segments of the `$id`s in a schema."""
    if isinstance(node, list):
        return set().union(*map(ids_of, node))
    if not isinstance(node, dict):
        return set()
    own = {i.rstrip("#").rsplit("/", 1)[-1] for i in (node.get("$id"), node.get("id")) if isinstance(i, str)}
    return own.union(*map(ids_of, node.values())) - {""}


def tests_of(schema, given, rng, each):
    """Returns instances with the validator's results, or None if it cannot check the schema (for example its
    patterns) within some seconds."""
    signal.alarm(10)
    try:
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        checker, maker, valid = kind(with_null(schema), format_checker=kind.FORMAT_CHECKER), Maker(schema, rng), []
        for _ in range(4 * each):  # the maker is simple, so its values may be invalid
            value = maker.make()
            valid += [value] if checker.is_valid(value) else []
            if len(valid) == each // 2:
                break
        if not valid and not given:
            return None
        broken = [changed(rng.choice(valid), rng) for _ in range(each - each // 2)] if valid else []
        return [{"data": value, "valid": checker.is_valid(value)} for value in given + valid + broken if len(json.dumps(value)) < 20_000]
    except Exception:  # the validator raises many kinds, and the maker fails at keywords with a wrong type
        return None
    finally:
        signal.alarm(0)


def too_long(*_):
    raise TimeoutError


parser = argparse.ArgumentParser()
parser.add_argument("output")
parser.add_argument("sources", nargs="+")
parser.add_argument("--instances", nargs="*", default=[])
parser.add_argument("--each", type=int, default=6)
parser.add_argument("--most", type=int, default=500)
options = parser.parse_args()
os.makedirs(options.output, exist_ok=True)
signal.signal(signal.SIGALRM, too_long)

seen, written = set(), 0
for source in listed(options.sources):
    found, archive = [], fetched(source, options.output + ".packages") if source.startswith(("npm:", "pypi:")) else source
    for name, text in documents(archive):
        for data in values(text):
            for place, schema in schemas(name, data):
                text_of = json.dumps(schema, sort_keys=True)
                key = hashlib.sha256(text_of.encode()).hexdigest()[:16]
                if key not in seen and len(text_of) < 1_000_000 and not leads_outside(schema, ids_of(schema)):
                    seen.add(key)
                    found.append((place, schema, key))
    kept = 0
    for place, schema, key in random.Random(7).sample(found, len(found)):
        if kept == options.most:
            break
        stem = os.path.basename(place).removesuffix(".json")
        given = []
        for folder in options.instances:
            for path in sorted(glob.glob(os.path.join(folder, stem, "*.json")))[:6]:
                given += values(open(path, "rb").read())
        tests = tests_of(schema, given, random.Random(key), options.each)
        if not tests or not any(test["valid"] for test in tests):
            continue
        file = os.path.join(options.output, f"{stem.replace('#', '-').replace('/', '-')[:60]}-{key[:6]}.json")
        json.dump({"description": f"{source} {place}", "schema": schema, "tests": tests}, open(file, "w"))
        kept += 1
    written += kept
    print(f"{kept:5} of {len(found):5}  {source}", flush=True)
print(written, "schemas")
