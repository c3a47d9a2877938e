"""The table of what transformers takes for absent fields, where transformers is there to ask."""

import pathlib
import subprocess
import sys

import pytest


def test_table_is_what_transformers_says():
    pytest.importorskip("transformers")
    tool = pathlib.Path(__file__).resolve().parents[2] / "tools/families/config_defaults.py"
    checked = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stderr
