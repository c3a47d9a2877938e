"""Runs each recipe of docs/guides/recipes.md as written, with servers in the background, on ports of this test."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guides/recipes.md").read_text()
SECTIONS = dict(re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", PAGE))
PROGRAM = ROOT / "build/release/octavo"
PORT = re.compile(r"(?<=[:\s])(8\d{3}|30000|55\d\d)\b")

# Replaces the second after which a reader expects the events of both servers.
EVENTS_ARRIVE = "until [ $(curl -s localhost:30000/metrics | grep -c 'kv_events_total.* [2-9]$') = 2 ]; do sleep 0.1; done\n"

# Patterns that each recipe's output must contain.
SAYS = {
    "A key and TLS": [r'"id":"demo"', r"Mira lives"],
    "JSON that follows a schema": [r'\\"town\\":', r'"finish_reason":"stop"'],
    "Tools, streamed and strict": [r'"name":"get_weather"', r'"finish_reason":"tool_calls"', r"\[DONE\]"],
    "LoRA adapters": [r"Arr! Mira"],
    "Two replicas behind a router, with KV events": [r'"cached_tokens":\{"http[^}]*:\d\d+\}', r'kv_events_total\{worker="[^"]*"\} [2-9]'],
    "Replay traffic in the simulator": [r"cache_aware", r"1 replica meets the SLO"],
}


def blocks(section):
    return re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", section)


def script(section):
    """Returns the recipe as a bash script that starts servers in the background and waits for them."""
    section = section.replace("sleep 1\n", EVENTS_ARRIVE)
    ports = {port: str(free_port()) for port in sorted(set(PORT.findall(section)))}
    lines = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for language, text in blocks(PORT.sub(lambda m: ports[m[0]], section)):
        if language == "python":
            lines += [f"{sys.executable} - <<'PYTHON'", text, "PYTHON"]
        elif not language:
            for command in re.split(r"\n(?=octavo |curl |for |openssl |cat )", text.strip()):
                if not re.match(r"octavo (serve|route) ", command):
                    lines.append(command)
                    continue
                scheme = "https" if "--ssl-certfile" in command else "http"
                port = re.search(r"--port (\d+)", command)[1]
                lines += [f"{command} --host 127.0.0.1 >&2 &", f"until curl -sfk {scheme}://127.0.0.1:{port}/health >&2; do sleep 0.1; done"]
    return "\n".join(lines)


def test_every_recipe_has_a_line():
    runs = {name for name, section in SECTIONS.items() if any(language in ("", "python") for language, _ in blocks(section))}
    assert runs == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_the_recipe_runs(name, tmp_path):
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/octavo").write_text(f'#!/bin/sh\nexec {PROGRAM} "$@"\n')
    (tmp_path / "bin/octavo").chmod(0o755)
    done = subprocess.run(["bash", "-c", script(SECTIONS[name])], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    for pattern in SAYS[name]:
        assert re.search(pattern, done.stdout), (pattern, done.stdout, done.stderr)


def test_configuration_files_are_what_they_say():
    pages = [ROOT / "docs/guides/recipes.md", ROOT / "docs/guides/gateway.md", ROOT / "docs/guides/capacity.md", ROOT / "docs/reference/configuration.md"]
    found = [block for page in pages for block in blocks(page.read_text())]
    for language, text in found:
        if language == "yaml":
            assert yaml.safe_load(text)
        if language == "json":
            assert json.loads(text)
    assert len([language for language, _ in found if language in ("yaml", "json")]) >= 10
