"""Pipeline stages, hosts, MPI: answers equal those of one engine, and requests end with an error when a rank or a
link fails."""

import base64
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import openai
import pytest
from conftest import PATIENCE, WORKER, eventually, fetch, free_port, http_client, running, serve, tiny
from slow_link import SlowLink
from test_engine_process import engines
from test_speculation import sum_of
from test_tensor_parallel import PROMPTS, answers, answers_again, client_of

FLAGS = ("--device", "cpu", "--dtype", "float32")
PROGRAM = "build/release/octavo"


@pytest.fixture(scope="module")
def one():
    with serve(*FLAGS) as base:
        return answers(base)


@pytest.fixture(scope="module")
def two():
    with serve(*FLAGS, "--tensor-parallel-size", "2") as base:
        return answers(base)


def test_two_stages_are_one_engine_to_the_bit(one):
    with serve(*FLAGS, "--pipeline-parallel-size", "2") as base:
        assert answers(base) == one


@pytest.mark.parametrize("stages", [3, 4])
def test_many_stages_are_one_engine_to_the_bit(stages, one):
    """Runs at least one stream per stage, so that every stage has a step in flight."""
    with serve(*FLAGS, "--pipeline-parallel-size", str(stages), "--distributed-timeout-seconds", "30") as base:
        assert answers(base) == one
        assert answers(base, PROMPTS * 4) == one * 4


def test_two_stages_of_two_ranks_are_two_ranks_to_the_bit(two):
    with serve(*FLAGS, "--pipeline-parallel-size", "2", "--tensor-parallel-size", "2") as base:
        assert answers(base) == two


@contextlib.contextmanager
def hosts(*flags, address="127.0.0.1", prefix=()):
    """Yields the base URL of host 0's server and the process of host 1. prefix: command that starts a program on host
    1."""
    shared = (*FLAGS, *flags, "--nnodes", "2", "--master-addr", address, "--master-port", str(free_port()))
    other = subprocess.Popen([*prefix, PROGRAM, "serve", *shared, "--node-rank", "1", "--headless"])
    try:
        with serve(*shared) as base:
            yield base, other
    finally:
        other.terminate()
        other.wait()


def test_two_hosts_give_the_bits_of_one(two):
    with hosts("--tensor-parallel-size", "2") as (base, _):
        assert answers(base) == two


def test_stages_on_two_hosts(one):
    with hosts("--pipeline-parallel-size", "2") as (base, _):
        assert answers(base) == one


def words(base):
    prompts = ["".join(chr(0x100 + (7 * i + k) % 100) for i in range(20 + k)) for k in range(4)]
    return [text for text, _ in answers(base, prompts)]


@pytest.mark.parametrize(
    ("name", "layouts"),
    [
        ("qwen3_moe", ["-tp 2", "-tp 2 -ep", "-tp 2 -pp 2 -ep"]),
        ("qwen3_next", ["-tp 2", "-pp 2", "-tp 2 -pp 2 -ep"]),  # delta nets and gated attention
        ("deepseek_v3", ["-tp 2", "-pp 2", "-pp 3", "-tp 2 -pp 2"]),  # latent attention
        ("mamba2", ["-tp 2", "-pp 2"]),
        ("jamba", ["-pp 2"]),
    ],
)
def test_families_in_layouts(name, layouts, tmp_path):
    flags = (tiny(name, tmp_path), "--served-model-name", "demo", *FLAGS)
    with serve(*flags) as base:
        one = words(base)
    assert sum(map(len, one)) > 100
    for layout in layouts:
        with serve(*flags, *layout.split()) as base:
            assert words(base) == one, layout
            assert words(base) == one, layout  # answers that use the prefix cache


@pytest.mark.parametrize(
    ("kind", "name", "config"),
    [
        ("models", "qwen3_next", {"method": "suffix"}),  # each rank keeps the states of draft tokens
        ("drafters", "deepseek_v3", {"method": "mtp", "num_speculative_tokens": 2}),
        ("models", "ministral3", {"method": "eagle", "model": "tests/data/drafters/eagle", "num_speculative_tokens": 3}),
        ("models", "ministral3", {"method": "medusa", "model": "tests/data/drafters/medusa-borrowing", "num_speculative_tokens": 2}),
        ("models", "hunyuan_v1_dense", {"method": "mlp_speculator", "model": "tests/data/drafters/mlp-speculator", "num_speculative_tokens": 3}),
    ],
)
def test_ranks_take_draft_tokens(kind, name, config, tmp_path):
    flags = (tiny(name, tmp_path, kind), "--served-model-name", "demo", *FLAGS, "-tp", "2")
    with serve(*flags) as base:
        plain = words(base)
    always = {"num_speculative_tokens_per_batch_size": [[1, 64, config.get("num_speculative_tokens", 24)]]}
    with serve(*flags, "--speculative-config", json.dumps(config | always)) as base:
        assert words(base) == plain
        assert eventually(lambda: sum_of(fetch(base + "/metrics"), "spec_decode_num_draft_tokens_total") > 0)


