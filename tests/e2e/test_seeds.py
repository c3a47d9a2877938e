"""Programs of well-known descriptions of vLLM (tests/seeds), with the import changed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from test_python import DEMO, LLM, ROOT, SamplingParams

SEEDS = ROOT / "tests/seeds"


def run(program, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "bindings/python")}
    done = subprocess.run([sys.executable, SEEDS / program, *arguments], env=environment, capture_output=True, text=True, timeout=120)
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
    """Without close(): at the program's exit."""
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
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(list(Path(tmp_path).rglob("*.kv"))) == int(done.stdout)
