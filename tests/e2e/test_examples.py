"""The examples of the C ABI in C, Go and Node. Go and Node are skipped if their tools are not installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import npm

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "bindings/examples"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with liboctavo under the names that a linker needs."""
    folder = tmp_path_factory.mktemp("lib")
    built = ROOT / "build/release/liboctavo.so.1"
    for name in ("liboctavo.so", "liboctavo.so.1"):
        (folder / name).symlink_to(built)
    return folder


@pytest.fixture(scope="module")
def expected():
    """Returns the server's answers to the requests of the examples."""
    return run("build/release/octavo", "generate", "-p", "One rainy morning in", "--max-tokens", "32", "--temperature", "0",
               cwd=ROOT)


def run(*command, cwd, **environment):
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_c(library, expected, tmp_path):
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", EXAMPLES / "stream.c", "-I", ROOT / "bindings/c",
        "-L", library, "-loctavo", "-o", tmp_path / "stream", cwd=tmp_path)
    assert run(tmp_path / "stream", cwd=ROOT, LD_LIBRARY_PATH=str(library)) in expected
    done = subprocess.run([tmp_path / "stream", "no/such/model"], env=os.environ | {"LD_LIBRARY_PATH": str(library)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no/such/model" in done.stderr


@pytest.mark.skipif(not shutil.which("go"), reason="no Go")
def test_go(library, expected):
    assert run("go", "run", EXAMPLES / "go/stream.go", cwd=ROOT, LD_LIBRARY_PATH=str(library),
               CGO_LDFLAGS=f"-L{library}") in expected


@pytest.mark.skipif(not shutil.which("npm"), reason="no npm")
def test_node(library, expected, tmp_path):
    for file in ("package.json", "stream.js"):
        shutil.copy(EXAMPLES / "node" / file, tmp_path)
    npm(tmp_path, "install")
    answer = run("node", "stream.js", cwd=tmp_path, OCTAVO_LIBRARY=str(library / "liboctavo.so.1"))
    assert answer in expected
