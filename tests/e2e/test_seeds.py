"""Well-known example programs of vLLM (tests/seeds), with changed imports."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import openai
from conftest import free_port, running
from test_python import DEMO, LLM, ROOT, SamplingParams

SEEDS = ROOT / "tests/seeds"


def run(program, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "bindings/python")}
    done = subprocess.run([sys.executable, SEEDS / program, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_disaggregated_prefill(tmp_path):
    lines = run("disaggregated_prefill.py", DEMO, str(tmp_path)).splitlines()
    found = [re.fullmatch(r"(\d+) of (\d+): (.*)", line) for line in lines]
    assert len(found) == 2 and all(found), lines
    for match in found:
        cached, prompt = int(match[1]), int(match[2])
        assert cached == (prompt - 1) // 16 * 16 > 0, "all full blocks come from the other engine"
    source = (SEEDS / "disaggregated_prefill.py").read_text()
    prompts = eval(re.search(r"PROMPTS = (\[.*?\n\])", source, re.S)[1])
    with LLM(model=DEMO, kv_cache_memory_bytes="64M") as llm:
        alone = llm.generate(prompts, SamplingParams(temperature=0, top_p=0.95))
    assert [match[3] for match in found] == [repr(output.outputs[0].text) for output in alone]


def test_what_is_pending_is_saved_at_the_end(tmp_path):
    """The program does not call close(), so pending blocks are saved at its exit."""
    program = f"""
from octavo import LLM, SamplingParams
from octavo.config import KVTransferConfig
tier = KVTransferConfig(kv_connector="OffloadingConnector", kv_role="kv_both", kv_connector_extra_config={{
    "secondary_tiers": [{{"type": "fs", "root_dir": {str(tmp_path)!r}}}], "cpu_bytes_to_use": 100_000_000}})
llm = LLM(model={DEMO!r}, kv_cache_memory_bytes="64M", kv_transfer_config=tier)
outputs = llm.generate([f"{{i}} " + "word " * 200 for i in range(4)], SamplingParams(max_tokens=1))
print(sum((len(o.prompt_token_ids) - 1) // 16 for o in outputs))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "bindings/python")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(list(Path(tmp_path).rglob("*.kv"))) == int(done.stdout)


@contextlib.contextmanager
def two_nodes(api_node, headless_command):
    """Runs a program of tests/seeds on one node, and a headless node. Yields the base URL."""
    small = ["--kv-cache-memory-bytes", "16M", "--cpu-threads", "1", "--max-model-len", "256", "--device", "cpu"]
    environment = {"PATH": f"{ROOT}/build/release:{os.environ['PATH']}", "MODEL": DEMO, "MASTER_IP": "127.0.0.1", "RPC_PORT": str(free_port())}
    words = [part.replace("$RPC_PORT", environment["RPC_PORT"]) for part in headless_command]
    headless = subprocess.Popen([*words, *small], env=os.environ | environment)
    flags = " ".join(small)
    settings = " ".join(f"{name}={value}" for name, value in environment.items())
    try:
        with running(f"env {settings} bash {SEEDS / api_node} {flags} --port {{port}}") as (_, base):
            yield base
    finally:
        headless.terminate()
        headless.wait()


def answers_of(base, engines):
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
    return {client.completions.create(model=DEMO, prompt="One rainy morning in", max_tokens=8, temperature=0,
                                      extra_headers={"X-data-parallel-rank": str(engine)}).choices[0].text for engine in range(engines)}


def test_headless_node_has_the_first_engines():
    """Four engines with two ranks each on two nodes. Engines 0 and 1 run on the headless node."""
    with two_nodes("data_parallel_api_node.sh", ["bash", str(SEEDS / "data_parallel_headless_node.sh")]) as base:
        assert len(answers_of(base, 4)) == 1, "all engines answer, with the same text"


def test_a_server_without_engines_of_its_own():
    headless = ["octavo", "serve", DEMO, "--headless", "--data-parallel-size", "2", "--data-parallel-size-local", "2", "--data-parallel-rpc-port", "$RPC_PORT"]
    headless[0] = str(ROOT / "build/release/octavo")
    with two_nodes("data_parallel_api_only_node.sh", headless) as base:
        assert len(answers_of(base, 2)) == 1
