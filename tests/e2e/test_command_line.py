"""The `octavo` program as a user meets it: flags, results, exit codes."""

import json
import os
import subprocess

import pytest

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")


def run(*arguments, stdin=""):
    return subprocess.run([OCTAVO, *arguments], input=stdin, capture_output=True, text=True, timeout=60)


def test_generate_is_repeatable_and_takes_suffixes():
    flags = ["generate", "-p", "Once upon a time", "--max-tokens", "12", "--temperature", "0"]
    plain = run(*flags)
    assert plain.returncode == 0 and plain.stdout.strip()
    small = run(*flags, "--max-model-len", "1k", "--max-num-batched-tokens", "1K", "--kv-cache-memory-bytes", "64M")
    assert small.returncode == 0, small.stderr
    assert small.stdout == plain.stdout


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


def test_chat_answers_from_standard_input():
    reply = run("chat", "--temperature", "0", "--max-tokens", "20", stdin="Where does Mira live?\n")
    assert reply.returncode == 0 and reply.stdout.strip()
    assert "TTFT" in reply.stderr


def test_model_inspect_and_bench():
    assert "Qwen3ForCausalLM" in run("model", "inspect").stdout
    bench = run("bench", "throughput", "--num-prompts", "4", "--input-len", "8", "--output-len", "8")
    assert bench.returncode == 0 and "tokens/s" in bench.stdout


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
    bench = run("bench", "step", "--batch-size", "2", "--input-len", "8", "--output-len", "4",
                "--output-json", str(result))
    assert bench.returncode == 0, bench.stderr
    step = json.loads(result.read_text())
    assert step["steps"] >= 4
    assert {"matmul", "attention", "sample", "everything else"} <= step["parts"].keys()
    assert sum(step["parts"].values()) == pytest.approx(step["seconds"])
    assert all(part in bench.stdout for part in step["parts"])


@pytest.mark.parametrize("arguments, says", [
    (["generate"], "prompt"),
    (["generate", "-p", ""], "prompt"),
    (["generate", "-p", "x", "--temperature", "3"], "temperature"),
    (["generate", "-p", "x", "--max-tokens", "0"], "max_tokens"),
    (["generate", "-p", "x", "--model", "no/such/folder"], "no/such/folder"),
    (["generate", "-p", "x", "--max-model-len", "100000"], "max_model_len"),
    (["generate", "-p", "x", "--num-gpu-blocks-override", "1", "--max-model-len", "2048"], "max_model_len"),
    (["generate", "-i", "no-such-file.txt"], "input"),
    (["serve", "--port", "notaport"], "--port"),
    (["serve", "--scheduling-policy", "foo"], "foo not in {fcfs,lpm,priority}"),
    (["serve", "--tool-call-parser", "foo"], "hermes"),
    (["serve", "--enable-auto-tool-choice"], "requires --tool-call-parser"),
    (["serve", "--reasoning-parser", "qwen3"], "needs the tokens <think> and </think>"),
    (["frobnicate"], "subcommand"),
])
def test_mistakes_exit_with_2_and_name_the_field(arguments, says):
    result = run(*arguments)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    assert says in result.stderr
    assert "terminate" not in result.stderr
