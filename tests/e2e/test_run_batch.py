"""`octavo run-batch`: OpenAI's batch format, from file to file."""

import json
import subprocess


def run_batch(lines, folder, *flags):
    (folder / "in.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    command = ["build/release/octavo", "run-batch", "-i", folder / "in.jsonl", "-o", folder / "out.jsonl"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=300)
    return done, folder / "out.jsonl"


def request(number, **body):
    body = {"model": "demo", "prompt": f"Once {number}", "max_tokens": 3 + number % 7, **body}
    return {"custom_id": f"id-{number}", "method": "POST", "url": "/v1/completions", "body": body}


def test_answers_in_the_order_of_the_requests(tmp_path):
    chat = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    lines = [request(i) for i in range(300)]
    lines.append({"custom_id": "chat", "method": "POST", "url": "/v1/chat/completions", "body": chat})
    lines.append(request(301, model="another"))
    lines.append({"custom_id": "lost", "method": "POST", "url": "/v1/nowhere", "body": {}})
    # The queue is too short for all requests, but no request is lost.
    done, out = run_batch(
        lines, tmp_path, "--served-model-name", "demo", "--max-num-seqs", "4", "--max-num-queued-reqs", "2"
    )
    assert done.returncode == 0, done.stderr
    assert "303 requests, 2 of them failed" in done.stderr
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [a["custom_id"] for a in answers] == [line["custom_id"] for line in lines]
    for line, answer in zip(lines[:301], answers):
        assert answer["error"] is None and answer["response"]["status_code"] == 200
        body = answer["response"]["body"]
        assert 1 <= body["usage"]["completion_tokens"] <= line["body"]["max_tokens"]
    assert answers[300]["response"]["body"]["choices"][0]["message"]["content"]
    for answer in answers[301:]:
        assert answer["response"]["status_code"] == 404 and answer["error"]["error"]["message"]


def test_a_bad_line_is_named_before_anything_runs(tmp_path):
    good = request(1)
    for bad, word in [
        ({**good, "method": "GET"}, "method"),
        ({**good, "url": "nowhere"}, "url"),
        ({**good, "body": []}, "body"),
        ({**good, "body": {"stream": True}}, "stream"),
        ({**good, "custom_id": 1}, "custom_id"),
        (good, "is already used in an earlier line"),
    ]:
        done, _ = run_batch([good, bad], tmp_path)
        assert done.returncode == 2 and "line 2" in done.stderr and word in done.stderr


def test_several_models_are_refused(tmp_path):
    for flags in [("--models", str(tmp_path)), ("models/demo", "models/demo")]:
        done, _ = run_batch([request(1)], tmp_path, *flags)
        assert done.returncode == 2 and "runs one model" in done.stderr
