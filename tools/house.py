#!/usr/bin/env python3
"""Finds code that is too large: files above 500 lines, functions above 70 lines, classes above 20 data members. Also
finds code that selects a backend by name.

    house.py            one line per finding, the worst first
    house.py --check    fails if a finding is not in tools/house_limits.json, or is larger than its limit
    house.py --lower    lowers the limits to today's sizes and deletes unused ones; no limit ever rises

Sources are read as text: a function is a brace after parentheses in a namespace or a class.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools/house_limits.json"
FILE_LINES, FUNCTION_LINES, CLASS_MEMBERS = 500, 70, 20
GENERATED = {"src/model/families/defaults.cc"}
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'', re.S)
NO_DATA = re.compile(r"^(using|friend|static|typedef|template|public|private|protected|class|struct|enum|union)\b")


def blank(text):
    """Returns the text without comments, literals and directives, with the same length and lines."""
    text = NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)


def without_templates(text):
    """Removes template arguments, the innermost pairs of < and > first. Keeps -> and comparisons."""
    before = None
    while text != before:
        before, text = text, re.sub(r"<[^<>(){};]*(?:\([^()]*\)[^<>(){};]*)*(?<!-)>", "", text)
    return text


def kind_of(head):
    """Returns the kind and name of the scope that a brace opens."""
    plain = without_templates(head).replace("\n", " ").strip()
    plain = re.sub(r"\b(alignas|__attribute__|decltype|noexcept)\s*\([^()]*\)|\[\[.*?\]\]", "", plain)
    if re.search(r"\bnamespace\b|^extern\s*$", plain):
        return "namespace", ""
    if re.search(r"\benum\b", plain):
        return "other", ""
    if found := re.search(r"\b(?:class|struct|union)\s+([\w:]+)[^()=]*$", plain):
        return "class", found[1]
    if "(" in plain and not re.search(r"(?<![=!<>])=(?!=)[^()]*$", plain[: plain.index("(")]):
        names = re.search(r"([\w:~]+|operator\s*\S+)\s*\(", plain)
        return "function", names[1] if names else "?"
    return "other", ""


def members_of(statements):
    count = 0
    for statement in statements:
        plain = without_templates(re.sub(r"\b(public|private|protected)\s*:", "", statement)).strip()
        plain = re.sub(r"\[\[.*?\]\]|\{.*?\}|\balignas\s*\([^()]*\)", "", plain, flags=re.S)
        plain = re.sub(r"=[^,]*", "", plain).strip()
        if plain and not NO_DATA.match(plain) and "(" not in plain and len(plain.split()) > 1:
            count += plain.count(",") + 1
    return count


def scan(text):
    """Returns (kind, name, size) of functions and classes."""
    code = blank(text)
    stack, found, start = [], [], 0
    for at in re.finditer(r"[{};]", code):
        mark, end = at[0], at.start()
        outer = stack[-1] if stack else None
        if mark == "{":
            head = code[start:end]
            kind, name = ("other", "") if outer and outer["kind"] in ("function", "other") else kind_of(head)
            first = start + len(head) - len(head.lstrip())
            stack.append({"kind": kind, "name": name, "first": first, "begin": start, "statements": []})
            start = at.end()
        elif mark == "}" and stack:
            ended = stack.pop()
            if ended["kind"] == "function":
                found.append(("function", ended["name"], code.count("\n", ended["first"], end) + 1))
            if ended["kind"] == "class":
                found.append(("class", ended["name"], members_of(ended["statements"])))
            # A brace in a declaration (a default, an initialiser) belongs to its statement.
            start = ended["begin"] if ended["kind"] == "other" else at.end()
        elif mark == ";":
            if outer:
                outer["statements"].append(code[start:end])
            start = at.end()
    return found


def offenders():
    listed = subprocess.run(["git", "ls-files", "src/*.cc", "src/*.h", "src/*.cu", "src/*.cuh", "bindings/*.cc", "bindings/*.h"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = {}
    for name in listed:
        if name in GENERATED:
            continue
        text = (ROOT / name).read_text(errors="replace")
        sizes = [("file", "", text.count("\n"))]
        if not name.endswith("_test.cc"):
            sizes += scan(text)
            sizes.append(("backend.name ==", "", len(re.findall(r"\.name\s*[!=]=\s*\"(?:cuda|cpu|reference)\"", text))))
        limits = {"file": FILE_LINES, "function": FUNCTION_LINES, "class": CLASS_MEMBERS, "backend.name ==": 0}
        for kind, inner, size in sizes:
            if size > limits[kind]:
                # The key has no folder, because files move.
                key = f"{kind} {pathlib.Path(name).name}" + (f" {inner}" if inner else "")
                found[key] = max(size, found.get(key, 0))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lower", action="store_true")
    args = parser.parse_args()
    found = offenders()
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else None
    if args.lower:
        if limits is not None:
            found = {key: min(size, limits[key]) for key, size in found.items() if key in limits}
        LIMITS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    elif args.check:
        above = {key: size for key, size in found.items() if size > (limits or {}).get(key, 0)}
        for key, size in sorted(above.items()):
            print(f"{key}: {size}, the limit is {(limits or {}).get(key, 'that of all (tools/house.py)')}: split it", file=sys.stderr)
        return 1 if above else 0
    else:
        for key, size in sorted(found.items(), key=lambda item: (item[0].split()[0], -item[1])):
            print(f"{size:5} {key}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