# deep rows and axes; images whose tokens attend to each other; tiles
@pytest.mark.parametrize("name", ["qwen3_vl", "gemma3", "idefics3"])
def test_ranks_see_images(name):
    case = Path("tests/data/vision") / name
    pixels = base64.b64encode((case / "rgb.png").read_bytes()).decode()
    parts = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{pixels}"}}, {"type": "text", "text": "What is it?"}]

    def seen(*flags):
        with serve(str(case), "--served-model-name", "see", *FLAGS, *flags) as base:
            replies = [client_of(base).chat.completions.create(
                model="see", messages=[{"role": "user", "content": content}], temperature=0, max_tokens=8, logprobs=True, extra_body={"ignore_eos": True})
                for content in (parts, parts, parts[1:])]
        return [[token.logprob for token in reply.choices[0].logprobs.content] for reply in replies]

    one, two = seen(), seen("-tp", "2")
    assert one[0] != one[2]
    for ours, theirs in zip(two, one):
        assert ours == pytest.approx(theirs, abs=1e-3)


def error_of_a_stream(base, after_first_piece):
    told = False
    try:
        with client_of(base).completions.create(
            model="demo", prompt="Once", n=16, max_tokens=1500, stream=True, extra_body={"ignore_eos": True}  # 16: takes long
        ) as stream:
            for _ in stream:
                if not told:
                    after_first_piece()
                told = True
    except openai.APIError as error:
        return str(error)
    return None


def answers_of_one(base):
    client_of(base).completions.create(model="demo", prompt="Once", max_tokens=2)


def status_of(url):
    return http_client.get(url).status_code


