"""`octavo serve --record` and `octavo replay`: recorded requests get the same answers after a restart with other
settings."""

import concurrent.futures
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import eventually, fetch, http_client, serve
from test_adapters import write_adapter

COUNTRY = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "size": {"type": "integer"}},
           "required": ["name", "size"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}}
DRAFTS = ["--speculative-config", json.dumps({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1})]


def replay(log, *flags):
    command = ["build/release/octavo", "replay", log, "--model", "models/demo", "--device", "cpu", *flags]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)


def records(folder):
    return [json.loads(line) for path in sorted(Path(folder).glob("requests-*.jsonl"))
            for line in path.read_text().split("\n")[:-1]]  # without a line that is being written


def written(base):
    return int(re.search(r"^octavo_request_records_total (\d+)$", fetch(base + "/metrics"), re.MULTILINE)[1])


def completion(number, **fields):
    return "/v1/completions", {"prompt": f"Once upon a time, number {number},", "max_tokens": 8 + number % 9, **fields}


def chat(number, **fields):
    messages = [{"role": "user", "content": f"Tell me about the village {number}."}]
    return "/v1/chat/completions", {"messages": messages, "max_tokens": 12 + number % 9, **fields}


# One request of each kind that the demo model supports.
KINDS = [
    lambda i: completion(i),
    lambda i: completion(i, temperature=0),
    lambda i: completion(i, n=3, seed=i),
    lambda i: completion(i, presence_penalty=1.0, frequency_penalty=0.5, repetition_penalty=1.2, min_p=0.05),
    lambda i: completion(i, logprobs=3, prompt_logprobs=1, top_k=20),
    lambda i: completion(i, stop=["e"], max_tokens=40),
    lambda i: completion(i, min_tokens=5, logit_bias={"70": 5, "71": -100}, bad_words=["the"]),
    lambda i: completion(i, prompt=[f"A list: {i},", f"Another list: {i},"], n=2),
    lambda i: completion(i, use_beam_search=True, n=2, temperature=0),
    lambda i: completion(i, model="poet", seed=3),
    lambda i: completion(i, cache_salt=f"salt-{i}", ignore_eos=True, top_p=0.9),
    lambda i: completion(i, structured_outputs={"regex": "[a-z]{3,20}"}),
    lambda i: chat(i),
    lambda i: chat(i, seed=i, n=2, logprobs=True, top_logprobs=2),
    lambda i: chat(i, stream=True, stop=["the"], max_tokens=60),
    lambda i: chat(i, tools=[WEATHER], tool_choice="required", max_tokens=60),
    lambda i: chat(i, tools=[WEATHER], tool_choice="auto"),
    lambda i: chat(i, max_tokens=60, response_format={"type": "json_schema", "json_schema": {"name": "country", "strict": True, "schema": COUNTRY}}),
]
ROUNDS = 12


def abort(base, number):
    path, body = completion(number, max_tokens=400, ignore_eos=True, stream=True)
    with http_client.stream("POST", base + path, json=body | {"model": "demo"}) as response:
        next(response.iter_lines())


def send(base, job):
    path, body = job
    response = http_client.post(base + path, json={"model": "demo"} | body)
    assert response.status_code == 200, (path, body, response.text)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters") / "poet"
    write_adapter(folder, 1)
    return folder


@pytest.fixture(scope="module")
def lora(adapter):
    return ["--enable-lora", "--lora-modules", f"poet={adapter}"]


@pytest.fixture(scope="module")
def log(tmp_path_factory, lora):
    """Records requests of all kinds, several at a time, on a server with draft tokens."""
    folder = tmp_path_factory.mktemp("log") / "records"
    with serve("--device", "cpu", "--served-model-name", "demo", "--record", str(folder), *DRAFTS, *lora) as base:
        jobs = [kind(i) for i in range(ROUNDS) for kind in KINDS]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda job: send(base, job), jobs))
            list(pool.map(lambda i: abort(base, i), range(8)))
        assert eventually(lambda: len(records(folder)) == written(base) >= len(jobs) + 8)
    assert len({record["id"] for record in records(folder)}) > len(jobs)
    return folder


@pytest.mark.parametrize("flags", [
    ["--max-num-seqs", "3", "--max-num-batched-tokens", "24", "--cpu-threads", "1"],
    ["--max-num-seqs", "64", "--cpu-threads", "2", "--no-enable-prefix-caching", "--block-size", "32", *DRAFTS],
])
def test_other_batches_threads_and_chunks_change_no_answer(log, lora, flags):
    done = replay(log, *lora, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"^(\d+) identical, (\d+) different, (\d+) cannot be replayed$", done.stdout, re.MULTILINE)
    assert int(counts[2]) == 0
    assert int(counts[1]) >= ROUNDS * len(KINDS)
    for line in done.stdout.splitlines():
        if "cannot be replayed: " in line:
            assert "aborted before the first token" in line


