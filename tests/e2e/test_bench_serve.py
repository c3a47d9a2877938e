"""`octavo bench serve` against a server: its counts are those of the server's own metrics."""

import json
import subprocess

from conftest import eventually, metric

OCTAVO = "build/release/octavo"


def bench(server, *flags):
    return subprocess.run(
        [OCTAVO, "bench", "serve", "--base-url", server, *flags], capture_output=True, text=True, timeout=120
    )


def test_counts_are_the_servers(server, tmp_path):
    names = ["vllm:request_prompt_tokens_sum", "vllm:request_generation_tokens_sum"]
    before = [metric(server, name) for name in names]
    done = bench(
        server,
        *"--num-prompts 12 --random-input-len 40 --random-output-len 9 --random-range-ratio 0.5 --ignore-eos".split(),
        *"--request-rate 100 --max-concurrency 4 --goodput e2el:60000 --metadata commit=abc".split(),
        *"--save-result --save-detailed --result-filename result.json --result-dir".split(),
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert "Mean TTFT (ms):" in done.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["completed"] == 12 and result["failed"] == 0 and result["commit"] == "abc"
    assert result["request_goodput"] == result["request_throughput"]
    assert len(result["itls"]) == 12 and result["errors"] == [""] * 12
    # The trial request before the measured ones asks for what the first of them asks for.
    lengths = [result["input_lens"], result["output_lens"]]
    assert result["total_input_tokens"] == sum(lengths[0])
    for name, old, counts in zip(names, before, lengths):
        assert eventually(lambda: metric(server, name) - old == sum(counts) + counts[0])


def test_chat_with_prompts_from_a_file(server, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Tell me a story.", "output_tokens": 5}\n{"prompt": "Say hello."}\n')
    done = bench(
        server,
        *"--backend openai-chat --num-prompts 4 --dataset-name custom --custom-output-len 6".split(),
        *["--dataset-path", str(prompts), "--save-result", "--result-dir", str(tmp_path / "new")],
    )
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "new").iterdir()
    result = json.loads(file.read_text())
    assert result["completed"] == 4 and 4 <= result["total_output_tokens"] <= 22


def test_what_is_wrong_is_said_once(server):
    refused = bench(server, "--num-prompts", "3", "--random-input-len", "100000")
    assert refused.returncode == 2 and "the first request failed: HTTP 400" in refused.stderr
    nobody = bench("http://127.0.0.1:1", "--ready-check-timeout-sec", "0")
    assert nobody.returncode == 1 and "Connection refused" in nobody.stderr
    for flags, word in [
        (["--goodput", "itl:3"], "goodput"),
        (["--request-rate", "-1"], "request-rate"),
        (["--dataset-name", "custom"], "dataset-path"),
        (["--ramp-up-strategy", "linear"], "ramp-up"),
        (["--extra-body", "[]"], "extra-body"),
        (["--percentile-metrics", "speed"], "percentile-metrics"),
    ]:
        done = bench(server, *flags)
        assert done.returncode == 2 and word in done.stderr, flags
