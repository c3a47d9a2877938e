"""New weights replace the model's weights while the server runs: from a folder, or sent by a trainer."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import struct
import tempfile
import threading

import openai
import pytest
from conftest import PATIENCE, eventually, http_client, metric, serve
from test_engine_process import engines

DEMO = pathlib.Path(__file__).parents[2] / "models/demo"
FLAGS = ["--served-model-name=demo", "--server-dev-mode", "--max-model-len=2048"]
PROMPT = "The rain came down on the old town, and the river rose. " * 8
LONG = 1600  # tokens of a stream that seldom ends before a request to pause arrives


def other_weights(folder, changed="model.layers.0.mlp.down_proj.weight"):
    """Copies the demo model with one matrix of zeros, as a trainer would write it."""
    shutil.copytree(DEMO, folder)
    (file,) = folder.glob("*.safetensors")
    data = bytearray(file.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    begin, end = (8 + size + offset for offset in header[changed]["data_offsets"])
    data[begin:end] = bytes(end - begin)
    file.write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return other_weights(tmp_path_factory.mktemp("weights") / "trained")


def client(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def ask(base, prompt=PROMPT, **changes):
    body = {"model": "demo", "prompt": prompt, "max_tokens": 48, "temperature": 0, "logprobs": 2, "extra_body": {"ignore_eos": True}}
    choice = client(base).completions.create(**(body | changes)).choices[0]
    return choice.text, choice.logprobs.token_logprobs


def reload(base, path=None, status=200):
    response = http_client.post(base + "/collective_rpc", json={"method": "reload_weights", "kwargs": {"weights_path": path and str(path)}})
    assert response.status_code == status, response.text
    return response.json()


@pytest.fixture(scope="module")
def answers(trained):
    """The answers of servers with each of the two folders."""
    said = []
    for folder in (DEMO, trained):
        with serve(f"--model={folder}", *FLAGS) as base:
            said.append(ask(base))
    assert said[0] != said[1]
    return said


@pytest.mark.parametrize("flags", [[], ["--tensor-parallel-size=2"], ["--data-parallel-size=2"], ["--quantization=int8"]],
                         ids=["one engine", "ranks", "engines", "int8"])
def test_answers_are_those_of_a_server_of_each_folder(answers, trained, flags):
    # Quantised weights differ, and ranks add in another order. The reference is therefore a new server with
    # the same layout.
    as_one_engine = flags in ([], ["--data-parallel-size=2"])
    with serve(f"--model={DEMO}", *FLAGS, *flags) as base:
        before = ask(base)
        assert not as_one_engine or before[0] == answers[0][0]
        assert reload(base, trained) == {"results": [None]}
        after = [ask(base) for _ in range(4)]
        if as_one_engine:
            assert [text for text, _ in after] == [answers[1][0]] * 4
        else:
            with serve(f"--model={trained}", *FLAGS, *flags) as fresh:
                assert after == [ask(fresh)] * 4
        if not flags:
            assert (before, after[0]) == tuple(answers)
        reload(base, DEMO)
        assert ask(base) == before


def test_streams_go_on_with_the_weights_that_are_there(answers, trained):
    begun = threading.Event()

    def read(base):
        ids = []
        body = {"return_token_ids": True, "ignore_eos": True}
        for chunk in client(base).completions.create(model="demo", prompt=PROMPT, max_tokens=LONG, temperature=0, stream=True, extra_body=body):
            begun.set()
            ids += chunk.choices[0].token_ids
        return ids

    with serve(f"--model={DEMO}", *FLAGS) as base, concurrent.futures.ThreadPoolExecutor() as pool:
        whole = read(base)
        streams = []

        def changed_in_the_middle():
            reload(base, DEMO)
            begun.clear()
            stream = pool.submit(read, base)
            assert begun.wait(PATIENCE)
            assert http_client.post(base + "/pause?mode=keep").status_code == 200
            reload(base, trained)
            assert http_client.post(base + "/resume").status_code == 200
            streams.append(stream.result(timeout=PATIENCE))
            return streams[-1] != whole

        assert eventually(changed_in_the_middle), "all streams ended before the pause"
        ids = streams[-1]
        assert len(ids) == LONG
        same = next(i for i, (a, b) in enumerate(zip(ids, whole)) if a != b)
        prompt = http_client.post(base + "/tokenize", json={"prompt": PROMPT}).json()["tokens"]
        on = http_client.post(base + "/v1/completions", json={"prompt": prompt + ids[:same], "max_tokens": LONG - same, "temperature": 0,
                                                              "return_token_ids": True, "ignore_eos": True}).json()
        assert 0 < same and on["choices"][0]["token_ids"] == ids[same:]


def test_sglangs_route_does_the_same(answers, trained):
    with serve(f"--model={DEMO}", *FLAGS) as base:
        update = lambda **body: http_client.post(base + "/update_weights_from_disk", json=body)
        response = update(model_path=str(trained), load_format=None, flush_cache=True)
        assert response.status_code == 200 and response.json()["success"] is True, response.text
        assert ask(base) == answers[1]
        response = update(model_path=str(trained / "nothing"))
        assert response.status_code == 400 and response.json()["success"] is False and "nothing" in response.json()["message"]
        for body, field in (({}, "model_path"), ({"model_path": 1}, "model_path"), ({"model_path": "x", "abort_all_requests": True}, "abort_all_requests"),
                            ({"model_path": "x", "load_format": "dummy"}, "load_format"), ({"model_path": "x", "model": "y"}, "model")):
            response = update(**body)
            assert response.status_code == 400 and response.json()["error"]["param"] == field, response.text
        assert ask(base) == answers[1]


def test_an_engine_that_dies_comes_back_with_them(answers, trained):
    with serve(f"--model={DEMO}", *FLAGS) as base:
        reload(base, trained)
        (engine,) = engines(base)
        os.kill(engine, signal.SIGKILL)
        assert ask(base) == answers[1]
        reload(base)
        assert ask(base) == answers[1]


def test_what_is_not_the_models_is_refused_and_nothing_changes(answers, tmp_path):
    other_shape = other_weights(tmp_path / "shape")
    (file,) = other_shape.glob("*.safetensors")
    data = bytearray(file.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    entry = header["model.layers.0.mlp.down_proj.weight"]
    entry["shape"] = entry["shape"][::-1]
    text = json.dumps(header).encode().ljust(size)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    with serve(f"--model={DEMO}", *FLAGS) as base:
        (engine,) = engines(base)
        for path, named in ((other_shape, "down_proj"), (DEMO.parent / "demo-moe", "Qwen3MoeForCausalLM"), (tmp_path / "nothing", "nothing")):
            error = reload(base, path, 400)["error"]
            assert error["param"] == "weights_path", error
            assert named in error["message"], error
        for body in ({}, {"method": "save_sharded_state"}, {"method": "reload_weights", "args": ["x"]},
                     {"method": "reload_weights", "kwargs": {"weights_iterator": 1}},
                     {"method": "reload_weights", "kwargs": {"is_checkpoint_format": False}}):
            assert http_client.post(base + "/collective_rpc", json=body).status_code == 400
        assert engines(base) == [engine]
        assert ask(base) == answers[0]


@pytest.mark.parametrize("on_host", [False, True], ids=["disk", "host memory and disk"])
def test_a_tier_has_nothing_of_other_weights(answers, trained, tmp_path, on_host):
    extra = {"shared_storage_path": str(tmp_path / "kv")}
    if on_host:
        extra = {"cpu_bytes_to_use": 64 << 20, "secondary_tiers": [{"type": "fs", "root_dir": str(tmp_path / "kv")}]}
    tier = {"kv_connector": "OffloadingConnector" if on_host else "SharedStorageConnector", "kv_role": "kv_both",
            "kv_connector_extra_config": extra | {"load_always": True}}
    hits = "vllm:external_prefix_cache_hits_total"
    with serve(f"--model={DEMO}", *FLAGS, "--kv-transfer-config", json.dumps(tier)) as base:
        assert ask(base) == answers[0]
        assert eventually(lambda: metric(base, "vllm:kv_tier_blocks") > 0)
        reload(base, trained)
        assert ask(base) == answers[1] and metric(base, hits) == 0
        reload(base, DEMO)
        assert ask(base)[0] == answers[0][0] and eventually(lambda: metric(base, hits) > 0)


CHANGED = "model.layers.0.mlp.down_proj.weight"


def one_tensor(folder, name=CHANGED):
    """A safetensors file with this tensor of the folder."""
    (file,) = folder.glob("*.safetensors")
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8 : 8 + size])[name]
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    header = json.dumps({name: entry | {"data_offsets": [0, end - begin]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data[begin:end]


def send(base, path, status=200, **request):
    response = http_client.post(f"{base}/{path}", **request)
    assert response.status_code == status, response.text
    return response.json()


def send_bytes(base, data, **headers):
    return send(base, "update_weights", content=data, headers={"Content-Type": "application/octet-stream"} | headers)


def test_a_trainer_sends_tensors(answers, trained, tmp_path):
    """The calls of vLLM's HTTP client, with tensors as bodies, in parts, and as a file in shared memory."""
    with serve(f"--model={DEMO}", *FLAGS) as base:
        assert http_client.get(base + "/weight_info").json() == {"weight_version": "default"}
        assert ask(base) == answers[0]
        send(base, "init_weight_transfer_engine", json={"init_info": {}})
        send(base, "start_weight_update")
        data = one_tensor(trained)
        half = len(data) // 2
        send_bytes(base, data[:half], **{"Content-Range": f"bytes 0-{half - 1}/{len(data)}"})
        send_bytes(base, data[half:], **{"Content-Range": f"bytes {half}-{len(data) - 1}/{len(data)}"})
        assert ask(base) == answers[0], "nothing changes before the end"
        send(base, "finish_weight_update", json={"weight_version": "1"})
        assert ask(base) == answers[1]
        assert http_client.get(base + "/weight_info").json() == {"weight_version": "1"}

        with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".safetensors") as shared:
            shared.write(one_tensor(DEMO))
            shared.flush()
            send(base, "start_weight_update")
            send(base, "update_weights", json={"update_info": {"path": shared.name}})
        send(base, "finish_weight_update", json={"weight_version": "2"})
        assert ask(base) == answers[0]
        (engine,) = engines(base)
        os.kill(engine, signal.SIGKILL)
        assert ask(base) == answers[0]


