"""Ranks and engines on GPUs. The program has an emulated GPU, and each process has the memory of one device: answers
equal those of one GPU, have the same bits each time, and continue when a process dies. Ranks exchange values through
host memory, or on their devices by a stand-in for NCCL."""

import base64
import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, at_once, eventually, free_port, http_client, running, tiny
from test_engine_process import processes
from test_tensor_parallel import client_of, ranks

PROGRAM = "build/release/octavo_emulated"
NCCL = Path("build/release/nccl_stand_in").absolute()
# The emulated device is slow, so steps are small, and a rank may take long.
FLAGS = ("--device", "cuda", "--dtype", "float32", "--served-model-name", "demo", "--distributed-timeout-seconds", "100",
         "--max-model-len", "96", "--max-num-seqs", "4", "--max-num-batched-tokens", "64")
# With a given number of blocks, an engine of one rank does not run its largest steps once to measure the memory.
ALONE = ("--num-gpu-blocks-override", "64")
PROMPTS = ["".join(chr(0x100 + (7 * i + k) % 100) for i in range(12 + k)) for k in range(3)]

pytestmark = pytest.mark.skipif(not Path(PROGRAM).exists(), reason="this build has no emulated GPU")


@contextlib.contextmanager
def on_gpus(*flags, nccl=False, variables=()):
    environment = ["env", f"LD_LIBRARY_PATH={NCCL}", *variables] if nccl else []
    command = shlex.join([*environment, PROGRAM, "serve", *FLAGS, *flags])
    with running(command + " --port {port}") as (process, base):
        yield base
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0


def answer(base, prompt, each=lambda: None):
    """Returns the text and the log-probabilities of a greedy answer. Calls `each` for every piece."""
    text, logprobs = "", []
    with client_of(base).completions.create(
        model="demo", prompt=prompt, max_tokens=10, temperature=0, logprobs=1, stream=True, extra_body={"ignore_eos": True}
    ) as stream:
        for chunk in stream:
            text += chunk.choices[0].text
            logprobs += chunk.choices[0].logprobs.token_logprobs if chunk.choices[0].logprobs else []
            each()
    return text, logprobs


def answers(base):
    return at_once(lambda prompt: answer(base, prompt), PROMPTS)


