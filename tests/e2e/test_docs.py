"""Checks the documentation: links have a target, every page is on the site, and the program has every command."""

import functools
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
TOP = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
OCTAVO = ROOT / "build/release/octavo"


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"(?m)^    .*$", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """Returns the anchors that GitHub and MkDocs give to a page's headings."""
    found = set()
    for heading in re.findall(r"(?m)^#+ +(.+?) *$", page.read_text()):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-"))
    return found


def test_failures_are_of_tests_that_exist():
    """Every test that docs/failures.md names exists."""
    sources = "".join(path.read_text() for path in [*ROOT.glob("src/**/*_test.cc"), *ROOT.glob("tests/*.cc")])
    unit = {f"{suite}.{name}" for suite, name in re.findall(r"TEST(?:_[FP])?\((\w+),\s*(\w+)", sources)}
    end_to_end = set(re.findall(r"def (test_\w+)", "".join(p.read_text() for p in ROOT.glob("tests/e2e/*.py"))))
    programs = {path.stem for path in [*ROOT.glob("src/**/*_fuzz.cc"), *ROOT.glob("src/**/*_soak.cc")]}
    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"(?m)^\| [A-Z]\d\d .*$", (ROOT / "docs/failures.md").read_text())))
    missing = []
    for name in named:
        if name.startswith("test_"):
            known = name in end_to_end
        elif name.endswith(("_fuzz", "_soak")):
            known = name in programs
        elif re.fullmatch(r"[A-Z]\w+\.\*", name):
            known = any(test.startswith(name[:-1]) for test in unit)
        elif re.fullmatch(r"[A-Z]\w+\.\w+", name):
            known = name in unit
        else:
            continue
        if not known:
            missing.append(name)
    assert len(named) > 80 and not missing
    rows = re.findall(r"(?m)^\| ([A-Z])(\d\d) ", (ROOT / "docs/failures.md").read_text())
    for kind in {row[0] for row in rows}:
        numbers = [int(number) for letter, number in rows if letter == kind]
        assert numbers == list(range(1, len(numbers) + 1)), kind
    assert len(rows) >= 58


def id_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=id_of)
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
        elif page in PAGES and not file.resolve().is_relative_to(ROOT / "docs"):
            broken.append(f"{target} (leaves the site)")
    assert not broken


@functools.cache
def help_of(*command):
    """Returns a subcommand's help, or None if the subcommand is unknown."""
    flag = "--help-all" if command == ("serve",) else "--help"
    done = subprocess.run([OCTAVO, *command, flag], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout if not command or done.stdout != help_of(*command[:-1]) else None


def commands(text):
    """Returns the words of each call of octavo in the code blocks. Lines are joined after backslashes and inside
    quotes."""
    lines = iter(re.findall(r"(?m)^(?:    |```\w*\n)(.*)$", text))
    for line in lines:
        if "from octavo import" in line:
            continue
        for call in re.findall(r"(?:^| |/)octavo ((?:[^&]|&&)*)", re.sub(r" #.*", "", line)):
            while call.endswith("\\") or call.count("'") % 2:
                call = call.rstrip("\\") + " " + re.sub(r" #.*", "", next(lines))
            yield shlex.split(re.sub(r"[][|]|\.\.\.", " ", call) if re.search(r"[][]", call) and "'" not in call else call)


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=id_of)
def test_the_program_knows_the_commands(page):
    unknown = []
    for name, *words in commands(page.read_text()):
        if name.startswith("-"):  # flags of the program itself
            continue
        nested = [("simulate", "calibrate"), ("plan", "live"), ("plan", "pools")]
        depth = 2 if name in ("bench", "model", "session") or (name, *words[:1]) in nested else 1
        for last in [name] if depth == 1 else words[0].split("|"):
            known = help_of(last) if depth == 1 else help_of(name, last)
            if known is None:
                unknown.append(" ".join([name, *words]))
                continue
            flags = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", known))
            unknown += [f"{name}: {flag}" for flag in (word.split("=")[0] for word in words)
                        if re.match(r"--?[a-zA-Z]", flag) and flag not in flags]
    assert not unknown


def test_generated_pages_are_up_to_date():
    done = subprocess.run([ROOT / "tools/docs_tables.py", "--check"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_every_page_is_on_the_site():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES)


def test_every_plugin_and_its_parameters_have_a_row():
    rows = [line for line in (ROOT / "docs/reference/plugins.md").read_text().splitlines() if line.startswith("|")]
    decide = ROOT / "src/fleet/decide"
    for name, make in re.findall(r'X\("([a-z0-9-]+)", (make_\w+), ', (decide / "plugin_list.h").read_text()):
        named = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        assert named, f"{name} has no row in docs/reference/plugins.md"
        file = next(file for file in decide.glob("**/*.cc") if f"> {make}(" in file.read_text())
        source = file.read_text()
        if file.parent == decide:  # parameters of several plugins
            source = source.partition(f"> {make}(")[2].partition("\n}\n")[0]
        for parameter in re.findall(r'\.read\w*\(\s*"(\w+)"', source):
            assert any(f"`{parameter}`" in row for row in named), f"{name}: {parameter} is missing in its row"
