"""`octavo plan`: the fleet that recorded traffic needs, with a fixed or a changing number of replicas."""

import json
import os
import subprocess

import pytest

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")


def plan(*arguments):
    return subprocess.run([OCTAVO, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.fixture
def trace(tmp_path):
    """Writes a trace of ten minutes in Mooncake's format: few requests, then many, then few."""
    lines = []
    for minute, count in enumerate([6, 6, 6, 60, 120, 120, 6, 6, 6, 6]):
        for i in range(count):
            lines.append({"timestamp": minute * 60000 + i * 60000 // count, "input_length": 1024, "output_length": 20,
                          "hash_ids": [2 * len(lines), 2 * len(lines) + 1]})
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def slow(tmp_path):
    """A replica that needs about a second for a request."""
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 20000, "token_us": 600}')
    return ["--timing", timing, "--num-gpu-blocks-override", "8k"]


def test_the_smallest_fleet_for_an_slo(trace, slow, tmp_path):
    result = tmp_path / "plan.json"
    flags = ["--trace", trace, *slow, "--policy", "least_loaded"]
    done = plan(*flags, "--slo", "ttft:2000", "tpot:200", "--output-json", result)
    assert done.returncode == 0, done.stderr
    answer = json.loads(result.read_text())
    assert answer["replicas"] > 1 and answer["slo"] == {"ttft_ms": 2000, "tpot_ms": 200, "e2el_ms": None, "share": 0.99}
    assert f"{answer['replicas']} replicas meet the SLO" in done.stdout
    for trial in answer["trials"]:
        assert trial["meets_slo"] == (trial["replicas"] >= answer["replicas"]) == (trial["slo_attainment"] >= 0.99)

    # The simulator confirms that the planned fleet meets the SLO, and that one replica less does not.
    for replicas in (answer["replicas"], answer["replicas"] - 1):
        file = tmp_path / "simulated.json"
        subprocess.run([OCTAVO, "simulate", *map(str, flags), "--replicas", str(replicas), "--goodput", "ttft:2000",
                        "tpot:200", "--output-json", file], check=True, capture_output=True, timeout=300)
        (simulated,) = json.loads(file.read_text())
        good = simulated["request_goodput"] * simulated["duration"]
        assert (good >= 0.99 * simulated["num_prompts"]) == (replicas == answer["replicas"])


def test_a_fleet_that_changes_costs_less(trace, slow, tmp_path):
    result = tmp_path / "plan.json"
    done = plan("--trace", trace, *slow, "--slo", "ttft:3000", "--share", "0.9", "--window", 60, "--scale-down-delay",
                60, "--startup-time", 5, "--predictor", "oracle", "--output-json", result)
    assert done.returncode == 0, done.stderr
    answer = json.loads(result.read_text())
    scaling = answer["scaling"]
    fixed = next(t for t in answer["trials"] if t["replicas"] == answer["replicas"])
    assert scaling["figures"]["completed"] == 342, "no request is lost while the fleet changes"
    assert scaling["figures"]["replica_hours"] < 0.8 * fixed["replica_hours"]
    assert scaling["figures"]["slo_attainment"] > 0.8
    counts = [window["replicas"] for window in scaling["windows"]]
    assert len(counts) == 10 and counts[4] == answer["replicas"] and counts[2] == 1 and counts[-1] == 1
    assert "replica hours of" in done.stdout


def test_the_cheapest_of_several_devices(trace, tmp_path):
    result = tmp_path / "search.json"
    flags = ["--trace", trace, "--slo", "ttft:2000", "tpot:200", "--model", "qwen3-32b", "--output-json", result]
    search = ["--devices", "h100,l40s", "--tensor-parallel-sizes", "1,2,4", "--batch-sizes", "64"]
    done = plan(*flags, *search, "--prices", "3,1", "--pools")
    assert done.returncode == 0, done.stderr
    answer = json.loads(result.read_text())
    offers, best = answer["offers"], answer["offers"][answer["best"]]
    assert {offer["device"] for offer in offers} == {"h100", "l40s"} and {offer["pools"] for offer in offers} == {False, True}
    assert "leave no space for a KV cache" in next(o["reason"] for o in offers if o["device"] == "l40s" and o["tensor_parallel_size"] == 1)
    assert best["cost_per_million_tokens"] == min(o["cost_per_million_tokens"] for o in offers if "reason" not in o)
    figures = best["figures"]
    tokens = figures["total_input_tokens"] + figures["total_output_tokens"]
    price = {"h100": 3, "l40s": 1}[best["device"]] * best["tensor_parallel_size"]
    assert best["cost_per_million_tokens"] == pytest.approx(price * figures["replica_hours"] / tokens * 1e6)
    assert "per million tokens" in done.stdout and best["tokens_per_second"] > 0

    # The prices decide the result.
    assert plan(*flags, *search, "--prices", "1,1000").returncode == 0
    answer = json.loads(result.read_text())
    assert answer["offers"][answer["best"]]["device"] == "h100"


def test_a_measured_timing_replaces_the_roofline_of_its_replicas(trace, tmp_path):
    result, timing = tmp_path / "search.json", tmp_path / "timing.json"
    flags = ["--trace", trace, "--slo", "ttft:2000", "tpot:200", "--model", "qwen3-32b", "--output-json", result,
             "--devices", "h100", "--tensor-parallel-sizes", "2,4", "--batch-sizes", "64"]
    assert plan(*flags).returncode == 0
    estimated = json.loads(result.read_text())["offers"]
    timing.write_text(json.dumps({"fixed_us": 40_000, "token_us": 900, "kv_token_us": 0.5}))
    done = plan(*flags, "--timings", f"h100:2={timing}")
    assert done.returncode == 0, done.stderr
    offers = json.loads(result.read_text())["offers"]
    assert [offer["timing"] for offer in estimated] == ["roofline", "roofline"]
    assert [offer["timing"] for offer in offers] == ["measured", "roofline"]
    assert offers[0].get("replicas", 1000) > estimated[0]["replicas"], "the measured device is ten times slower"
    assert "measured" in done.stdout


@pytest.mark.parametrize("flags, said", [
    (["--devices", "h100,l40s"], "prices"),
    (["--devices", "nonesuch"], "nonesuch"),
    (["--devices", "h100", "--device", "h100"], "--device"),
    (["--prices", "3"], "--devices"),
    (["--devices", "h100", "--timings", "h100=timing.json"], "must be DEVICE:SIZE=FILE"),
    (["--devices", "h100", "--timings", "l40s:2=timing.json"], 'l40s" is not one of --devices'),
    (["--devices", "h100", "--timings", "h100:3=timing.json"], "not one of --tensor-parallel-sizes"),
    (["--devices", "h100", "--timings", "h100:2=/nowhere.json"], "/nowhere.json"),
])
def test_mistakes_of_a_search_are_named(trace, flags, said):
    done = plan("--trace", trace, "--slo", "ttft:2000", *flags)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_the_same_options_give_the_same_plan(trace, slow, tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        assert plan("--trace", trace, *slow, "--slo", "ttft:3000", "--policy", "random", "--window", 60,
                    "--output-json", file).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("flags, said", [
    (["--slo", "ttft:1"], "slo: cannot be met with up to 256 replicas"),
    (["--slo", "ttft:2000", "--max-replicas", "1"], "slo: cannot be met with up to 1 replicas:"),
    (["--slo", "itl:5"], "slo"),
    ([], "--slo"),
    (["--slo", "ttft:9", "--share", "1.5"], "--share"),
    (["--slo", "ttft:9", "--min-replicas", "9", "--max-replicas", "3"], "min-replicas"),
    (["--slo", "ttft:9", "--window", "10", "--startup-time", "11"], "startup-time"),
    (["--slo", "ttft:9", "--predictor", "crystal ball"], "--predictor"),
])
def test_mistakes_are_named(trace, slow, flags, said):
    done = plan("--trace", trace, *slow, *flags)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_where_prompts_computed_apart_pay(slow, tmp_path):
    result, plot = tmp_path / "pools.json", tmp_path / "pools.svg"
    done = plan("pools", "--replicas", 2, *slow, "--slo", "ttft:9000", "tpot:40", "--prompt-tokens", "64,512",
                "--answer-tokens", "16", "--seconds", 60, "--output-json", result, "--plot", plot)
    assert done.returncode == 0, done.stderr
    cells = json.loads(result.read_text())["cells"]
    assert [(cell["prompt_tokens"], cell["answer_tokens"]) for cell in cells] == [(64, 16), (512, 16)]
    assert all(cell["apart_request_rate"] > 0 and cell["prefill_replicas"] == 1 for cell in cells)
    # A prompt of 512 tokens takes 300 ms. Without separate pools, this interrupts tokens of 20 ms.
    assert cells[1]["gain"] > cells[0]["gain"] or cells[1]["together_request_rate"] == 0
    assert "prompt tokens" in plot.read_text()
    assert plan("pools", *slow, "--replicas", 1).returncode == 2
