#!/usr/bin/env python3
"""Compares the architectures that Octavo supports with the registry of a vLLM wheel.

    pip download 'vllm==0.33.*' --no-deps
    registry.py vllm-0.33.0-*.whl [--program build/release/octavo] [--all]

The wheel (or the folder into which it was unpacked) is parsed, but not imported. Prints for each table of the registry
how many architectures Octavo supports, how many of them for text only although vLLM also reads images or sound, and
the names of the missing ones (with --all: of all). The list of Octavo's architectures comes from the program
(`octavo model architectures`). Exit code 1: docs/reference/missing-models.md has not exactly the names that are
missing in text, multimodal, embedders and late interaction, each with a reason.
"""
import argparse
import ast
import pathlib
import re
import subprocess
import sys
import zipfile

REGISTRY = "vllm/model_executor/models/registry.py"
# Tables that list models. The others list drafters, generic classes and models that vLLM no longer has.
KINDS = {
    "_TEXT_GENERATION_MODELS": "text",
    "_MULTIMODAL_MODELS": "multimodal",
    "_EMBEDDING_MODELS": "embedders",
    "_LATE_INTERACTION_MODELS": "late interaction",
    "_REWARD_MODELS": "reward models",
    "_TOKEN_CLASSIFICATION_MODELS": "token classifiers",
    "_SEQUENCE_CLASSIFICATION_MODELS": "classifiers",
    "_TRANSFORMERS_SUPPORTED_MODELS": "by transformers' classes",
}


PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/missing-models.md"
EXPLAINED = list(KINDS)[:4]  # tables whose missing names the page explains


def explained():
    """Returns {architecture: reason} from the tables of the page."""
    rows = re.findall(r"^\| (`[^|]*`) \|([^|]*)\|$", PAGE.read_text(), re.MULTILINE)
    return {name: reason.strip() for names, reason in rows for name in re.findall(r"`(\w+)`", names) if name != "architectures"}


def errors(tables, known):
    """Returns what is wrong in the page."""
    reasons = explained()
    registered = {name for table in EXPLAINED for name in tables[table]}
    missing = registered - known.keys()
    wrong = [f"{name} is missing in Octavo: add a row with the reason" for name in sorted(missing - reasons.keys())]
    wrong += [f"{name} has no reason" for name in sorted(missing & reasons.keys()) if not reasons[name]]
    wrong += [f"{name} is supported: remove its row" for name in sorted(reasons.keys() & known.keys())]
    wrong += [f"{name} is not in vLLM's registry: remove its row" for name in sorted(reasons.keys() - registered - known.keys())]
    return wrong


def source_of(path):
    if path.is_dir():
        return next(file for file in (path / REGISTRY, path / REGISTRY.removeprefix("vllm/")) if file.exists()).read_text()
    with zipfile.ZipFile(path) as wheel:
        return wheel.read(REGISTRY).decode()


def registry(path):
    """Returns the names in each table: {table: [architecture]}."""
    tables = {}
    for statement in ast.parse(source_of(path)).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Dict):
            continue
        names = [key.value for key in statement.value.keys if isinstance(key, ast.Constant)]
        tables[statement.targets[0].id] = names
    if missing := KINDS.keys() - tables.keys():
        sys.exit(f"{path}: {REGISTRY} has no {', '.join(sorted(missing))}: vLLM has moved them")
    return {table: tables[table] for table in KINDS}


def supported(program):
    """Returns {architecture: whether it reads only text}."""
    text = subprocess.run([program, "model", "architectures"], capture_output=True, text=True, check=True, timeout=60).stdout
    return {line.split()[0]: "text only" in line for line in text.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/octavo")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    known = supported(arguments.program)
    print("| kind | supported | of them for text only | in vLLM |\n|---|---:|---:|---:|")
    tables = registry(arguments.wheel)
    for table, names in tables.items():
        found = [name for name in names if name in known]
        print(f"| {KINDS[table]} | {len(found)} | {sum(known[name] for name in found)} | {len(names)} |")
    for table, names in tables.items():
        shown = [f"{name} ({'text only' if known[name] else 'supported'})" if name in known else name
                 for name in names if arguments.all or name not in known]
        print(f"\n{KINDS[table]}{'' if arguments.all else ', missing'}: {', '.join(shown) or 'none'}")
    if wrong := errors(tables, known):
        sys.exit("\n".join([f"\n{PAGE}:", *wrong]))


if __name__ == "__main__":
    main()
