"""`octavo bench serve` and `bench sweep` with a server. The counts of `bench serve` equal those of the server's
metrics."""

import json
import subprocess

from conftest import at_rest, eventually, metric

OCTAVO = "build/release/octavo"


def bench(server, *flags, command="serve"):
    return subprocess.run(
        [OCTAVO, "bench", command, "--base-url", server, *flags], capture_output=True, text=True, timeout=240
    )


def test_counts_are_the_servers(server, tmp_path):
    names = ["vllm:request_prompt_tokens_sum", "vllm:request_generation_tokens_sum"]
    assert at_rest(server), "what others have asked for counts, too"
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
    # The warm-up request equals the first measured request.
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
    assert "waiting" not in nobody.stderr
    later = bench("http://127.0.0.1:1", "--ready-check-timeout-sec", "1")
    assert later.returncode == 1 and "waiting up to 1 s for " in later.stderr.splitlines()[0]
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


SHORT = "--random-input-len 8 --random-output-len 2 --seconds 1".split()


def test_a_sweep_finds_a_rate_within_the_limits(server, tmp_path):
    out, plot = tmp_path / "sweep.json", tmp_path / "sweep.svg"
    done = bench(
        server,
        *[*SHORT, "--slo", "ttft:60000", "tpot:60000", "--request-rates", "40", "20"],
        *["--output-json", str(out), "--plot", str(plot)],
        command="sweep",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["best_request_rate"] == 40 and result["slo"] == ["ttft:60000", "tpot:60000"]
    assert [(r["request_rate"], r["completed"], r["good_share"]) for r in result["rounds"]] == [(40, 40, 1), (20, 20, 1)]
    assert "best: 40.00 requests/s" in done.stdout and "<svg" in plot.read_text()


def test_a_sweep_says_that_no_rate_is_good(server, tmp_path):
    out = tmp_path / "sweep.json"
    done = bench(
        server,
        *[*SHORT, "--slo", "e2el:0.001", "--first-rate", "256", "--output-json", str(out)],
        command="sweep",
    )
    assert done.returncode == 0, done.stderr
    assert "at no rate were 99 %" in done.stdout
    result = json.loads(out.read_text())
    assert result["best_request_rate"] is None and [r["good_share"] for r in result["rounds"]] == [0] * len(result["rounds"])
    assert bench(server, command="sweep").returncode == 2
