"""The page that the binary serves at `/` equals the build of web/, and is small. The comparison is skipped without
npm or its registry."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import npm

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.skipif(not shutil.which("npm"), reason="no npm")
def test_dist_is_what_the_sources_build_to(tmp_path):
    web = tmp_path / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm(web, "ci", "--ignore-scripts")
    built = subprocess.run(["npm", "run", "build"], cwd=web, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    for name in ("index.html", "login.html"):
        assert (web / "dist" / name).read_bytes() == (WEB / "dist" / name).read_bytes(), f"run make page: {name}"


def test_what_goes_over_the_wire_is_small():
    assert sum(path.stat().st_size for path in (WEB / "dist").iterdir()) <= 200_000
