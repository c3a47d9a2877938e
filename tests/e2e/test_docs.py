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
