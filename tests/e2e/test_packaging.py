"""The wheel that pyproject.toml describes, assembled from compiled files. `make wheel` builds a real one."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import free_port, http_client, running, serve

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/release"
sys.path.insert(0, str(ROOT / "tools"))

from wheel_contents import expected  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BACKEND = PROJECT["tool"]["scikit-build"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of packages with octavo as in the wheel. Binaries are links to those of the build."""
    site = tmp_path_factory.mktemp("site")
    for package in BACKEND["wheel"]["packages"]:
        shutil.copytree(ROOT / package, site / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    for component in BACKEND["install"]["components"]:
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix",
                        site / BACKEND["wheel"]["install-dir"]], check=True, stdout=subprocess.DEVNULL)
    return site


def run(site, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "OCTAVO_LIBRARY"} | {"PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, *arguments], cwd=site, env=environment, check=True, capture_output=True,
                          text=True, timeout=300).stdout


def test_the_wheel_holds_what_is_needed_and_nothing_else(site):
    assert {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()} == expected()
    assert set(BACKEND["build"]["targets"]) == {"octavo", "liboctavo", "liboctavo_grammar"}


def test_one_version_everywhere(site):
    provider = BACKEND["metadata"]["version"]
    version = re.search(provider["regex"], (ROOT / provider["input"]).read_text())["value"]
    assert run(site, "-m", "octavo", "--version").strip() == version
    assert run(site, "-c", "import octavo; print(octavo.__version__)").strip() == version


def test_the_console_script_becomes_the_program(site):
    module, function = PROJECT["project"]["scripts"]["octavo"].split(":")
    script = "import sys; sys.argv = ['octavo', 'generate', '-p', 'One rainy morning in', '--temperature', '0']; " \
             f"from {module} import {function}; {function}()"
    assert run(site, "-c", script).strip()


def test_the_demo_model_answers_without_a_checkout(site):
    """Simulates a machine that has only the wheel: the package finds nothing outside the folder."""
    program = "from octavo import LLM, SamplingParams\n" \
              "print(LLM().generate('Once upon a time', SamplingParams(max_tokens=8))[0].outputs[0].text)"
    assert run(site, "-c", program).strip()


@pytest.mark.skipif(not shutil.which("help2man"), reason="no help2man")
def test_every_command_has_a_manual_page(tmp_path):
    program = BUILD / "octavo"
    subprocess.run([ROOT / "tools/man_pages.sh", program, tmp_path], check=True, timeout=300)
    help_text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    commands = re.findall(r"^  ([a-z][a-z-]*) ", help_text.split("Subcommands:")[1], re.MULTILINE)
    assert {"serve", "route", "run-batch"} <= set(commands)
    pages = {path.name: gzip.decompress(path.read_bytes()).decode() for path in tmp_path.iterdir()}
    assert set(pages) == {"octavo.1.gz"} | {f"octavo-{command}.1.gz" for command in commands}
    assert "\n.B octavo\n\\fI\\,serve" in pages["octavo-serve.1.gz"]
    assert r"\-\-max\-model\-len" in pages["octavo-serve.1.gz"]


@pytest.mark.parametrize("file", ["Dockerfile", "Dockerfile.cuda"])
def test_the_image_knows_whether_its_server_answers(file):
    text = (ROOT / "deploy" / file).read_text()
    check = json.loads(re.search(r"HEALTHCHECK .*?\n +CMD (.*)", text)[1])
    assert "8000" in check[-1] and "USER 10001" in text

    def status(port):
        command = [*check[:-1], check[-1].replace("8000", str(port))]
        return subprocess.run(command, timeout=60, capture_output=True).returncode

    with serve() as base:
        assert status(base.rsplit(":", 1)[1]) == 0
    assert status(free_port()) != 0


def cuda_program(kind, folder):
    """Returns the program with CUDA: of the build tree, or of the tarball of `make package PRESET=cuda`."""
    if kind == "build":
        found = list((ROOT / "build/cuda").glob("octavo"))
    else:
        for tarball in (ROOT / "build/package-cuda").glob("octavo-*.tar.gz"):
            shutil.unpack_archive(tarball, folder)
        found = list(folder.glob("octavo-*/bin/octavo"))
    if not found:
        pytest.skip(f"no {kind} with CUDA")
    return found[0]


@pytest.mark.parametrize("kind", ["build", "tarball"])
def test_a_program_with_cuda_runs_on_a_machine_without_a_gpu(kind, tmp_path):
    """CUDA_VISIBLE_DEVICES hides the GPUs of a machine that has some."""
    program = cuda_program(kind, tmp_path)

    def octavo(*arguments):
        return subprocess.run([program, *arguments], env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}, capture_output=True,
                              text=True, timeout=300)

    missing = r"no NVIDIA driver for CUDA 13 is installed on this machine: install version \d+ or later|this machine has no NVIDIA GPU"
    page = octavo("doctor").stdout
    assert re.search(rf"^gpu +({missing})$", page, re.MULTILINE) and re.search(r"^nccl +\S", page, re.MULTILINE)
    alone = octavo("generate", "models/demo", "-p", "One rainy morning in", "--max-tokens", "8")
    assert alone.returncode == 0 and alone.stdout.strip() and re.search(missing, alone.stderr)
    refused = octavo("generate", "models/demo", "-p", "One", "--device", "cuda")
    assert refused.returncode == 2 and re.search(missing, refused.stderr)
    with running(f"env CUDA_VISIBLE_DEVICES= {program} serve models/demo --port {{port}}") as (_, base):
        reply = http_client.post(base + "/v1/completions", json={"model": "models/demo", "prompt": "One", "max_tokens": 4})
        assert reply.json()["usage"]["completion_tokens"] > 0
