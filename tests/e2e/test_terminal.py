"""octavo top, doctor and completion on a terminal."""

import concurrent.futures
import json
import shutil
import subprocess
import threading
import urllib.request

import pytest

from conftest import eventually, fetch, http_client, running, serve

OCTAVO = "build/release/octavo"


def octavo(*arguments):
    return subprocess.run([OCTAVO, *arguments], capture_output=True, text=True, timeout=120)


def rows(output):
    """Returns {server: {column: value}} of a table whose cells contain no spaces."""
    head, *lines = output.replace("TTFT p50/p95", "TTFT").replace("ITL p50/p95", "ITL").splitlines()
    columns = head.split()
    return {cells[0]: dict(zip(columns, cells)) for cells in map(str.split, lines)}


def ask(base):
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": 200, "ignore_eos": True}).encode()
    request = urllib.request.Request(base + "/v1/completions", body, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=300).read()


def test_top_shows_what_a_server_does():
    with serve() as base:
        quiet = octavo("top", "--once", "--interval", "0.2", "--url", base)
        assert quiet.returncode == 0, quiet.stderr
        assert "\x1b" not in quiet.stdout
        row = rows(quiet.stdout)[base]
        assert row["RUN"] == row["WAIT"] == row["GEN/s"] == "0" and row["TTFT"] == "-"
        enough = threading.Event()

        def ask_until_enough():
            while not enough.is_set():
                ask(base)

        def sees_work():
            busy = rows(octavo("top", "--once", "--interval", "1", "--url", base).stdout)[base]
            return float(busy["REQ/s"]) > 0 and busy["TTFT"] != "-" and busy["GEN/s"] != "0"

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask_until_enough)
            try:
                assert eventually(sees_work), "no answer has ended between two looks"
            finally:
                enough.set()
            asking.result()


def test_top_lists_sessions():
    with serve() as base:
        assert "SESSION" not in octavo("top", "--once", "--interval", "0.2", "--url", base).stdout
        body = {"model": "demo", "prompt": "Once upon a time " * 20, "max_tokens": 4, "session_id": "agent-7"}
        http_client.post(base + "/v1/completions", json=body).raise_for_status()

        def listed():
            lines = octavo("top", "--once", "--interval", "0.2", "--url", base).stdout.splitlines()
            return [line.split() for line in lines if line.startswith("agent-7 ")]

        assert eventually(lambda: listed() and listed()[0][1] == "retained" and int(listed()[0][3]) > 0)


def test_top_shows_the_replicas_behind_a_router():
    with serve() as one, serve() as two:
        with running(f"{OCTAVO} route --worker-urls {one} {two} --port {{port}}") as (_, router):
            assert eventually(lambda: json.loads(fetch(router + "/readiness"))["healthy_workers"] == 2)
            table = rows(octavo("top", "--once", "--interval", "0.2", "--url", router).stdout)
    assert set(table) == {one, two, "all"}


def test_top_says_who_does_not_answer():
    result = octavo("top", "--once", "--interval", "0.1", "--url", "127.0.0.1:1")
    assert result.returncode == 0 and "127.0.0.1:1" in result.stdout and "connect" in result.stdout
    assert octavo("top", "--once", "--url", "ftp://x").returncode == 2
    assert octavo("top", "--interval", "0").returncode == 2


def test_doctor_says_what_there_is():
    result = octavo("doctor")
    assert result.returncode == 0, result.stderr
    for topic in ("processor", "instructions", "memory", "huge pages", "gpu", "open files", "model cache"):
        assert any(line.startswith(topic) for line in result.stdout.splitlines()), topic
    assert "To change:" in result.stdout or "Nothing to change." in result.stdout


@pytest.mark.parametrize("words, offered", [
    (["ser"], {"serve"}),
    (["bench", ""], {"ops", "serve", "step", "sweep", "throughput", "latency"}),
    (["serve", "--max-num-s"], {"--max-num-seqs"}),
    (["serve", "--device", ""], {"auto", "cpu", "cuda", "reference"}),
    (["serve", "models/de"], {"models/demo", "models/demo-draft", "models/demo-eagle3", "models/demo-lora", "models/demo-moe"}),
])
def test_bash_completes(words, offered):
    script = octavo("completion", "bash").stdout
    line = " ".join(f"'{word}'" for word in ["octavo", *words])
    program = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _octavo; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    result = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, timeout=60)
    assert set(result.stdout.split()) == offered, result.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell):
    script = octavo("completion", shell)
    assert script.returncode == 0 and "serve" in script.stdout
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=script.stdout, text=True, timeout=60).returncode == 0
