#!/usr/bin/env python3
"""Writes the generated pages of docs/reference. With --check, it lists the pages that are out of date.

    docs_tables.py [--check] [--program build/release/octavo]

The program itself prints flags.md, metrics.md and environment.md. commands.md is made from every --help. routes.md is
made from `octavo serve --list-routes` and the switches in src/serve/routes/table.cc.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NESTED = {"bench", "model", "session", "simulate", "plan"}  # commands with subcommands


def text_of(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def subcommands(program, *command):
    """Returns (name, description) of each subcommand of a command."""
    listed = text_of(program, *command, "--help").partition("Subcommands:")[2]
    return [match[0] for match in re.findall(r"(?m)^  ([a-z][a-z-]*) +(\S.*)$", listed)]


def commands_page(program):
    page = ["# Commands and their flags", "",
            "Written by `tools/docs_tables.py` from each command's `--help-all`. Flags of `octavo serve` that come from vLLM, with",
            "those that are refused or have no effect: [flags of vllm serve](flags.md).", ""]
    for name in subcommands(program):
        below = subcommands(program, name) if name in NESTED else []
        for command in [(name,), *((name, last) for last in below)]:
            flag = "--help" if command in {(one,) for one in NESTED} else "--help-all"
            page += [f"## octavo {' '.join(command)}", "", "```text", text_of(program, *command, flag).strip(), "```", ""]
    return "\n".join(page)


def kind(schema, schemas):
    """Describes a JSON type and its limits in a few words."""
    if "$ref" in schema:
        return kind(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    parts = [kind(part, schemas) for part in schema.get("anyOf", schema.get("oneOf", [])) if part.get("type") != "null"]
    if parts:
        number = any(re.match(r"(integer|number)", part) for part in parts)
        # numbers may be strings everywhere
        kept = [part for part in parts if not (number and part == "string")]
        return " or ".join(dict.fromkeys(kept))
    if schema.get("enum") in ([], [""]):
        return "a served name"  # the server fills in the names
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    name = schema.get("type", "any")
    if name == "array":
        return "list of " + kind(schema["items"], schemas) if "items" in schema else "list"
    low, high, above = (schema.get(word) for word in ("minimum", "maximum", "exclusiveMinimum"))
    low = low if low is None or low > -2**31 else None  # the range of the type is not a limit
    high = high if high is None or high < 2**31 - 1 else None
    bounds = [f"from {low:g}" if low is not None else f"above {above:g}" if above is not None else "", f"to {high:g}" if high is not None else ""]
    return " ".join([name, *filter(None, bounds)])


def routes_page(program):
    document = json.loads(text_of(program, "serve", "--list-routes"))
    schemas = document["components"]["schemas"]
    table = (ROOT / "src/serve/routes/table.cc").read_text()
    needs = {"dev_mode": "`--server-dev-mode`", "change_adapters": "`--allow-runtime-lora-updating`", "profiles": "`--profiler-config`"}
    switch = {}
    for row in re.findall(r"\{\.path = [^}]*\}", table):
        if by := re.search(r"enabled_by = &ServeFeatures::(\w+)", row):
            switch[re.search(r'\.path = "([^"]+)"', row)[1]] = needs.get(by[1], f"`{by[1]}`")
        elif "routes::batches" in row:
            switch[re.search(r'\.path = "([^"]+)"', row)[1].rstrip("/")] = "`--batch-dir`"
    page = ["# Routes and fields of octavo serve", "",
            "Written by `tools/docs_tables.py` from the document that `GET /openapi.json` serves. [HTTP API](api.md) explains the fields.", "",
            "| route | | needs |", "|---|---|---|"]
    bodies = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            needed = switch.get(path.partition("/{")[0], "")
            page.append(f"| `{method.upper()} {path}` | {operation['summary'].rstrip('.')} | {needed} |")
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if "$ref" in content["schema"]:
                    bodies.setdefault(content["schema"]["$ref"].rsplit("/", 1)[1], []).append(path)
    page += ["", "## Routes of vLLM that are refused", "", "Each of these routes returns 404 with the reason.", "", "| route | reason |", "|---|---|"]
    page += [f"| `{path}` | {reason} |" for path, reason in document["x-refused-routes"].items()]
    for name, paths in bodies.items():
        page += ["", f"## {name}", "", "Body of " + ", ".join(f"`{path}`" for path in paths) + ".", "", "| field | type | meaning |", "|---|---|---|"]
        required = set(schemas[name].get("required", []))
        for field, schema in schemas[name].get("properties", {}).items():
            meaning = schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema).get("description", "")
            page.append(f"| `{field}` | {kind(schema, schemas)}{', required' if field in required else ''} | {meaning} |")
    return "\n".join([*page, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", default=str(ROOT / "build/release/octavo"))
    args = parser.parse_args()
    pages = {"flags": text_of(args.program, "serve", "--list-flags"), "metrics": text_of(args.program, "serve", "--list-metrics"),
             "environment": text_of(args.program, "serve", "--list-environment"),
             "commands": commands_page(args.program), "routes": routes_page(args.program)}
    stale = []
    for name, text in pages.items():
        path = ROOT / f"docs/reference/{name}.md"
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not args.check:
                path.write_text(text)
    if args.check and stale:
        print(f"out of date: {', '.join(stale)}; run tools/docs_tables.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
