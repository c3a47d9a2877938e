#!/usr/bin/env python3
"""Whether headers compile alone, by the compile commands of build/release: those named, else those that changed.

Usage: check_headers.py [HEADER...]. Without arguments: of the commits that the branch `main` lacks, or, on it, of the
last commit, a merge with all that it brought; all where the history does not reach as far. `make headers` checks all, those
too whose includes have changed.
"""

import json
import pathlib
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from os import sched_getaffinity

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = ("src/kernels/cuda/", "src/kernels/cpu/")  # need special compilers or instruction sets


def git(*command):
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)


def changed():
    base = git("merge-base", "HEAD", "main").stdout.strip()
    if not base or base == git("rev-parse", "HEAD").stdout.strip():
        base = "HEAD^"
    listed = git("diff", "--name-only", "--diff-filter=d", base, "--", "src/*.h")
    return (listed if listed.returncode == 0 else git("ls-files", "src/*.h")).stdout.split()


def commands():
    """By folder, the command with the most include folders, without the file's name, its output and precompiled headers."""
    found = {}
    for entry in json.loads((ROOT / "build/release/compile_commands.json").read_text()):
        folder = str(pathlib.Path(entry["file"]).parent.relative_to(ROOT)) if entry["file"].startswith(str(ROOT)) else ""
        folder = folder.removeprefix("build/release/").removesuffix("/jumbo")  # cmake/jumbo.cmake writes that file
        words = shlex.split(entry["command"])
        if "-include" in words:
            at = words.index("-include")
            del words[at : at + 2]
        found.setdefault(folder, []).append([w for w in words[: words.index("-o")] if not w.startswith("-O")])
    return {folder: max(all_, key=includes) for folder, all_ in found.items()}


def includes(words):
    return sum(word.startswith("-I") for word in words)


def command_for(header, known):
    """That of its folder or the nearest one above; a test's header may include what any test of its room does."""
    room, testing, _ = header.partition("/testing/")
    if testing:
        own = [words for folder, words in known.items() if folder == room or folder.startswith(room + "/")]
        return max(own, key=includes, default=None)
    return next((known[str(p)] for p in pathlib.Path(header).parents if str(p) in known), None)


def compile_alone(header, known):
    command = command_for(header, known)
    if command is None:
        return f"{header}: nothing in its folder is compiled\n"
    include = f'#include "{pathlib.Path(header).relative_to("src")}"\n'
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=include, cwd=ROOT / "build/release",
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main():
    headers = [h for h in sys.argv[1:] or changed() if not h.startswith(SKIPPED)]
    known = commands()
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        errors = [e for e in pool.map(lambda h: compile_alone(h, known), headers) if e]
    sys.stdout.write("".join(errors))
    print(f"{len(headers)} headers compile alone" if not errors else f"{len(errors)} of {len(headers)} headers do not compile alone")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
