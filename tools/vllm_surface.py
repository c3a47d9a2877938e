#!/usr/bin/env python3
"""Compares the flags and routes of a vLLM wheel with those of `octavo serve`.

    pip download 'vllm==0.33.*' --no-deps
    vllm_surface.py vllm-0.33.0-*.whl [--program build/release/octavo] [--all]

The wheel (or the folder into which it was unpacked) is parsed, but not imported. Prints each flag and route that
Octavo does not know (with --all: every one, with its verdict), then the counts. The exit code is 1 if one is unknown.
In that case, add a row to src/local/vllm_flags.cc, a route, or a row to src/serve/routes/refused.cc.
"""
import argparse
import ast
import collections
import json
import pathlib
import re
import subprocess
import sys
import zipfile

METHODS = {"get", "post", "put", "delete", "patch", "head", "websocket"}
FRONT_END = "vllm/entrypoints/common/cli_args.py"
ENGINE = "vllm/engine/arg_utils.py"
# Programs other than `vllm serve`.
OTHER_PROGRAMS = ("vllm/entrypoints/cli/", "vllm/entrypoints/launchers/dp_supervisor.py")


def sources(path):
    """Yields (name, syntax tree) of the relevant files."""
    def matters(name):
        return name.endswith(".py") and (name == ENGINE or name.startswith("vllm/entrypoints/"))

    if path.is_dir():
        texts = ((str(file.relative_to(path)), file.read_bytes()) for file in sorted(path.rglob("*.py")))
        yield from ((name, ast.parse(text)) for name, text in texts if matters(name))
        return
    with zipfile.ZipFile(path) as wheel:
        yield from ((name, ast.parse(wheel.read(name))) for name in sorted(wheel.namelist()) if matters(name))


def texts_of(nodes):
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def added_flags(tree):
    """Yields the flags in calls of add_argument in the functions that make the parser of `vllm serve`."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in ("add_cli_args", "make_arg_parser"):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
                yield from (text for text in texts_of(call.args) if text.startswith("--"))


def field_flags(tree):
    """Yields the flags that are fields of the front end's classes."""
    for found in ast.walk(tree):
        if isinstance(found, ast.ClassDef) and found.name.endswith("FrontendArgs"):
            yield from ("--" + field.target.id.replace("_", "-") for field in found.body
                        if isinstance(field, ast.AnnAssign) and not field.target.id.startswith("_"))


def routes_of(tree):
    """Yields (method, path) of each route that a decorator or a call adds."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        paths = [text for text in texts_of(call.args[:1]) if text.startswith("/")]
        if call.func.attr in METHODS and getattr(call.func.value, "id", "").endswith(("router", "app")):
            yield from ((call.func.attr.upper(), path) for path in paths)
        elif call.func.attr in ("add_api_route", "api_route"):
            listed = [word.value for word in call.keywords if word.arg == "methods"]
            methods = texts_of(listed[0].elts) if listed and isinstance(listed[0], ast.List) else ["GET"]
            yield from ((method, path) for path in paths for method in methods)


def vllm_surface(path):
    flags, routes = set(), set()
    for name, tree in sources(path):
        if name in (ENGINE, FRONT_END):
            flags.update(added_flags(tree))
        if name == FRONT_END:
            flags.update(field_flags(tree))
        if name.startswith("vllm/entrypoints/") and not name.startswith(OTHER_PROGRAMS):
            routes.update(routes_of(tree))
    if not flags or not routes:
        sys.exit(f"{path}: no flags in {ENGINE} and {FRONT_END}, or no routes: vLLM has moved them")
    return sorted(flags), sorted(routes, key=lambda route: route[::-1])


def text_of(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def known_flags(program):
    """Returns the verdict on each flag, from the page that the program prints."""
    page = text_of(program, "serve", "--list-flags")
    return dict(re.findall(r"(?m)^\| `(--[^`]+)`[^|]* \| ([^|]+?) \|", page))


def shape(path):
    return re.sub(r"\{[^}]*\}", "{}", path)


def known_routes(program):
    document = json.loads(text_of(program, "serve", "--list-routes"))
    known = {(method.upper(), shape(path)): "works" for path, item in document["paths"].items() for method in item}
    return known, document["x-refused-routes"]


def report(title, verdicts, show_all):
    for name, verdict in verdicts:
        if show_all or verdict == "unknown":
            print(f"| `{name}` | {verdict} |")
    counts = collections.Counter(re.split(r"[:(]", verdict)[0].strip() for _, verdict in verdicts)
    print(f"{title}: {len(verdicts)}; " + ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    return counts["unknown"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/octavo")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    flags, routes = vllm_surface(arguments.wheel)
    flag_verdicts = known_flags(arguments.program)
    served, refused = known_routes(arguments.program)

    def verdict_of(method, path):
        if verdict := served.get((method, shape(path))):
            return verdict
        return f"refused: {refused[path]}" if path in refused else "unknown"

    unknown = report("flags", [(flag, flag_verdicts.get(flag, "unknown")) for flag in flags], arguments.all)
    unknown += report("routes", [(f"{method} {path}", verdict_of(method, path)) for method, path in routes], arguments.all)
    sys.exit(unknown > 0)


if __name__ == "__main__":
    main()
