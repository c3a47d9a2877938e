"""The `octavo` program from the command line: flags, results, exit codes."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, serve, slow_model, tiny

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")


def run(*arguments, stdin="", timeout=PATIENCE):
    return subprocess.run([OCTAVO, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout)


def test_generate_is_repeatable_and_takes_suffixes():
    flags = ["generate", "-p", "Once upon a time", "--max-tokens", "12", "--temperature", "0"]
    plain = run(*flags)
    assert plain.returncode == 0 and plain.stdout.strip()
    small = run(*flags, "--max-model-len", "1k", "--max-num-batched-tokens", "1K", "--kv-cache-memory-bytes", "64M")
    assert small.returncode == 0, small.stderr
    assert small.stdout == plain.stdout


COMMANDS = [*"serve chat generate pick plan route sidecar simulate run-batch replay top tune".split(), "bench serve", "bench ops",
            "bench step", "bench sweep", "model inspect", "plan live"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_number_gets_the_limits_of_its_flag(command):
    shown = run(*command.split(), "--help-all").stdout
    flags = re.findall(r"^  (?:-\w,)?(--[\w-]+)\S* (?:NUMBER|[-\d.e+]+ to [-\d.e+]+)", shown, re.M)
    assert flags
    for flag in flags:
        refused = run(*command.split(), f"{flag}=x")
        assert refused.returncode == 2
        assert re.match(rf"{flag}: .*must be .*\bx$", refused.stderr.splitlines()[0]), refused.stderr


@pytest.mark.parametrize("variable", ["VLLM_LOGGING_LEVEL", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"])
def test_an_error_names_the_variable_that_sets_the_flag(variable):
    flag = {"VLLM_LOGGING_LEVEL": "--log-level", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "--allow-runtime-lora-updating"}[variable]
    for given in ([], [f"{flag}=wrong"]):
        done = subprocess.run([OCTAVO, "serve", *given], env=os.environ | {variable: "maybe"}, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and flag in done.stderr
        assert (variable in done.stderr) == (not given), done.stderr


def test_dummy_weights_need_no_files(tmp_path):
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"models/demo/{file}", tmp_path)
    missing = run("generate", "--model", str(tmp_path), "-p", "Once")
    assert missing.returncode != 0 and "contains neither model.safetensors" in missing.stderr
    flags = ["generate", "-p", "Once", "--max-tokens", "5", "--ignore-eos", "--temperature", "0", "--load-format", "dummy"]
    answers = [run(*flags, "--model", str(tmp_path)) for _ in range(2)]
    assert all(answer.returncode == 0 for answer in answers), answers
    assert answers[0].stdout == answers[1].stdout


def test_generate_reads_and_writes_json_lines(tmp_path):
    prompts = tmp_path / "in.jsonl"
    results = tmp_path / "out.jsonl"
    prompts.write_text('{"prompt": "Once", "max_tokens": 3}\n'
                       '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "n": 2}\n')
    assert run("generate", "-i", str(prompts), "-o", str(results)).returncode == 0
    first, second = map(json.loads, results.read_text().splitlines())
    assert first["index"] == 0 and len(first["choices"]) == 1
    assert first["usage"]["completion_tokens"] <= 3
    assert second["index"] == 1 and len(second["choices"]) == 2


def test_generate_survives_outputs_after_a_stop_string(tmp_path):
    prompts, results = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    prompts.write_text('{"prompt": "Once upon a time", "stop": [" "], "max_tokens": 200}\n' * 16)
    done = run("generate", "-i", str(prompts), "-o", str(results))
    assert done.returncode == 0, done.stderr
    choices = [json.loads(line)["choices"][0] for line in results.read_text().splitlines()]
    assert len(choices) == 16 and all(choice["finish_reason"] == "stop" and " " not in choice["text"] for choice in choices)


def test_chat_answers_from_standard_input():
    reply = run("chat", "--temperature", "0", "--max-tokens", "20", stdin="Where does Mira live?\n")
    assert reply.returncode == 0 and reply.stdout.strip()
    assert "TTFT" in reply.stderr


def test_examples_of_the_docs_print_a_sentence():
    docs = pathlib.Path(__file__).parent.parent.parent / "docs"
    pages = (docs / "start/five-minutes.md").read_text() + (docs / "guides/python.md").read_text()
    # prompts for the command and for the Python class
    prompts = set(re.findall(r'generate(?: -p |\(\[?)"([^"]+)"', pages))
    assert prompts
    for prompt in prompts:
        words = run("generate", "-p", prompt, "--max-tokens", "40", "--temperature", "0").stdout.split()
        assert len(words) > 20 and len(set(words)) > len(words) * 0.6, words


def test_the_small_mixture_of_experts_writes_sentences():
    answer = run("generate", "models/demo-moe", "-p", "Once upon a time", "--max-tokens", "40", "--temperature", "0")
    words = answer.stdout.split()
    assert len(words) > 20 and len(set(words)) > len(words) * 0.5, (words, answer.stderr)


def test_generate_says_which_answer_is_whose():
    one = run("generate", "-p", "Mira", "--max-tokens", "3")
    assert one.returncode == 0 and "---" not in one.stdout
    two = run("generate", "-p", "Mira", "-p", "Hugo", "--max-tokens", "3")
    assert two.returncode == 0, two.stderr
    assert [line for line in two.stdout.splitlines() if line.startswith("---")] == ["--- prompt 1", "--- prompt 2"]


def test_a_broken_chat_template_leaves_completions(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(os.path.join(os.path.dirname(__file__), "../../models/demo"), model)
    path = model / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": "{% if %}"}))
    completion = run("generate", "--model", str(model), "-p", "Mira", "--max-tokens", "3")
    assert completion.returncode == 0 and completion.stdout.strip()
    assert "chat requests are refused, since the model's chat template cannot be used" in completion.stderr
    chat = run("chat", "--model", str(model), stdin="Hello\n")
    assert chat.returncode == 2 and "the model has no chat template" in chat.stderr


def test_chat_commands_never_reach_the_model():
    reply = run("chat", "--temperature", "0", "--max-tokens", "5", stdin="/help\n/nonsense\n/reset\n/quit\nHello\n")
    assert reply.returncode == 0
    assert "/system TEXT" in reply.stdout and "the command /nonsense does not exist" in reply.stderr
    assert "TTFT" not in reply.stderr, "something was asked"


def test_chat_edits_lines_and_keeps_a_history(tmp_path):
    """On a terminal, backspace works, pasted text is one message, and the history survives the program."""
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
    terminal, inner = pty.openpty()
    chat = subprocess.Popen([OCTAVO, "chat", "--temperature", "0", "--max-tokens", "5"], stdin=inner, stdout=inner,
                            stderr=subprocess.PIPE, text=True, env=environment)
    os.close(inner)

    def wait_for(text):
        seen = ""
        while text not in seen:
            seen += os.read(terminal, 4096).decode(errors="replace")
        return seen

    wait_for("> ")
    os.write(terminal, b"Where does Mirx\x7fa live?\nAnd Hugo?\n")
    wait_for("\r\n\r\n> ")  # the prompt after the reply
    os.write(terminal, b"/quit\n")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the other end is closed
        pass
    assert chat.wait(timeout=PATIENCE) == 0
    assert chat.stderr.read().count("TTFT") == 1, "two pasted lines are one message"
    history = (tmp_path / "octavo" / "chat_history").read_text()
    assert "Where\\040does\\040Mira\\040live?" in history


def test_a_mistral_file_with_layer_types_has_windows_where_they_say(tmp_path):
    model = pathlib.Path(tiny("mistral", tmp_path))
    config = json.loads((model / "config.json").read_text())
    # layers with a window, by the type of the first layer
    windows = {None: 2, "sliding_attention": 1, "full_attention": 0}
    for first, count in windows.items():
        types = {} if first is None else {"layer_types": [first, "full_attention"]}
        (model / "config.json").write_text(json.dumps(config | types))
        inspected = run("model", "inspect", "--model", str(model)).stdout
        shown = [line for line in inspected.splitlines() if "query and" in line and "window 8" in line]
        assert sum(int(line.split()[1]) for line in shown) == count, inspected


def test_model_inspect_and_bench():
    inspected = run("model", "inspect").stdout
    assert "Qwen3ForCausalLM" in inspected and " 0.0 MB" not in inspected
    bench = run("bench", "throughput", "--num-prompts", "4", "--input-len", "8", "--output-len", "8")
    assert bench.returncode == 0 and "tokens/s" in bench.stdout


@pytest.mark.parametrize("layout", [(), ("--tensor-parallel-size", "2"), ("--data-parallel-size", "2")])
def test_bench_throughput_of_a_file(tmp_path, layout):
    file, result = tmp_path / "lines.jsonl", tmp_path / "result.json"
    file.write_text("".join(json.dumps({"prompt": f"{i} and so on", "output_tokens": 3}) + "\n" for i in range(4)))
    done = run("bench", "throughput", "models/demo", "--device", "cpu", "--kv-cache-memory-bytes", "32M", "--dataset-name", "custom",
               "--dataset-path", str(file), "--num-prompts", "6", "--output-json", str(result), *layout)
    assert done.returncode == 0, done.stderr
    read = json.loads(result.read_text())
    assert read["num_requests"] == 6 and 18 < read["total_num_tokens"] < 6 * 20


def test_bench_shows_on_a_terminal_how_far_it_is():
    here, there = pty.openpty()
    bench = subprocess.Popen([OCTAVO, "bench", "throughput", "--num-prompts", "200", "--output-len", "64"],
                             stdout=subprocess.DEVNULL, stderr=there)
    os.close(there)
    shown = b""
    try:
        while piece := os.read(here, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(here)
    assert bench.wait(PATIENCE) == 0 and b"/200.00 requests" in shown, shown


def test_chat_takes_a_url_without_a_scheme(server):
    done = run("chat", "--url", server.removeprefix("http://"), "--max-tokens", "8", stdin="Hello\n")
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


def test_bench_ops_writes_json():
    bench = run("bench", "ops", "--filter", "embed", "--repeats", "1", "--json")
    assert bench.returncode == 0, bench.stderr
    found = json.loads(bench.stdout)
    assert min(found["bytes_per_second"], found["f32_flops"], found["bf16_flops"], found["int8_ops"]) > 0
    assert found["cases"] and all(case["operation"].startswith("embed") and case["seconds"] > 0
                                  for case in found["cases"])
    assert run("bench", "ops", "--filter", "nothing of that name").returncode == 2


def test_bench_step_says_where_the_time_went(tmp_path):
    result = tmp_path / "step.json"
    bench = run("bench", "step", "--batch-size", "2", "3", "--input-len", "8", "--output-len", "4",
                "--output-json", str(result))
    assert bench.returncode == 0, bench.stderr
    batches = json.loads(result.read_text())["batches"]
    assert [step["batch_size"] for step in batches] == [2, 3]
    for step in batches:
        assert step["steps"] >= 4
        assert {"matmul", "attention", "sample", "everything else"} <= step["parts"].keys()
        assert sum(step["parts"].values()) == pytest.approx(step["seconds"])
        assert all(part in bench.stdout for part in step["parts"])
    crowded = run("bench", "step", "--batch-size", "2", "--input-len", "8", "--output-len", "4", "--max-model-len", "16",
                  "--num-gpu-blocks-override", "1")
    assert crowded.returncode == 2 and "at the end, 2 sequences have 24 tokens, but the KV cache holds only 16" in crowded.stderr


@pytest.mark.parametrize("arguments, says", [
    (["generate"], "prompt"),
    (["generate", "-p", ""], "prompt"),
    (["generate", "-p", "x", "--temperature", "3"], "temperature"),
    (["generate", "-p", "x", "--max-tokens", "0"], "max_tokens"),
    (["generate", "-p", "x", "--model", "no/such/folder"], "model: no/such/folder does not exist"),
    (["generate", "-p", "x", "no/such/folder"], "model: no/such/folder does not exist"),
    (["generate", "-p", "x", "--stop", "a", "no/such/folder"], "model: no/such/folder does not exist"),
    (["serve", "org/name@../x"], "a branch, a tag or a commit"),
    (["chat", "--url", "ftp://localhost:1"], "must be HOST:PORT"),
    (["generate", "-p", "x", "--max-model-len", "100000"], "max_model_len"),
    (["generate", "-p", "x", "--num-gpu-blocks-override", "1", "--max-model-len", "2048"], "max_model_len"),
    (["generate", "-i", "no-such-file.txt"], "input"),
    (["serve", "--port", "notaport"], "--port"),
    (["serve", "--scheduling-policy", "foo"], "foo not in {fcfs,lpm,priority}"),
    (["serve", "--tool-call-parser", "foo"], "hermes"),
    (["serve", "--port", "0", "--reasoning-parser", "qwen3"], "needs the tokens <think> and </think>"),
    (["serve", "--max-num-sqs", "4"], "did you mean --max-num-seqs?"),
    (["serve", "--device", "cpu", "--pipeline-parallel-size", "99"], "--pipeline-parallel-size"),
    (["serve", "--port", "0", "--enable-lora", "--lora-modules", "a=no/such/folder"], "no/such/folder"),
    (["serve", "--config", "no/such/file.yaml"], "cannot be read"),
    (["serve", "--max-model-len", "lots"], "--max-model-len"),
    (["serve", "--kv-cache-memory-bytes", "4x"], "--kv-cache-memory-bytes: must be a number from 0 on, such as 512M or 4GiB, got 4x"),
    (["serve", "--port", "0", "--kv-cache-memory-bytes", "64KiB", "--max-model-len", "2048"], " tokens: raise --kv-cache-memory-bytes or lower --max-model-len"),
    (["route", "--service-discovery", "static", "--static-backends", "http://a,http://b", "--session-key", "x"],
     "use --worker-urls, with a space between the URLs\n--session-key: is not supported: "),
    (["route", "--router-mode", "kv", "--worker-urls", "http://a"], "kv is kv_aware"),
    (["frobnicate"], "subcommand"),
])
def test_mistakes_exit_with_2_and_name_the_field(arguments, says):
    result = run(*arguments)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    assert says in result.stderr
    assert "terminate" not in result.stderr


def test_a_model_that_does_not_exist_is_the_only_message():
    result = run("serve", "--port", "0", "./nothing")
    assert result.returncode == 2 and result.stderr == "octavo: model: ./nothing does not exist\n"


def test_memory_that_does_not_exist_names_bytes_and_flag():
    result = run("serve", "--port", "0", "--kv-cache-memory-bytes", "900TiB")
    assert result.returncode != 0
    assert re.search(r"the KV cache needs \d+ bytes: set a lower --kv-cache-memory-bytes or --max-model-len", result.stderr)


def test_help_breaks_no_words():
    short, text = run("serve", "--help").stdout, run("serve", "--help-all").stdout
    assert len(short.splitlines()) < 120 and "--max-model-len" in short and "--numa-bind" not in short
    words = set(text.split())
    assert "--swap-space" not in words and "--max-model-len" in words
    assert not re.search(r"\bINT\b", text) and "(NONNEGATIVE)" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_command_takes_help_all():
    names = re.findall(r"(?m)^  ([a-z][a-z-]*) ", run("--help").stdout.split("Subcommands:")[1])
    assert {"serve", "route", "bench"} <= set(names)
    for command in [(), *((name,) for name in names), ("bench", "serve")]:
        result = run(*command, "--help-all")
        assert result.returncode == 0 and "--help" in result.stdout, (command, result.stderr)


def test_a_start_script_of_vllm_starts(tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("max-num-seqs: 8\nserved-model-name: [from-file]\nenable-chunked-prefill: true\n"
                      "max_model_len: 512\n")
    with serve("--config", str(config), "--max-model-len", "1k", "--trust-remote-code", "-tp", "1",
               "--pipeline-parallel-size=1", "--gpu_memory_utilization", "0.85", "--enable-chunked-prefill",
               "--disable-log-requests", "--disable-log-stats", "--swap-space", "4", "--load-format", "auto",
               "--uvicorn-log-level", "warning", "--compilation-config.level", "3", "-O2", "--enforce-eager",
               "--no-enable-prefix-caching", "--distributed-executor-backend", "mp", "--tokenizer-mode", "auto",
               "--max-num-seqs", "4", "--max-num-seqs", "16", "--limit-mm-per-prompt", '{"image": 0}',
               "--override-generation-config.temperature", "0", "--speculative-config.method", "ngram",
               "--speculative-config.num_speculative_tokens", "2", "--speculative-config.prompt_lookup_max",
               "2", "--api-server-count", "1", "--kv-cache-dtype", "auto", "--response-role", "assistant") as base:
        with urllib.request.urlopen(base + "/v1/models", timeout=PATIENCE) as response:
            card = json.load(response)["data"][0]
        assert card["id"] == "from-file" and card["max_model_len"] == 1000


def test_while_the_model_loads_the_server_says_so_and_can_be_stopped(tmp_path):
    process = subprocess.Popen([OCTAVO, "serve", "--port", "0", "--model", slow_model(tmp_path)],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        port = next(found.group(1) for line in process.stderr if (found := re.search(r"listening on .*:(\d+);", line)))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
        assert refused.value.code == 503
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
    finally:
        process.kill()


def test_vllms_variable_sets_the_key():
    process = subprocess.Popen([OCTAVO, "serve", "--port", "0"], env={**os.environ, "VLLM_API_KEY": "secret"},
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        port = next(found.group(1) for line in process.stderr if (found := re.search(r"ready on .*:(\d+) ", line)))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=PATIENCE)
        assert refused.value.code == 401
    finally:
        process.kill()
