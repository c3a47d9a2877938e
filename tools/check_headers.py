#!/usr/bin/env python3
"""Checks that headers compile by themselves, with the compile commands of build/release.

Usage: check_headers.py [HEADER...]. The default is the headers that changed since the branch `main` or, on main, in
the last commit (for a merge: in all its commits). If the history does not reach that commit, all headers are checked.
`make headers` checks all headers, including those whose includes have changed.
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
    """Returns, for each folder, the command with the most include folders, without the file's name, its output and
    precompiled headers."""
    found = {}
    for entry in json.loads((ROOT / "build/release/compile_commands.json").read_text()):
        folder = str(pathlib.Path(entry["file"]).parent.relative_to(ROOT)) if entry["file"].startswith(str(ROOT)) else ""
        # cmake/jumbo.cmake writes that file
        folder = folder.removeprefix("build/release/").removesuffix("/jumbo")
        words = shlex.split(entry["command"])
        if "-include" in words:
            at = words.index("-include")
            del words[at : at + 2]
        found.setdefault(folder, []).append([w for w in words[: words.index("-o")] if not w.startswith("-O")])
    return {folder: max(all_, key=includes) for folder, all_ in found.items()}


def includes(words):
    return sum(word.startswith("-I") for word in words)


def command_for(header, known):
    """Returns the command of the header's folder or of the nearest folder above it. A test's header may include
    everything that tests of its module include."""
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
