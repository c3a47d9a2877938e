"""Files and batches through the official clients of OpenAI and Anthropic, as in their guides."""

import io
import json
import os
import signal
from collections import Counter

import anthropic
import openai
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.messages.batch_create_params import Request

from conftest import PATIENCE, eventually, http_client, running, serve, serve_command

MODEL = "gpt-3.5-turbo-0125"  # from OpenAI's guide
LAST = ("completed", "failed", "expired", "cancelled")


def openai_client(base, key="none"):
    return openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)


def request(custom_id, max_tokens=8, **body):
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": f"Hello {custom_id}!"}]
    body = {"model": MODEL, "messages": messages, "max_tokens": max_tokens, "ignore_eos": True, **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def jsonl(lines):
    return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()


def start_batch(client, lines, **fields):
    file = client.files.create(file=("batchinput.jsonl", io.BytesIO(jsonl(lines))), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", **fields)


def ended(client, batch):
    assert eventually(lambda: client.batches.retrieve(batch.id).status in LAST, PATIENCE)
    return client.batches.retrieve(batch.id)


def lines_of(client, file_id):
    # splitlines() would also split at characters of answers, such as U+0085
    return [json.loads(line) for line in client.files.content(file_id).text.split("\n") if line] if file_id else []


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    with serve("--batch-dir", str(folder), "--served-model-name", MODEL) as base:
        yield base


@pytest.fixture(scope="module")
def slow_base(tmp_path_factory, slow_engine):
    """A server whose answers of 1800 tokens do not end before a test does."""
    folder = tmp_path_factory.mktemp("slow_batches")
    with serve("--batch-dir", str(folder), "--served-model-name", MODEL, "--executor", slow_engine, "--max-num-seqs", "8") as base:
        yield base


def test_openais_guide(base, tmp_path):
    (tmp_path / "batchinput.jsonl").write_bytes(jsonl([request("request-1"), request("request-2")]))
    client = openai_client(base)
    batch_input_file = client.files.create(file=open(tmp_path / "batchinput.jsonl", "rb"), purpose="batch")
    assert batch_input_file.status == "processed" and batch_input_file.bytes > 0
    batch = client.batches.create(input_file_id=batch_input_file.id, endpoint="/v1/chat/completions",
                                  completion_window="24h", metadata={"description": "nightly eval job"})
    assert batch.object == "batch" and batch.metadata == {"description": "nightly eval job"}
    batch = ended(client, batch)
    assert batch.status == "completed" and batch.error_file_id is None and batch.completed_at
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (2, 2, 0)
    answers = lines_of(client, batch.output_file_id)
    assert [answer["custom_id"] for answer in answers] == ["request-1", "request-2"]
    for answer in answers:
        assert answer["error"] is None and answer["response"]["status_code"] == 200
        openai.types.chat.ChatCompletion.model_validate(answer["response"]["body"])
    assert batch.id in [each.id for each in client.batches.list(limit=10)]
    assert batch.output_file_id in [file.id for file in client.files.list(purpose="batch_output")]
    assert client.files.retrieve(batch.output_file_id).filename.endswith(".jsonl")
    assert client.files.delete(batch_input_file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(batch_input_file.id)


def test_bad_lines_are_in_the_error_file(base):
    client = openai_client(base)
    lines = [request("good"), "{no JSON", request("good"), {**request("elsewhere"), "url": "/v1/completions"},
             request("stream", stream=True), request("unknown", model="another"), "", request("last")]
    batch = ended(client, start_batch(client, lines))
    assert batch.status == "completed"
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (7, 2, 5)
    assert [line["custom_id"] for line in lines_of(client, batch.output_file_id)] == ["good", "last"]
    errors = lines_of(client, batch.error_file_id)
    assert [error["custom_id"] for error in errors] == ["", "good", "elsewhere", "stream", "unknown"]
    assert [error["error"]["code"] for error in errors[:4]] == \
        ["invalid_line", "duplicate_custom_id", "mismatched_url", "invalid_line"]
    assert [error["error"]["line"] for error in errors[:4]] == [2, 3, 4, 5]
    assert errors[4]["response"]["status_code"] == 404 and "another" in json.dumps(errors[4])
    assert [error.line for error in batch.errors.data] == [2, 3, 4, 5]


@pytest.mark.parametrize("content, code", [(b"{}\n{}", "invalid_line"), (b"\n \n", "empty_file")])
def test_an_input_without_requests_fails(base, content, code):
    client = openai_client(base)
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    batch = ended(client, batch)
    assert batch.status == "failed" and batch.failed_at and batch.errors.data[0].code == code


@pytest.mark.parametrize("change, word", [
    ({"input_file_id": "file-none"}, "file-none"),
    ({"endpoint": "/tokenize"}, "/v1/chat/completions"),
    ({"completion_window": "1h"}, "24h"),
    ({"metadata": {"a": 1}}, "metadata"),
    ({"extra_body": {"nonsense": 1}}, "nonsense"),
])
def test_a_wrong_field_is_named(base, change, word):
    client = openai_client(base)
    file = client.files.create(file=("in.jsonl", jsonl([request("a")])), purpose="batch")
    fields = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h", **change}
    with pytest.raises(openai.APIStatusError, match=word) as error:
        client.batches.create(**fields)
    assert error.value.status_code in (400, 404)


def test_a_cancelled_batch_keeps_its_answers(slow_base):
    client = openai_client(slow_base)
    ids = [f"id-{i}" for i in range(300)]
    batch = start_batch(client, [request(i, max_tokens=1 if i == "id-0" else 1800) for i in ids])
    assert eventually(lambda: client.batches.retrieve(batch.id).request_counts.completed > 0, PATIENCE)
    with pytest.raises(openai.BadRequestError, match=batch.id):
        client.files.delete(batch.input_file_id)
    # An interactive request does not wait for the batch.
    assert client.chat.completions.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "Hi"}]).choices
    assert client.batches.retrieve(batch.id).status == "in_progress"
    assert client.batches.cancel(batch.id).status == "cancelling"
    batch = ended(client, batch)
    assert batch.status == "cancelled" and batch.cancelled_at
    answered, errors = lines_of(client, batch.output_file_id), lines_of(client, batch.error_file_id)
    assert 0 < len(answered) < len(ids) and len(answered) == batch.request_counts.completed
    assert {error["error"]["code"] for error in errors} == {"batch_cancelled"}
    assert Counter(line["custom_id"] for line in answered + errors) == Counter(ids)
    with pytest.raises(openai.BadRequestError, match="cancelled"):
        client.batches.cancel(batch.id)