def ranks_of(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def test_a_killed_rank_of_another_host_ends_requests_and_comes_back(two):
    with hosts("--tensor-parallel-size", "2") as (base, other):
        assert answers(base) == two
        error = error_of_a_stream(base, lambda: os.kill(ranks_of(other)[0], signal.SIGKILL))
        assert "rank 1 has stopped" in error
        assert eventually(lambda: answers_again(base) == two, PATIENCE)


def test_a_rank_of_another_host_that_dies_while_nothing_runs_costs_no_request(two):
    with hosts("--tensor-parallel-size", "2") as (base, other):
        assert answers(base) == two
        before = engines(base)
        os.kill(ranks_of(other)[0], signal.SIGKILL)
        assert eventually(lambda: (now := engines(base)) and not set(now) & set(before), PATIENCE)
        assert eventually(lambda: answers_again(base) == two, PATIENCE)


def test_while_another_host_is_away_requests_are_told(two):
    flags = (*FLAGS, "--tensor-parallel-size", "2", "--nnodes", "2", "--master-port", str(free_port()))
    command = [PROGRAM, "serve", *flags, "--node-rank", "1", "--headless"]
    other = subprocess.Popen(command)
    try:
        with serve(*flags) as base:
            assert answers(base) == two
            other.terminate()
            other.wait()
            assert eventually(lambda: status_of(base + "/health") == 503)
            with pytest.raises(openai.APIStatusError, match="waits for its ranks on other hosts"):
                answers_of_one(base)
            other = subprocess.Popen(command)
            assert eventually(lambda: status_of(base + "/health") == 200, PATIENCE)
            assert answers(base) == two
    finally:
        other.terminate()
        other.wait()


def test_hosts_whose_options_differ_are_told():
    flags = [*FLAGS, "--tensor-parallel-size", "2", "--nnodes", "2", "--master-port", str(free_port())]
    first = subprocess.Popen([PROGRAM, "serve", "--port", "0", *flags])
    try:
        command = [PROGRAM, "serve", *flags, "--node-rank", "1", "--headless", "--max-model-len", "128"]
        other = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert other.returncode != 0 and "same model and options" in other.stderr + other.stdout
    finally:
        first.kill()
        first.wait()


@contextlib.contextmanager
def another_host():
    """Creates a network namespace and a link to it. Yields (address of this side, command prefix for the other side,
    this end of the link)."""
    ours, theirs = f"10.213.{WORKER}.1", f"10.213.{WORKER}.2"
    name, here = f"octavo{os.getpid()}", f"oct{os.getpid()}"
    run = lambda *words: subprocess.run(["ip", *words], check=True, capture_output=True)
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    try:
        run("netns", "add", name)
        run("link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", name)
    except subprocess.CalledProcessError as error:
        subprocess.run(["ip", "netns", "del", name], check=False)
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        run("address", "add", ours + "/24", "dev", here)
        run("link", "set", here, "up")
        run("-n", name, "address", "add", theirs + "/24", "dev", "eth0")
        run("-n", name, "link", "set", "eth0", "up")
        yield ours, ("ip", "netns", "exec", name), here
    finally:
        # the kernel removes a namespace and its link with a delay
        subprocess.run(["ip", "link", "del", here], check=False)
        subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.mark.parametrize("flag", ["--tensor-parallel-size", "--pipeline-parallel-size"])
def test_a_cut_link_ends_requests_and_the_server_comes_back_with_it(flag, one, two):
    expected = two if flag == "--tensor-parallel-size" else one
    with another_host() as (address, prefix, cable):
        flags = (flag, "2", "--distributed-timeout-seconds", "8")
        with hosts(*flags, address=address, prefix=prefix) as (base, other):
            assert eventually(lambda: answers_again(base) == expected)

            def cut():
                rank = ranks_of(other)[0]
                os.kill(rank, signal.SIGSTOP)  # the stream may not end before the link is cut
                subprocess.run(["ip", "link", "set", cable, "down"], check=True)
                os.kill(rank, signal.SIGCONT)

            error = error_of_a_stream(base, cut)
            assert "rank 1 has not answered for 8000 ms" in error
            subprocess.run(["ip", "link", "set", cable, "up"], check=True)
            assert eventually(lambda: answers_again(base) == expected, PATIENCE)


@pytest.mark.parametrize("flag", ["--tensor-parallel-size", "--pipeline-parallel-size"])
def test_a_slow_link_is_slow_and_one_that_loses_all_ends_requests(flag, one, two):
    """Delays and losses only cost time. If no packet arrives, requests end, and the server recovers with the link."""
    if not os.access("/dev/net/tun", os.W_OK):
        pytest.skip("no TUN devices here")
    whole = (two if flag == "--tensor-parallel-size" else one)[0][0]
    with another_host() as (_, prefix, _), SlowLink(prefix[-1], delay=0.01, loss=0.02) as link:

        def begins_as_expected(base):
            try:
                reply = client_of(base).completions.create(model="demo", prompt=PROMPTS[0], max_tokens=8, temperature=0)
            except openai.APIError:
                return False
            return len(reply.choices[0].text) > 8 and whole.startswith(reply.choices[0].text)

        with hosts(flag, "2", "--distributed-timeout-seconds", "8", address=link.address, prefix=prefix) as (base, _):
            before = link.passed
            assert eventually(lambda: begins_as_expected(base)) and link.passed > before
            link.loss = 1
            with pytest.raises(openai.APIError, match="rank 1 has not answered for 8000 ms"):
                client_of(base).completions.create(model="demo", prompt=PROMPTS[0], max_tokens=8, temperature=0)
            link.loss = 0.02
            assert eventually(lambda: begins_as_expected(base), PATIENCE)


@pytest.mark.skipif(
    shutil.which("mpirun") is None or not Path(PROGRAM).with_name("liboctavo_mpi.so").exists(), reason="no MPI here"
)
@pytest.mark.parametrize("flag", ["--tensor-parallel-size", "--pipeline-parallel-size"])
def test_under_mpirun(flag, one, two):
    launch = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2"
    with running(f"{launch} {PROGRAM} serve --port {{port}} {shlex.join(FLAGS)} {flag} 2") as (process, base):
        assert answers(base) == (two if flag == "--tensor-parallel-size" else one)
        process.terminate()
        process.wait(timeout=PATIENCE)


def test_what_does_not_fit_is_refused_by_name():
    for flags, said in [
        (("--nnodes", "2"), "nnodes: is 2, but the number of ranks, 1, must be a multiple of it"),
        (("--headless",), "--headless: needs --node-rank above 0"),
        (("--pipeline-parallel-size", "8"), "pipeline_parallel_size: is 8, but the model has"),
        (("--pipeline-parallel-size", "17"), "pipeline_parallel_size: must be at most 16, got 17"),
    ]:
        command = [PROGRAM, "serve", "--port", "0", "--device", "cpu", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert ended.returncode != 0 and said in ended.stderr, ended.stderr
