"""Checks the table of transformers' defaults for fields that a config.json omits."""

import pathlib
import subprocess
import sys


def test_table_is_what_transformers_says():
    tool = pathlib.Path(__file__).resolve().parents[2] / "tools/families/config_defaults.py"
    checked = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stderr