@pytest.mark.parametrize("layout", [["--tensor-parallel-size", "2"], ["--pipeline-parallel-size", "2"]])
def test_ranks_repeat_their_own_answers_and_name_another_layout(layout, tmp_path):
    with serve("--device", "cpu", "--served-model-name", "demo", "--record", str(tmp_path / "records"), *layout) as base:
        for i in range(6):
            send(base, completion(i, seed=i))
        assert eventually(lambda: len(records(tmp_path / "records")) == written(base) == 6)
    done = replay(tmp_path / "records", *layout)
    assert done.returncode == 0 and "6 identical, 0 different, 0 cannot be replayed" in done.stdout, done.stdout + done.stderr
    alone = replay(tmp_path / "records")
    for line in alone.stdout.splitlines():
        assert ": answer " not in line or "other layout" in line, line


def test_a_difference_names_its_token_and_the_known_reason(log, lora, adapter, tmp_path):
    whole = [record for record in records(log) if all(a["count"] > 3 and a["finish"] != "abort" for a in record["answers"])]
    changed = [record for record in whole if "adapter" not in record][:3]
    changed[1]["answers"][0]["tokens"][1] += 1
    file = tmp_path / "changed.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in changed))
    done = replay(file, *lora)
    assert done.returncode == 1
    assert re.search(r"^changed.jsonl:2: \S+: answer \d: token 1 is \d+, but the record has \d+ \(no reason is known\)$", done.stdout, re.MULTILINE)
    assert "2 identical, 1 different, 0 cannot be replayed" in done.stdout

    other = tmp_path / "model"
    shutil.copytree("models/demo", other)
    weights = other / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2:] = bytes(len(content) - len(content) // 2)
    weights.write_bytes(content)
    done = replay(file, *lora, "--model", other)
    assert done.returncode == 1 and re.search(r"other weights: \w+, recorded \w+", done.stdout), done.stdout

    poems = [record for record in whole if "adapter" in record][:2]
    file.write_text("\n".join(json.dumps(record) for record in poems))
    done = replay(file, *lora)
    assert done.returncode == 0 and "2 identical" in done.stdout, done.stdout
    done = replay(file)
    assert "2 cannot be replayed" in done.stdout, done.stdout


def test_hashes_have_no_ids_and_are_refused_by_name(tmp_path):
    with serve("--device", "cpu", "--record", str(tmp_path / "log"), "--record-hashes-only") as base:
        send(base, ("/v1/completions", {"model": "demo", "prompt": "Once", "max_tokens": 4}))
        assert eventually(lambda: written(base) == 1)
    record, = records(tmp_path / "log")
    assert "request" not in record and record["prompt_tokens"] > 0 and len(record["request_hash"]) == 64
    assert "tokens" not in record["answers"][0] and record["answers"][0]["count"] == 4
    done = replay(tmp_path / "log")
    assert done.returncode == 1 and "only hashes are recorded (--record-hashes-only)" in done.stdout
    assert "no record was replayed, so no answer was compared" in done.stderr
    assert "0 identical, 0 different, 1 cannot be replayed" in done.stdout


def test_a_cut_line_is_named(log, tmp_path):
    file = tmp_path / "cut.jsonl"
    line = json.dumps(records(log)[0])
    file.write_text(line + "\n" + line[:100])
    done = replay(file, "--enable-lora")
    assert "cut.jsonl:2: cannot be replayed: must be JSON" in done.stdout


def test_parameters_that_no_request_may_have_are_refused(log, tmp_path):
    """The engine does not check parameters, so replay checks those of an edited record."""
    plain, edited = [record for record in records(log) if "adapter" not in record and record["answers"][0]["count"] > 3][:2]
    edited["request"]["sampling"]["temperature"] = -1
    file = tmp_path / "edited.jsonl"
    file.write_text(json.dumps(plain) + "\n" + json.dumps(edited))
    done = replay(file)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^edited.jsonl:2: cannot be replayed: temperature: ", done.stdout, re.MULTILINE), done.stdout
    assert "1 identical, 0 different, 1 cannot be replayed" in done.stdout


def test_a_log_is_a_load(log, tmp_path):
    plain = [record for record in records(log) if record["answers"][0]["count"] > 0][:20]
    file = tmp_path / "load.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in plain))
    with serve("--device", "cpu") as base:
        done = subprocess.run(["build/release/octavo", "replay", str(file), "--url", base, "--speed", "50", "--tokenizer", "models/demo"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        figures = json.loads(done.stdout)
        assert figures["completed"] == 20
        assert figures["total_input_tokens"] == sum(record["prompt_tokens"] for record in plain)
        assert figures["total_output_tokens"] == sum(record["answers"][0]["count"] for record in plain)


def test_a_log_that_does_not_exist_is_refused(tmp_path):
    done = replay(tmp_path / "nothing")
    assert done.returncode == 2 and "cannot read" in done.stderr
