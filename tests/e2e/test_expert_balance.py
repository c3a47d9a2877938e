"""Experts move between ranks while streams run. The bits equal those of experts that do not move."""

import json
import shlex
import subprocess

import pytest
from conftest import serve, serve_command
from test_tensor_parallel import answers

FLAGS = ("models/demo-moe", "--served-model-name", "demo", "--tensor-parallel-size", "2", "--device", "cpu",
         "--enable-expert-parallel")
OFTEN = {"window_size": 5, "step_interval": 7, "num_redundant_experts": 2}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_experts_move_and_no_bit_changes(dtype, capfd):
    flags = (*FLAGS, "--dtype", dtype)
    with serve(*flags) as base:
        still = answers(base)
    capfd.readouterr()
    for at_once in (True, False):
        config = json.dumps(OFTEN | {"use_async": at_once, "log_balancedness": True})
        with serve(*flags, "--enable-eplb", "--eplb-config", config) as base:
            for _ in range(2):
                assert answers(base) == still
        out = "".join(capfd.readouterr())
        moved = [line for line in out.splitlines() if "EPLB: balancedness" in line and " when 0 of " not in line]
        assert moved, out


def test_what_cannot_be_balanced_is_refused():
    def error(*flags):
        command = [*shlex.split(serve_command(*flags).replace("{port}", "0"))]
        return subprocess.run(command, capture_output=True, text=True, timeout=600).stderr

    assert "enable_eplb" in error("--device", "cpu", "--enable-eplb")
    assert "has no experts" in error("--tensor-parallel-size", "2", "--device", "cpu", "--enable-expert-parallel",
                                     "--enable-eplb")
    assert "8 experts on 2 ranks allow at most 8" in error(*FLAGS, "--enable-eplb", "--eplb-config",
                                                      '{"num_redundant_experts": 9}')
    assert "step_interval must be an integer in [1, 10000000]" in error(*FLAGS, "--eplb-config", '{"step_interval": 0}')
