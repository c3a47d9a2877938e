"""The unchanged code blocks of docs/guides/python.md for LangChain, LlamaIndex and DSPy; skipped if a package is
missing."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/guides/python.md"
BLOCKS = re.findall(r"(?m)(?:^    .*\n)+", PAGE.read_text().split("## LangChain")[1].split("\n## ")[0])
PACKAGES = ["langchain_openai", "llama_index.llms.openai_like", "dspy"]


@pytest.mark.parametrize("package, block", list(zip(PACKAGES, BLOCKS, strict=True)), ids=PACKAGES)
def test_the_block_prints_an_answer(server, package, block, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path))
    pytest.importorskip(package)
    code = "\n".join(line[4:] for line in block.splitlines())
    exec(compile(code.replace("http://localhost:8000", server), str(PAGE), "exec"), {})
    assert capsys.readouterr().out.strip()