def nearly(one):
    return [(text, pytest.approx(logprobs, abs=1e-3)) for text, logprobs in one]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny("qwen3_moe", tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def one(model):
    with on_gpus(model, *ALONE) as base:
        found = answers(base)
    assert all(len(logprobs) == 10 for _, logprobs in found)
    return found


def workers(base, layout):
    return ranks(base) if "-dp" not in layout else processes("--engine-index", base.rsplit(":", 1)[1])


expected_of = {}  # answers of each layout, with any exchange of values


@pytest.mark.parametrize(("layout", "nccl"), [
    ("-tp 2", False), ("-pp 2", False), ("-tp 2 -pp 2", False), ("-tp 2 -ep", False), ("-dp 2", False),
    ("-tp 4", False), ("-tp 2", True), ("-pp 2", True), ("-tp 2 -pp 2", True), ("-tp 2 -ep", True), ("-tp 4", True),
])
def test_layouts_answer_as_one_gpu_and_survive_the_death_of_a_process(layout, nccl, model, one, capfd):
    with on_gpus(model, *layout.split(), *(ALONE if "-dp" in layout else ()), nccl=nccl) as base:
        if layout != "-dp 2":
            assert ("exchange values on their GPUs: NCCL 2.21.5" if nccl else "exchange values through host memory") in capfd.readouterr().err
        expected = answers(base)
        assert expected == (nearly(one) if "-tp" in layout else one)
        assert expected == expected_of.setdefault(layout, expected), "NCCL adds in the order of ranks"
        assert answers(base) == expected, "with the prefix cache"
        assert [answer(base, prompt) for prompt in PROMPTS] == expected, "alone"
        before = workers(base, layout)
        assert len(before) == {"-tp 2 -pp 2": 3, "-tp 4": 3, "-dp 2": 2}.get(layout, 1)
        killed = []

        def kill_once():
            if not killed:
                killed.append(before[-1])
                os.kill(before[-1], signal.SIGKILL)

        assert answer(base, PROMPTS[0], kill_once) == expected[0]
        assert eventually(lambda: len(now := workers(base, layout)) == len(before) and before[-1] not in now, PATIENCE)
        assert answers(base) == expected, "after the restart"


def test_a_rank_that_hangs_is_replaced_although_its_peers_wait_on_their_devices(model, one):
    with on_gpus(model, "-tp", "2", "--distributed-timeout-seconds", "30", nccl=True) as base:
        (rank,) = ranks(base)
        stopped = []

        def stop_once():
            if not stopped:
                stopped.append(rank)
                os.kill(rank, signal.SIGSTOP)

        assert [answer(base, PROMPTS[0], stop_once)] == nearly(one[:1])
        # If the server had sent the answer before its client began to read, only the next one finds the rank.
        assert [answer(base, PROMPTS[0])] == nearly(one[:1])
        assert eventually(lambda: rank not in ranks(base))


@pytest.mark.parametrize("layout", ["-pp 3", "-tp 2 -pp 2"])
def test_ranks_without_a_communicator_exchange_values_through_the_host(layout, model, one, capfd):
    with on_gpus(model, *layout.split(), nccl=True, variables=["NCCL_STAND_IN_FAILS=1"]) as base:
        assert "exchange values through host memory, so steps run without CUDA graphs: NCCL: ncclCommInitRank" in capfd.readouterr().err
        assert answers(base) == (nearly(one) if "-tp" in layout else one)


def start_with_a_rank_that_hangs(seconds, model, meanwhile=lambda port: None):
    """Starts ranks of which one never returns from ncclCommInitRank. Returns what the server writes before it ends."""
    port = str(free_port())
    environment = os.environ | {"LD_LIBRARY_PATH": str(NCCL), "NCCL_STAND_IN_HANGS": "1"}
    command = [PROGRAM, "serve", "--port", port, *FLAGS, "-tp", "2", "--distributed-timeout-seconds", str(seconds), model]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        meanwhile(port)
        _, written = server.communicate(timeout=PATIENCE)
    assert server.returncode != 0
    return written


def test_ranks_that_nccl_does_not_connect_end_the_start(model):
    written = start_with_a_rank_that_hangs(20, model)
    assert "ncclCommInitRank has not returned on rank 0, 1 for 20000 ms" in written, written


def test_a_rank_that_dies_before_nccl_connects_it_ends_the_start(model):
    def kill_rank(port):
        assert eventually(lambda: processes("--run-rank", port), PATIENCE)
        os.kill(processes("--run-rank", port)[0], signal.SIGKILL)

    written = start_with_a_rank_that_hangs(600, model, kill_rank)
    assert re.search(r"the process of rank 1 \(\d+\) has exited", written), written


def test_a_pause_may_be_longer_than_the_time_of_a_step(model, one):
    seconds = 20
    with on_gpus(model, "-pp", "2", "--distributed-timeout-seconds", str(seconds), "--server-dev-mode", nccl=True) as base:
        (rank,) = ranks(base)
        paused = []

        def pause_once():
            if not paused:
                paused.append(http_client.post(base + "/pause?mode=keep").status_code)
                time.sleep(seconds + 2)  # the time itself is tested
                paused.append(http_client.post(base + "/resume").status_code)

        assert answer(base, PROMPTS[0], pause_once) == one[0]
        assert paused == [200, 200]
        assert ranks(base) == [rank], "no rank was replaced"


def test_ranks_of_one_gpu_have_the_logprobs_of_a_cpu(model, one):
    with running(shlex.join([PROGRAM, "serve", *FLAGS, "--device", "cpu", model]) + " --port {port}") as (_, base):
        assert answers(base) == nearly(one)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-tp", "2", "-ep", "--enable-eplb"), "enable_eplb: moving experts is not supported with several ranks on GPUs"),
        (("-dp", "2", "-ep"), "device: is cuda; it cannot be combined with --enable-expert-parallel and --data-parallel-size 2"),
    ],
)
def test_what_does_not_work_on_gpus_is_refused_by_name(flags, said, model):
    ended = subprocess.run([PROGRAM, "serve", "--port", "0", *FLAGS, model, *flags], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode != 0 and said in ended.stderr, ended.stderr


def test_ranks_on_gpus_see_images():
    case = Path("tests/data/vision/qwen3_vl")
    pixels = base64.b64encode((case / "rgb.png").read_bytes()).decode()
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{pixels}"}}, {"type": "text", "text": "What is it?"}]

    def seen(*flags):
        with on_gpus(str(case), "--max-model-len", "512", "--max-num-batched-tokens", "512", *flags) as base:
            reply = client_of(base).chat.completions.create(
                model="demo", messages=[{"role": "user", "content": content}], temperature=0, max_tokens=4, logprobs=True, extra_body={"ignore_eos": True})
        return [token.logprob for token in reply.choices[0].logprobs.content]

    assert seen("-tp", "2") == pytest.approx(seen(*ALONE), abs=1e-3)


def test_ranks_on_gpus_take_draft_tokens(model, one):
    config = '{"method": "suffix", "num_speculative_tokens_per_batch_size": [[1, 64, 4]]}'
    with on_gpus(model, "-tp", "2", "--speculative-config", config, nccl=True) as base:
        assert answers(base) == nearly(one)
