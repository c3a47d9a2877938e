"""Links in the documentation lead somewhere, and every page is on the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/*.md"))


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"(?m)^    .*$", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """What GitHub and MkDocs call its headings."""
    found = set()
    for heading in re.findall(r"(?m)^#+ +(.+?) *$", page.read_text()):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-"))
    return found


def test_failures_are_of_tests_that_exist():
    """Every test that docs/failures.md names."""
    sources = "".join(path.read_text() for path in [*ROOT.glob("src/**/*_test.cc"), *ROOT.glob("tests/*.cc")])
    unit = {f"{suite}.{name}" for suite, name in re.findall(r"TEST(?:_[FP])?\((\w+),\s*(\w+)", sources)}
    end_to_end = set(re.findall(r"def (test_\w+)", "".join(p.read_text() for p in ROOT.glob("tests/e2e/*.py"))))
    programs = {path.stem for path in [*ROOT.glob("src/**/*_fuzz.cc"), *ROOT.glob("src/**/*_soak.cc")]}
    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"(?m)^\| [SO]\d\d .*$", (ROOT / "docs/failures.md").read_text())))
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


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
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


def test_every_page_is_on_the_site():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M))
    assert listed == {page.name for page in PAGES}


def test_the_tests_that_failures_names_exist():
    page = (ROOT / "docs" / "failures.md").read_text()
    unit = set()
    for file in [*ROOT.glob("src/**/*_test.cc"), *ROOT.glob("tests/*.cc")]:
        for suite, name in re.findall(r"^TEST\w*\((\w+),\s*(\w+)\)", file.read_text(), flags=re.M):
            unit |= {f"{suite}.{name}", f"{suite}.*"}
    e2e = {name for file in ROOT.glob("tests/e2e/*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)}
    fuzzers = {file.stem for file in ROOT.glob("src/**/*_fuzz.cc")}
    named = set(re.findall(r"`(\w+\.[\w*]+|test_\w+|\w+_fuzz)`", page))
    missing = {name for name in named if name not in unit | e2e | fuzzers}
    assert not missing
    rows = re.findall(r"^\| ([SO]\d\d) ", page, flags=re.M)
    assert rows == [f"S{i:02}" for i in range(1, 29)] + [f"O{i:02}" for i in range(1, 31)]
