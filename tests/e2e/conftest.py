"""Runs one `octavo serve` for all tests of this folder.

OCTAVO_SERVE: command that starts the server; `{port}` is replaced (default: build/release/octavo serve --port
{port}).

OCTAVO_BASE_URL: use a running server, which must have the flags below.
"""

import concurrent.futures
import contextlib
import json
import os
import random
import shlex
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import httpx
import openai
import pytest

# CI shares its machine and may pause for seconds, so tests wait for states, not for times. After this
# number of seconds without the state, a test fails.
PATIENCE = 120

# For requests without the OpenAI client, because httpx's default timeout is five seconds.
http_client = httpx.Client(timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0))

# Index of the pytest-xdist worker that runs this file, and the number of workers.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))

DEMO = str(Path(__file__).parents[2] / "models" / "demo")

# Each worker has separate ports, below those that the kernel assigns to outgoing connections.
PORTS = range(12_000, 32_000)[WORKER * 20_000 // WORKERS:(WORKER + 1) * 20_000 // WORKERS]
_next_port = random.SystemRandom().choice(PORTS)


# The slowest files, which run first: pytest-xdist distributes whole files.
LONGEST = ["test_tune", "test_ranks", "test_tensor_parallel", "test_data_parallel", "test_hub", "test_pick", "test_route_faults",
           "test_manifests", "test_command_line", "test_kv_transfer", "test_docs_commands", "test_kv_store", "test_plan_live",
           "test_kv_tier", "test_failures"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
        return True


def free_port(count=1):
    """Returns the first of `count` consecutive free ports. Never returns a port twice."""
    global _next_port
    while True:
        first = _next_port if _next_port + count <= PORTS.stop else PORTS.start
        _next_port = first + count
        if all(map(is_free, range(first, first + count))):
            return first


def fetch(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return response.read().decode()


@contextlib.contextmanager
def running(command, port=None, ready="/health"):
    """Runs a server until the end of the block, and yields its process and base URL once it is ready. `{port}` in the
    command is replaced by `port` or a free port. ready: path whose 200 shows that the server is ready; a router
    without workers does not return 200 for /health."""
    port = port or free_port()
    process = subprocess.Popen(shlex.split(command.replace("{port}", str(port))))
    base = f"http://127.0.0.1:{port}"
    try:
        def is_ready():
            assert process.poll() is None, "the server ended before it was ready"
            with contextlib.suppress(OSError):
                return fetch(base + ready) is not None

        assert eventually(is_ready, PATIENCE), "the server is not ready"
        yield process, base
    finally:
        process.kill()
        process.wait()


def serve_command(*flags):
    """Returns the command of a server, for running()."""
    command = os.environ.get("OCTAVO_SERVE", "build/release/octavo serve --port {port}")
    return shlex.join([*shlex.split(command), *flags])


@contextlib.contextmanager
def serve(*flags, port=None):
    """Runs a server with these flags until the end of the block, and yields its base URL."""
    with running(serve_command(*flags), port) as (process, base):
        yield base
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0


def npm(folder, *words):
    """Runs npm. Skips the test if its registry does not answer."""
    try:
        done = subprocess.run(["npm", *words, "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip("the npm registry does not answer in time")
    if any(code in done.stderr for code in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT")):
        pytest.skip("the npm registry does not answer")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def slow_engine(tmp_path_factory):
    """Returns the value of --executor for an engine whose steps take 0.1 s, so that an answer of 1800 tokens lasts longer
    than PATIENCE. Its output tokens are random."""
    timing = tmp_path_factory.mktemp("slow") / "timing.json"
    timing.write_text('{"fixed_us": 100000}')
    return f"simulated={timing}"


def slow_model(folder):
    """Returns a copy of the demo model whose load does not end: nobody writes its weights."""
    slow = Path(folder) / "slow"
    slow.mkdir()
    for file in Path(DEMO).iterdir():
        if file.suffix != ".safetensors":
            (slow / file.name).write_bytes(file.read_bytes())
    os.mkfifo(slow / "model.safetensors")
    return str(slow)


def tiny(name, folder, kind="models"):
    """Copies a golden checkpoint, and adds a tokenizer of single letters."""
    model = Path(folder) / name
    shutil.copytree(Path(__file__).parents[1] / "data" / kind / name, model)
    vocabulary = {chr(0x100 + i): i for i in range(128)}
    tokenizer = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    return str(model)


@pytest.fixture(scope="session")
def server():
    if base := os.environ.get("OCTAVO_BASE_URL"):
        yield base.rstrip("/")
        return
    with serve() as base:
        yield base


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(base_url=server + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id


def at_once(function, items):
    """Calls the function for each item on a separate thread. Returns the results, or raises the exception of a
    thread."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


def metric(server, name):
    for line in fetch(server + "/metrics").splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


def eventually(condition, seconds=PATIENCE):
    """Waits until the condition is true, because metrics lag by a step. Returns the last value."""
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(holds)


def at_rest(server):
    """Waits until the server is idle and its metrics show this, so that later changes belong to later requests."""
    idle = {"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0}
    return eventually(lambda: http_client.get(server + "/load").json() == {"server_load": 0}
                      and all(metric(server, name) == value for name, value in idle.items()))


def engine_of(server):
    """Returns the process id of the server's engine, or None between two engines."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if fields[0] != "Z" and int(fields[1]) == server.pid and b"--run-engine" in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None