def test_a_killed_server_finishes_its_batch(tmp_path, slow_engine):
    flags = ["--batch-dir", str(tmp_path / "batches"), "--served-model-name", MODEL, "--max-num-seqs", "4"]
    ids = [f"id-{i}" for i in range(24)]
    with running(serve_command(*flags, "--executor", slow_engine)) as (process, base):
        client = openai_client(base)
        batch = start_batch(client, [request(id, max_tokens=2 if i < 20 else 1800) for i, id in enumerate(ids)])
        assert eventually(lambda: client.batches.retrieve(batch.id).request_counts.completed == 20, PATIENCE)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with running(serve_command(*flags)) as (process, base):
        client = openai_client(base)
        assert client.batches.retrieve(batch.id).request_counts.completed >= 20, "answers outlive the process"
        batch = ended(client, batch)
        assert batch.status == "completed" and batch.request_counts.completed == len(ids)
        assert [line["custom_id"] for line in lines_of(client, batch.output_file_id)] == ids, "each line once, in order"


def test_anthropics_guide(base):
    client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
    message_batch = client.messages.batches.create(requests=[
        Request(custom_id="my-first-request", params=MessageCreateParamsNonStreaming(
            model=MODEL, max_tokens=10, temperature=0, messages=[{"role": "user", "content": "Hello, world"}])),
        Request(custom_id="my-second-request", params=MessageCreateParamsNonStreaming(
            model="another", max_tokens=10, messages=[{"role": "user", "content": "Hi again, friend"}])),
    ])
    assert message_batch.processing_status == "in_progress" and message_batch.request_counts.processing == 2
    retrieve = client.messages.batches.retrieve
    assert eventually(lambda: retrieve(message_batch.id).processing_status == "ended", PATIENCE)
    counts = retrieve(message_batch.id).request_counts
    assert (counts.processing, counts.succeeded, counts.errored) == (0, 1, 1)
    results = {result.custom_id: result.result for result in client.messages.batches.results(message_batch.id)}
    assert results["my-first-request"].type == "succeeded"
    assert results["my-first-request"].message.content[0].text
    assert results["my-second-request"].type == "errored"
    assert results["my-second-request"].error.error.type == "not_found_error"
    assert message_batch.id in [each.id for each in client.messages.batches.list(limit=20)]
    assert client.messages.batches.delete(message_batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        retrieve(message_batch.id)


def test_a_cancelled_message_batch(slow_base):
    client = anthropic.Anthropic(base_url=slow_base, api_key="none", max_retries=0)
    params = MessageCreateParamsNonStreaming(model=MODEL, max_tokens=1800, messages=[{"role": "user", "content": "Count"}])
    batch = client.messages.batches.create(
        requests=[Request(custom_id=f"id-{i}", params={**params, "ignore_eos": True}) for i in range(300)])
    with pytest.raises(anthropic.BadRequestError, match="ended"):
        client.messages.batches.delete(batch.id)
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
    assert eventually(lambda: client.messages.batches.retrieve(batch.id).processing_status == "ended", PATIENCE)
    counts = client.messages.batches.retrieve(batch.id).request_counts
    kinds = Counter(result.result.type for result in client.messages.batches.results(batch.id))
    assert kinds["canceled"] == counts.canceled > 0 and counts.canceled + counts.succeeded == 300


def test_twice_the_same_id_is_refused(base):
    client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
    params = MessageCreateParamsNonStreaming(model=MODEL, max_tokens=1, messages=[{"role": "user", "content": "Hi"}])
    with pytest.raises(anthropic.BadRequestError, match=r"requests\[1\].custom_id"):
        client.messages.batches.create(requests=[Request(custom_id="a", params=params)] * 2)


def test_clients_see_their_own(tmp_path):
    with serve("--batch-dir", str(tmp_path), "--api-key", "one", "--api-key", "two", "--served-model-name", MODEL) as base:
        one, two = openai_client(base, "one"), openai_client(base, "two")
        batch = ended(one, start_batch(one, [request("a")]))
        assert batch.status == "completed"
        assert not list(two.batches.list()) and not list(two.files.list())
        for stolen in (lambda: two.files.content(batch.output_file_id), lambda: two.batches.retrieve(batch.id)):
            with pytest.raises(openai.NotFoundError):
                stolen()


def test_without_a_folder_the_flag_is_named(server):
    for path in ("/v1/files", "/v1/batches/batch_1", "/v1/messages/batches"):
        answer = http_client.get(server + path)
        assert answer.status_code == 404 and "--batch-dir" in answer.text
    assert http_client.get(server + "/v1/messages/batches").json()["type"] == "error"


def test_a_batch_without_its_input_fails(tmp_path, slow_engine):
    command = serve_command("--batch-dir", str(tmp_path), "--served-model-name", MODEL, "--executor", slow_engine)
    with running(command) as (process, base):
        client = openai_client(base)
        batch = start_batch(client, [request("a", max_tokens=1800)])
        assert eventually(lambda: client.batches.retrieve(batch.id).status == "in_progress", PATIENCE)
        process.kill()
    (tmp_path / "files" / batch.input_file_id).unlink()
    with running(command) as (_, base):
        client = openai_client(base)
        assert ended(client, batch).status == "failed"
        assert client.batches.retrieve(batch.id).errors.data[0].code == "missing_file"


def test_a_full_folder_is_named(tmp_path):
    with serve("--batch-dir", str(tmp_path), "--batch-dir-bytes", str(1 << 20), "--served-model-name", MODEL) as base:
        client = openai_client(base)
        client.files.create(file=("a.jsonl", io.BytesIO(b" " * (1 << 20))), purpose="batch")
        with pytest.raises(openai.RateLimitError, match="--batch-dir-bytes 1048576: delete files"):
            client.files.create(file=("b.jsonl", io.BytesIO(b"{}")), purpose="batch")


def test_a_request_is_aborted_by_its_own_tenant_only(slow_engine):
    with serve("--api-key", "one", "two", "--executor", slow_engine) as base:
        def body(key):
            return {"headers": {"Authorization": f"Bearer {key}"}, "timeout": PATIENCE}

        stream = {"model": "demo", "prompt": "Once", "max_tokens": 1800, "ignore_eos": True, "stream": True, "request_id": "mine"}
        with http_client.stream("POST", base + "/v1/completions", json=stream, **body("one")) as answer:
            lines = answer.iter_lines()
            next(lines)
            abort = {"request_ids": ["mine"]}
            other = http_client.post(base + "/inference/v1/abort_requests", json=abort, **body("two"))
            assert other.json()["aborted"] == 0
            assert http_client.post(base + "/inference/v1/abort_requests", json=abort, **body("one")).json()["aborted"] == 1
            assert any('"finish_reason":"abort"' in line for line in lines)


def test_a_fleet_answers_each_line_once_though_a_replica_dies(tmp_path, slow_engine):
    replica = serve_command("--served-model-name", MODEL, "--max-num-seqs", "4")
    with running(f"{replica} --executor {slow_engine}") as (first, one), running(replica) as (_, two):
        route = f"build/release/octavo route --port {{port}} --policy round_robin --batch-dir {tmp_path} --worker-urls {one} {two}"
        with running(route, ready="/workers") as (_, base):
            assert eventually(lambda: all(worker["models"] for worker in http_client.get(base + "/workers").json()["workers"]))
            client = openai_client(base)
            ids = [f"r{i}" for i in range(6)]
            batch = start_batch(client, [request(i, max_tokens=1500) for i in ids])
            assert eventually(lambda: client.batches.retrieve(batch.id).request_counts.completed > 0
                              and http_client.get(one + "/load").json()["server_load"] > 0)
            first.kill()
            batch = ended(client, batch)
            assert batch.status == "completed" and batch.request_counts.completed == len(ids)
            answers = lines_of(client, batch.output_file_id)
            assert sorted(answer["custom_id"] for answer in answers) == sorted(ids)
            with pytest.raises(openai.NotFoundError):
                openai_client(two).batches.retrieve(batch.id)


def test_lines_count_for_the_tenant_that_made_the_batch(tmp_path):
    tenants = tmp_path / "tenants.yaml"
    tenants.write_text("tenants:\n- {name: slow, keys: [slow], requestsPerSecond: 0.001, burst: 8}\n- {name: fast, keys: [fast]}\n")
    with serve("--served-model-name", MODEL) as worker:
        route = f"build/release/octavo route --port {{port}} --batch-dir {tmp_path} --worker-urls {worker} --tenants {tenants} --api-key operator"
        with running(route, ready="/readiness") as (_, base):
            def outcomes(tenant):
                text = http_client.get(base + "/metrics", headers={"Authorization": "Bearer operator"}).text
                label = f'tenant="{tenant}",outcome="admitted"'
                return next(float(line.split()[-1]) for line in text.splitlines() if label in line)

            slow, fast = openai_client(base, "slow"), openai_client(base, "fast")
            # The file and the batch count as two requests. A quarter of the burst is reserved, so four
            # lines run at the same time.
            batch = start_batch(slow, [request(f"s{i}") for i in range(20)])
            assert eventually(lambda: outcomes("slow") == 6, PATIENCE)
            assert ended(fast, start_batch(fast, [request(f"f{i}") for i in range(8)])).status == "completed"
            assert outcomes("fast") >= 8 + 2
            assert outcomes("slow") == 6, "the lines of a tenant at its limit wait"
            assert slow.batches.retrieve(batch.id).request_counts.completed <= 4
