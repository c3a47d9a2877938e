#!/usr/bin/env python3
"""Finds sentences that a reader has to read twice, in docs, comments and texts of the program.

    plain_words.py [PATH ..]            one line per finding (default: every tracked file)
    plain_words.py --count [PATH ..]    findings by folder and by rule
    plain_words.py --check [PATH ..]    fails if a folder has more findings per 1,000 sentences than its limit; without
                                        PATH, in the folders that differ from the branch main
    plain_words.py --lower              lowers limits to today's counts; no limit ever rises

CONTRIBUTING.md says how to write instead. A finding may be correct, so limits are above 0.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools/plain_words_limits.json"
COMMENT = {".cc": "//", ".h": "//", ".cu": "//", ".cuh": "//", ".c": "//", ".rs": "//", ".ts": "//", ".tsx": "//",
           ".py": "#", ".sh": "#", ".cmake": "#"}
# Generated files, and texts of others: data, built pages.
SKIPPED = re.compile(r"^models/|(^|/)(data|node_modules|build)/|^web/dist/|^docs/reference/(flags|commands|metrics|json-schema-suite|grammar-errors)\.md$")

RULES = [(name, re.compile(pattern, re.I if name.islower() else 0)) for name, pattern in [
    # A rule whose name is lower case ignores case.
    ("name the subject: begins with 'Of'", r"^Of (?!course)"),
    ("Name the thing: 'What ..' as a noun", r"^What (?!(is|are|does|do|to|if|can|should|happens|changes)\b)[^?]*$"),
    ("name the thing: 'of what', 'than what'", r"\b(of|to|by|from|with|than|in|at) what\b"),
    ("name the program: 'who', 'whom', 'whoever'",
     r"\b(to|by|of|for|from|than|in) who(m|ever)?\b|\bwho (has|holds|computes|sends|asks|waits|reads|writes|serves|wants)\b"),
    ("name the number: 'so many', 'as many'", r"\bso (many|much|long|few|often)\b(?! (as|that)\b)|\b(of )?as many\b(?! as)"),
    ("write 'except': 'but for'", r"\bbut for\b"),
    ("write 'after': 'behind'", r"\bbehind (it|them|that|the (last|first|answer|prompt|token|step|row|others?))\b"),
    ("write 'continues': 'goes on'", r"\b(go|goes|went|going) on\b"),
    ("write 'is': 'stands', 'lies'", r"\b(stands?|lies?) (in|at|on|for|before|behind|beside|there|where|below|above)\b"),
    ("write 'reports': 'tells of', 'is told'", r"\b(tells?|told) of\b|\b(is|are|was) told\b"),
    ("write 'exists': 'that is there', 'there is none'", r"\b(that|what|which) (is|are) there\b|\bthere (is|are) none\b"),
    ("write 'separate': 'of its own'", r"\bof (its|their|his) own\b"),
    ("write 'returns': 'comes again', 'comes back'", r"\bcomes? (again|back|and go)\b"),
    ("write 'the same type': 'the like'", r"\bthe like(s)? of|\band the like\b|\bits kin\b"),
    ("write a sentence: 'none: ..', 'nobody ..'", r"\b(none|nothing|nobody|nullptr): (none|no|not|nothing|all|the|it)\b|^nobody\b"),
    ("make two sentences: above 40 words", r"^(\S+\s+){40}\S+"),
]]


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


def tracked(paths):
    """Yields the tracked files below these paths whose text is read."""
    for name in git("ls-files", "--", *paths) or []:
        if not SKIPPED.search(name) and (name.endswith(".md") or pathlib.Path(name).suffix in COMMENT):
            yield name


def folder_of(name):
    """Returns the folder that has a limit: at most two levels."""
    return "/".join(name.split("/")[:-1][:2]) or "."


def changed_folders():
    """Returns the folders that differ from main or, on main, from the last commit."""
    base = (git("merge-base", "HEAD", "main") or [""])[0]
    if base in ("", (git("rev-parse", "HEAD") or [""])[0]):
        base = "HEAD^"
    names = git("diff", "--name-only", "--diff-filter=d", base)
    return None if names is None else {folder_of(name) for name in names}


def markdown(lines):
    """Yields paragraphs, list items and table cells, without code."""
    fenced, text, first = False, [], 0
    for number, line in enumerate([*lines, ""], 1):
        fence = line.lstrip().startswith("```")
        own = bool(re.match(r"\s*([-*] |\d+\. |\|)", line))
        code = fenced or fence or line.startswith("    ") and not text
        fenced ^= fence
        if text and (own or code or not line.strip() or line.startswith("#")):
            yield first, " ".join(text)
            text = []
        if code or line.startswith("#") or not line.strip():
            continue
        if line.lstrip().startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                yield number, cell.strip()
            continue
        first = first if text else number
        text.append(re.sub(r"^\s*([-*]|\d+\.)\s+", "", line).strip())


def code(lines, mark):
    """Yields blocks of comment lines, comments after code, and string literals with words."""
    text, first = [], 0
    for number, line in enumerate([*lines, ""], 1):
        whole = re.match(rf"\s*{mark}+\s?(?!!)(.*)$", line)
        if whole and whole[1].strip():
            first = first if text else number
            text.append(whole[1].strip())
            continue
        if text:
            yield first, " ".join(text)
            text = []
        if after := re.search(rf"\s{mark} ([A-Za-z].{{8,}})$", line):
            yield number, after[1].strip()
        for literal in re.findall(r'"((?:[^"\\]|\\.){30,})"', line):
            if literal.count(" ") >= 4:
                yield number, literal


def sentences(text):
    text = re.sub(r"`[^`]*`", "`x`", re.sub(r"\]\([^)]*\)", "]", text))  # code and URLs are not text
    return [part.strip(" *") for part in re.split(r"(?<=[.!?;]) +(?=[A-Z`*\"])", text) if len(part.split()) > 2]


def findings(name):
    """Returns the number of sentences, and (line, rule, sentence) of each finding."""
    lines = (ROOT / name).read_text(errors="replace").splitlines()
    prose = markdown(lines) if name.endswith(".md") else code(lines, COMMENT[pathlib.Path(name).suffix])
    count, found = 0, []
    for number, text in prose:
        for sentence in sentences(text):
            count += 1
            found += [(number, rule, sentence) for rule, pattern in RULES if pattern.search(sentence)]
    return count, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lower", action="store_true")
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    only = changed_folders() if args.check and not args.paths else None
    prose, found, rules = collections.Counter(), collections.Counter(), collections.Counter()
    for name in tracked(args.paths):
        folder = folder_of(name)
        if only is not None and folder not in only:
            continue
        count, listed = findings(name)
        prose[folder] += count
        found[folder] += len(listed)
        rules.update(rule for _, rule, _ in listed)
        if not (args.count or args.check or args.lower):
            for number, rule, sentence in listed:
                print(f"{name}:{number}: {rule}: {sentence[:160]}")
    rate = {folder: -(-1000 * found[folder] // prose[folder]) for folder in prose if prose[folder]}
    if args.count:
        for folder in sorted(rate, key=rate.get):
            print(f"{rate[folder]:5} per 1,000: {found[folder]:4} of {prose[folder]:6} sentences  {folder}")
        for rule, count in rules.most_common():
            print(f"{count:5}  {rule}")
        print(f"{1000 * found.total() / max(prose.total(), 1):.0f} per 1,000: {found.total()} of {prose.total()} sentences")
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    if args.lower:
        lower = {folder: min(rate[folder], limits.get(folder, rate[folder])) for folder in sorted(rate)}
        LIMITS.write_text(json.dumps(lower, indent=1) + "\n")
    if args.check:
        above = [folder for folder in sorted(rate) if rate[folder] > limits.get(folder, 20)]
        for folder in above:
            print(f"{folder}: {rate[folder]} findings per 1,000 sentences, the limit is {limits.get(folder, 20)}; "
                  f"tools/plain_words.py {folder} lists them", file=sys.stderr)
        return 1 if above else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