def test_tokens_name_the_weights_that_made_them(trained):
    """A stream that is held while the weights change reports both versions, and has tokens of both."""
    body = {"token_ids": [5, 6, 7], "stream": True, "sampling_params": {"max_tokens": LONG, "temperature": 0, "ignore_eos": True}}
    with serve(f"--model={DEMO}", *FLAGS) as base:
        versions, streams = ["default"], []

        def changed_in_the_middle():
            versions.append(str(len(versions)))
            ids, spans, paused = [], None, False
            with http_client.stream("POST", base + "/inference/v1/generate", json=body) as stream:
                for line in stream.iter_lines():
                    if not line.startswith("data: {"):
                        continue
                    (choice,) = json.loads(line[6:])["choices"]
                    ids += choice["token_ids"]
                    spans = choice.get("weight_versions") or spans
                    if not paused:
                        paused = True
                        send(base, "pause?mode=keep")
                        send(base, "start_weight_update")
                        send_bytes(base, one_tensor((DEMO, trained)[len(versions) % 2 == 0]))
                        send(base, "finish_weight_update", json={"weight_version": versions[-1]})
                        send(base, "resume")
            streams.append((ids, spans))
            return len(spans) > 1

        assert eventually(changed_in_the_middle), "all streams ended before the pause"
        ids, spans = streams[-1]
        assert [span["version"] for span in spans] == versions[-2:]
        assert spans[0]["start"] == 0 and spans[0]["end"] == spans[1]["start"] and spans[1]["end"] == len(ids) == LONG
        # The later tokens continue the earlier ones with the new weights.
        first = spans[1]["start"]
        again = send(base, "inference/v1/generate", json={"token_ids": [5, 6, 7, *ids[:first]],
                                                         "sampling_params": {"max_tokens": LONG - first, "temperature": 0, "ignore_eos": True}})
        assert again["choices"][0]["token_ids"] == ids[first:]


def left_in_memory():
    return set(pathlib.Path("/dev/shm").glob("octavo-weights-*"))


def test_tensors_of_another_shape_change_nothing(answers, trained):
    before = left_in_memory()
    data = one_tensor(trained)
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header[CHANGED]["shape"].reverse()
    text = json.dumps(header).encode().ljust(size)
    with serve(f"--model={DEMO}", *FLAGS) as base:
        send(base, "start_weight_update")
        send_bytes(base, struct.pack("<Q", len(text)) + text + data[8 + size :])
        error = send(base, "finish_weight_update", status=400, json={"weight_version": "9"})["error"]
        assert "down_proj" in error["message"], error
        assert ask(base) == answers[0] and http_client.get(base + "/weight_info").json() == {"weight_version": "default"}
        send(base, "start_weight_update")
        send_bytes(base, data)
        send(base, "finish_weight_update")
        assert ask(base) == answers[1]
    assert left_in_memory() <= before
