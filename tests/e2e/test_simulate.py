"""`octavo simulate`: an hour of recorded traffic in seconds, with the same output bytes each time."""

import json
import os
import shutil
import subprocess
import time
import xml.etree.ElementTree

import openai
import pytest

from conftest import eventually, free_port, metric, serve

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")


def simulate(*arguments):
    return subprocess.run([OCTAVO, "simulate", *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.fixture
def trace(tmp_path):
    """Conversations of 30 users in Mooncake's format. Each turn contains all earlier ones."""
    lines = []
    for turn in range(6):
        for user in range(30):
            blocks = turn + 4
            lines.append({"timestamp": turn * 20000 + user * 600, "input_length": blocks * 512 - 100,
                          "output_length": 60, "hash_ids": [user * 100 + b for b in range(blocks)]})
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_policies_are_compared_in_numbers_and_a_picture(trace, tmp_path):
    result, plot = tmp_path / "result.json", tmp_path / "plot.svg"
    done = simulate("--trace", trace, "--replicas", 7, "--policy", "round_robin", "cache_aware", "--goodput",
                    "ttft:100", "--output-json", result, "--plot", plot)
    assert done.returncode == 0, done.stderr
    blind, aware = json.loads(result.read_text())
    assert (blind["policy"], aware["policy"]) == ("round_robin", "cache_aware")
    for one in (blind, aware):
        assert one["completed"] == 180 and one["failed"] == 0
        assert one["total_output_tokens"] == 180 * 60
        assert 0 < one["median_ttft_ms"] <= one["p90_ttft_ms"] <= one["p99_ttft_ms"]
        assert f"{one['p99_itl_ms']:.3f}" in done.stdout
    assert aware["prefix_cache_hit_rate"] > blind["prefix_cache_hit_rate"] + 0.2
    assert aware["mean_ttft_ms"] < blind["mean_ttft_ms"]
    picture = plot.read_text()
    xml.etree.ElementTree.fromstring(picture)
    assert picture.count("<polyline") == 8 and "cache_aware" in picture


def test_the_same_seed_gives_the_same_bytes(trace, tmp_path):
    def run(name, seed):
        flags = ["--trace", trace, "--policy", "random", "--copies", 3, "--seed", seed]
        files = [tmp_path / f"{name}.json", tmp_path / f"{name}.svg"]
        assert simulate(*flags, "--output-json", files[0], "--plot", files[1]).returncode == 0
        return [file.read_bytes() for file in files]

    assert run("a", 7) == run("b", 7)
    assert run("c", 8) != run("d", 7)


def test_steps_measured_here_time_a_simulation(trace, tmp_path):
    timing, result = tmp_path / "timing.json", tmp_path / "result.json"
    done = simulate("calibrate", "models/demo", "--max-model-len", 256, "--max-num-seqs", 4, "--rounds", 2,
                    "--cpu-threads", 1, "--output-json", timing)
    assert done.returncode == 0, done.stderr
    assert "held out:" in done.stdout
    measured = json.loads(timing.read_text())
    assert set(measured) == {"fixed_us", "weights_us", "token_us", "kv_token_us", "pair_us"}
    assert min(measured.values()) >= 0 < max(measured.values())
    done = simulate("--trace", trace, "--timing", timing, "--num-gpu-blocks-override", "4k", "--policy", "round_robin",
                    "--output-json", result)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(result.read_text())
    # A step of one token takes exactly the measured time.
    assert one["median_itl_ms"] >= (measured["fixed_us"] + measured["weights_us"]) * 1e-3 - 0.01
    assert simulate("calibrate", "models/demo", "--max-model-len", 8).returncode == 2
    assert "trace" in simulate("--replicas", 2).stderr


def test_a_replica_is_described_by_files(trace, tmp_path):
    timing, result = tmp_path / "timing.json", tmp_path / "result.json"
    timing.write_text('{"fixed_us": 5000, "token_us": 0.001}')
    done = simulate("--trace", trace, "--timing", timing, "--num-gpu-blocks-override", "4k", "--policy",
                    "least_loaded", "--output-json", result)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(result.read_text())
    assert abs(report["median_itl_ms"] - 5) < 0.1


PICKER = """
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: precise-prefix-cache-producer
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
- type: queue-scorer
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
"""


def test_made_up_sessions_go_by_a_pickers_configuration(tmp_path):
    shape, picker, result = tmp_path / "shape.json", tmp_path / "precise.yaml", tmp_path / "result.json"
    shape.write_text(json.dumps({"seconds": 300, "session_rate": 2, "daily_swing": 0.5, "day_seconds": 300, "groups": 20,
                                 "group_tokens": 6144, "input_tokens": 1200, "output_tokens": 50, "spread": 0.2}))
    picker.write_text(PICKER)
    done = simulate("--traffic", shape, "--policy", "round_robin", "--picker-config", picker, "--kv-events",
                    "--num-gpu-blocks-override", "3k", "--output-json", result)
    assert done.returncode == 0, done.stderr
    blind, precise = json.loads(result.read_text())
    assert (blind["policy"], precise["policy"]) == ("round_robin", "precise")
    assert blind["completed"] == precise["completed"] > 400
    assert precise["prefix_cache_hit_rate"] > blind["prefix_cache_hit_rate"] + 0.2
    assert "session_rate" in simulate("--traffic", shape_of(tmp_path, session_rate=0)).stderr
    assert "--traffic" in simulate("--traffic", shape, "--trace", shape).stderr


def test_the_shipped_picker_leaves_no_replica_idle(tmp_path):
    shape, result = tmp_path / "shape.json", tmp_path / "result.json"
    shape.write_text(json.dumps(dict(users=64, turns=5, think_seconds=0.6, groups=3, group_tokens=2048, input_tokens=512,
                                     output_tokens=24, spread=0.3)))
    done = simulate("--traffic", shape, "--replicas", 4, "--policy", "round_robin", "--picker-config", "deploy/picker.yaml",
                    "--num-gpu-blocks-override", 6000, "--output-json", result)
    assert done.returncode == 0, done.stderr
    blind, shipped = json.loads(result.read_text())
    assert shipped["p90_ttft_ms"] <= blind["p90_ttft_ms"]
    assert shipped["min_utilization"] > 0.5


def test_prompts_are_computed_apart(trace, tmp_path):
    result = tmp_path / "result.json"
    flags = ["--trace", trace, "--speedup-ratio", 20, "--replicas", 2, "--policy", "least_loaded", "--output-json", result]
    assert simulate(*flags).returncode == 0
    (together,) = json.loads(result.read_text())
    done = simulate(*flags, "--prefill-replicas", 2, "--prefill-policy", "cache_aware", "--kv-link-latency", 50000)
    assert done.returncode == 0, done.stderr
    (apart,) = json.loads(result.read_text())
    assert apart["prefill_replicas"] == 2 and apart["completed"] == together["completed"] == 180
    assert 0 < apart["mean_prefill_utilization"] < 1
    assert apart["median_ttft_ms"] > 50
    assert apart["p99_itl_ms"] < together["p99_itl_ms"], "no prompt is computed between two tokens"
    done = simulate(*flags, "--prefill-replicas", 1, "--local-prefill-tokens", "131072")
    assert done.returncode == 0, done.stderr
    assert json.loads(result.read_text())[0]["mean_prefill_utilization"] == 0, "every prompt stays"
    assert simulate(*flags, "--prefill-policy", "nobody").returncode == 2


def test_users_wait_for_their_answers(tmp_path):
    shape, result = tmp_path / "shape.json", tmp_path / "result.json"
    shape.write_text(json.dumps({"users": 4, "user_sessions": 2, "turns": 3, "think_seconds": 0, "input_tokens": 500,
                                 "output_tokens": 100}))
    done = simulate("--traffic", shape, "--policy", "round_robin", "--output-json", result)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(result.read_text())
    assert one["completed"] == 4 * 2 * 3 and one["max_concurrent_requests"] <= 8
    assert "copies" in simulate("--traffic", shape, "--copies", 2).stderr


def shape_of(folder, **fields):
    path = folder / "bad.json"
    path.write_text(json.dumps(fields))
    return path


@pytest.mark.parametrize("flags, said", [
    (["--trace", "/nowhere/trace.jsonl"], "/nowhere/trace.jsonl"),
    (["--trace", "TRACE", "--policy", "nobody"], "--policy"),
    (["--trace", "TRACE", "--device", "/nowhere/device.json"], "/nowhere/device.json"),
    (["--trace", "TRACE", "--model", "llama-3.1-70b", "-t", "1"], "leave no space"),
    (["--trace", "TRACE", "--goodput", "itl:5"], "goodput"),
    (["--trace", "TRACE", "--trace-block-size", "256"], "hash_ids"),
    (["--trace", "TRACE", "--max-num-batched-tokens", "100"], "max_num_batched_tokens"),
])
def test_mistakes_are_named(trace, flags, said):
    done = simulate(*[trace if flag == "TRACE" else flag for flag in flags])
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_server_stands_in_for_a_model(tmp_path):
    """A folder with the configuration and the tokenizer is enough, without weights. Each step takes its computed
    time."""
    model, timing = tmp_path / "model", tmp_path / "timing.json"
    model.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"models/demo/{name}", model)
    timing.write_text('{"fixed_us": 20000}')
    with serve("--model", str(model), "--executor", f"simulated={timing}") as base:
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
        name = client.models.list().data[0].id
        ask = {"model": name, "prompt": "Once upon a time", "max_tokens": 12, "seed": 3,
               "extra_body": {"ignore_eos": True}}
        began = time.monotonic()
        answer = client.completions.create(**ask)
        assert time.monotonic() - began >= 12 * 0.02
        assert answer.usage.completion_tokens == 12 and answer.choices[0].finish_reason == "length"
        streamed = "".join(part.choices[0].text for part in client.completions.create(**ask, stream=True))
        assert streamed == answer.choices[0].text
        guided = client.completions.create(
            **ask | {"max_tokens": 40, "extra_body": {"structured_outputs": {"choice": ["yes", "no"]}}})
        assert guided.choices[0].text in ("yes", "no")


def test_one_process_stands_in_for_several_servers(tmp_path):
    """Each port is a separate server, whose metrics do not count another server's answers."""
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 20000}')
    first = free_port(3)
    with serve("--executor", f"simulated={timing}", "--stand-ins", "3", port=first):
        bases = [f"http://127.0.0.1:{first + i}" for i in range(3)]
        for i, base in enumerate(bases):
            for _ in range(i + 1):
                client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
                answer = client.completions.create(model=client.models.list().data[0].id, prompt="Once", max_tokens=5, seed=3,
                                                   extra_body={"ignore_eos": True})
                assert answer.usage.completion_tokens == 5
        for i, base in enumerate(bases):
            assert eventually(lambda: metric(base, "vllm:generation_tokens_total") == 5 * (i + 1))


@pytest.mark.parametrize("flags, said", [
    (["--stand-ins", "2"], "--executor simulated"),
    (["--stand-ins", "2", "--executor", "simulated", "--port", "65535"], "65535"),
    (["--stand-ins", "2", "--executor", "simulated", "-dp", "2"], "one engine"),
])
def test_what_cannot_stand_in_is_named(flags, said):
    done = subprocess.run([OCTAVO, "serve", *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "stand-ins" in done.stderr and said in done.stderr, done.stderr


def test_an_executor_that_nobody_knows_is_named():
    done = subprocess.run([OCTAVO, "serve", "--executor", "imagined", "--port", "0"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2 and "imagined" in done.stderr
