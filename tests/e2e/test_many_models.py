"""Many models in one server: loads on demand, swaps under load, caches that stay, crashes, lists and metrics."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from conftest import DEMO, PATIENCE, at_once, eventually, fetch, http_client, running, serve, serve_command, slow_model

ADAPTER = str(Path(__file__).parents[2] / "models" / "demo-lora" / "pirate")
CACHE = 4 << 20
BLOCK = 16


def models_file(folder, *names, **more):
    """Writes a list of copies of the demo model. more: additional keys of a name."""
    entries = [{"model": DEMO, "served-model-name": name, "kv-cache-memory-bytes": CACHE, "max-model-len": 1024,
                "enable-prompt-tokens-details": True, **more.get(name, {})} for name in names]
    path = Path(folder) / "models.yaml"
    path.write_text(json.dumps({"models": entries}))
    return str(path)


@pytest.fixture(scope="module")
def weight_bytes(tmp_path_factory):
    """The size of the demo model's weights."""
    with serve("--models", models_file(tmp_path_factory.mktemp("one"), "a", a={"preload": True})) as base:
        assert eventually(lambda: state(base)["a"]["state"] == "loaded")
        return state(base)["a"]["size"]


@pytest.fixture
def memory_for(weight_bytes):
    """Returns the flag for the memory of `count` loaded models, and of the caches of all models."""
    return lambda count, caches: f"--models-memory={count * weight_bytes + caches * CACHE + weight_bytes // 2}"


def state(base):
    return {model["id"]: model for model in http_client.get(base + "/v1/models").json()["data"]}


def loaded(base):
    return {name for name, model in state(base).items() if model["state"] == "loaded"}


def complete(base, model, prompt="Once upon a time", tokens=16, **more):
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, **more}
    return http_client.post(base + "/v1/completions", json=body)


def stream(base, model, prompt, tokens, each=lambda: None):
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    text = ""
    with http_client.stream("POST", base + "/v1/completions", json=body) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                assert "error" not in event, event
                text += event["choices"][0]["text"]
                each()
    return text


def engine_of_model(server, name):
    """Returns the process id of the model's engine, or None."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[1]) == server.pid and f"--served-model-name={name}".encode() in words:
            return int(folder.name)
    return None


def test_a_request_loads_its_model(tmp_path):
    more = {"a": {"served-model-name": ["a", "alias"]}, "b": {"enable-lora": True, "lora-modules": [f"adapter={ADAPTER}"]}}
    with serve("--models", models_file(tmp_path, "a", "b", **more)) as base:
        assert {model["state"] for model in state(base).values()} == {"unloaded"}
        assert set(state(base)) == {"a", "alias", "b", "adapter"}
        answer = complete(base, "alias").json()
        assert answer["choices"][0]["text"] and answer["model"] == "a"
        assert loaded(base) == {"a", "alias"}
        assert state(base)["a"]["last_use"] > 0 and state(base)["b"]["last_use"] is None
        assert complete(base, "adapter").json()["model"] == "adapter"
        assert loaded(base) == {"a", "alias", "b", "adapter"}
        assert state(base)["adapter"]["parent"] == "b"
        unknown = complete(base, "c")
        assert unknown.status_code == 404 and "a, b" in unknown.json()["error"]["message"]
        assert complete(base, "b", tokens=-1).status_code == 400
        without = http_client.post(base + "/v1/completions", json={"prompt": "x", "max_tokens": 1})
        assert without.json()["model"] == "a"
        one = http_client.get(base + "/v1/models/b").json()
        assert one["id"] == "b" and one["max_model_len"] == 1024
        assert http_client.get(base + "/v1/models/c").status_code == 404


def test_an_invalid_request_loads_nothing(tmp_path, memory_for):
    with serve("--models", models_file(tmp_path, "a", "b"), memory_for(1, 2)) as base:
        assert complete(base, "a").status_code == complete(base, "b").status_code == 200
        assert loaded(base) == {"b"}
        assert complete(base, "a", temperature=-1).status_code == 400
        assert loaded(base) == {"b"}


def test_requests_that_no_model_can_answer_load_nothing(tmp_path):
    with serve("--models", models_file(tmp_path, "a", "b")) as base:
        assert http_client.get(base + "/nonsense").status_code == 404
        assert http_client.post(base + "/nonsense", json={"model": "b"}).status_code == 404
        assert http_client.get(base + "/v1/chat/completions").status_code == 405
        assert http_client.post(base + "/sleep?level=1").status_code == 404, "a route of --server-dev-mode"
        assert http_client.get(base + "/octavo/cost/unknown").json() == {"cost": None}
        assert http_client.get(base + "/api/version").json()["version"]
        assert http_client.get(base + "/openapi.json").json()["paths"]
        for path in ("/v1/sessions", "/tokenizer_info"):
            refused = http_client.get(base + path)
            assert refused.status_code == 400 and refused.json()["error"]["param"] == "model", path
        assert http_client.get(base + "/octavo/live").status_code == 503
        assert {model["state"] for model in state(base).values()} == {"unloaded"}


def test_the_cost_of_a_request_is_found_at_its_model(tmp_path):
    with serve("--models", models_file(tmp_path, "a", "b")) as base:
        headers = {"X-Octavo-Cost": "1", "X-Octavo-Cost-Id": "id-7"}
        body = {"model": "b", "prompt": "Once", "max_tokens": 3, "ignore_eos": True}
        assert http_client.post(base + "/v1/completions", json=body, headers=headers).status_code == 200
        assert complete(base, "a").status_code == 200
        found = []
        assert eventually(lambda: found.append(http_client.get(base + "/octavo/cost/id-7").json()["cost"]) or found[-1])
        assert found[-1]["output_tokens"] == 3


def test_the_end_of_the_server_ends_a_first_load_and_its_requests(tmp_path):
    with running(serve_command("--models", models_file(tmp_path, "a", a={"model": slow_model(tmp_path)}), "--shutdown-timeout=1000")) as (server, base):
        def end():
            assert eventually(lambda: state(base)["a"]["state"] == "loading")
            server.terminate()
            assert server.wait(timeout=PATIENCE) == 0

        refused, _ = at_once(lambda work: work(), [lambda: complete(base, "a"), end])
        assert refused.status_code == 503 and "shutting down" in refused.json()["error"]["message"]


def test_a_client_that_disconnects_does_not_load_a_model(tmp_path):
    more = {"a": {"model": slow_model(tmp_path), "preload": True}}
    weights = Path(DEMO, "model.safetensors").stat().st_size
    with serve("--models", models_file(tmp_path, "a", "b", **more), f"--models-memory={weights + CACHE + CACHE // 2}") as base:
        def is_waiting():
            return metrics(base)['octavo:model_waiting{model_name="b"}'] == 1

        assert eventually(lambda: state(base)["a"]["state"] == "loading")
        host, port = base.removeprefix("http://").split(":")
        body = json.dumps({"model": "b", "prompt": "x"})
        for path in ["/v1/completions", "/models/b/load"]:
            with socket.create_connection((host, int(port))) as client:
                client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                assert eventually(is_waiting)
            assert eventually(lambda: not is_waiting())


def test_ollamas_keep_alive(tmp_path):
    with serve("--models", models_file(tmp_path, "a", "b", b={"idle-timeout": 1})) as base:
        def generate(**fields):
            return http_client.post(base + "/api/generate", json={"stream": False, **fields})

        def expires(name):
            loaded_ones = http_client.get(base + "/api/ps").json()["models"]
            return next((model["expires_at"] for model in loaded_ones if model["name"] == name), None)

        assert generate(model="a", prompt="Once", keep_alive=0, options={"num_predict": 3}).json()["response"]
        assert eventually(lambda: loaded(base) == set())
        assert generate(model="a").json()["done_reason"] == "load"
        assert loaded(base) == {"a"} and expires("a").startswith("9999")
        for time, year in [("24h", "20"), ("-1m", "9999"), (3600.5, "20"), (-1, "9999")]:
            assert generate(model="a", prompt="Once", keep_alive=time, options={"num_predict": 1}).status_code == 200
            assert eventually(lambda: expires("a").startswith(year)), time
        refused = generate(model="a", prompt="Once", keep_alive="5 minutes")
        assert refused.status_code == 400 and "keep_alive" in refused.json()["error"]
        assert generate(model="a", keep_alive="0s").json()["done_reason"] == "unload"
        assert eventually(lambda: loaded(base) == set())
        assert generate(model="a", keep_alive="0s").json()["done_reason"] == "unload", "it is unloaded already"
        assert loaded(base) == set()
        assert generate(model="b:latest", keep_alive=-1).json()["done_reason"] == "load"
        assert complete(base, "a").status_code == 200
        assert expires("b").startswith("9999")
        unloads = metrics(base)['octavo:model_unloads_total{model_name="b"}']
        assert generate(model="b", prompt="Once", keep_alive="1ms", options={"num_predict": 1}).status_code == 200
        assert eventually(lambda: metrics(base)['octavo:model_unloads_total{model_name="b"}'] == unloads + 1)


def test_a_request_with_keep_alive_may_end_before_the_load(tmp_path):
    slow = {"model": slow_model(tmp_path)}
    with serve("--models", models_file(tmp_path, "a", "b", "c", a=slow, b=slow)) as base:
        for body in ({"model": "a", "prompt": "Once"}, {"model": "b"}):
            late = http_client.post(base + "/api/generate", json={"keep_alive": "5m", "timeout": 0.001, **body})
            assert late.status_code == 503 and "time limit" in late.json()["error"]
        assert complete(base, "c").status_code == 200, "the table still works"


def test_adapters_of_a_folder(tmp_path, monkeypatch):
    folder = tmp_path / "adapters"
    shutil.copytree(ADAPTER, folder / "pirate")
    config = json.loads((folder / "pirate" / "adapter_config.json").read_text())
    (folder / "pirate" / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "b"}))
    monkeypatch.setenv("VLLM_LORA_RESOLVER_CACHE_DIR", str(folder))
    lora = {"enable-lora": True, "allow-runtime-lora-updating": True}
    with serve("--models", models_file(tmp_path, "a", "b", "c", a=lora, b=lora)) as base:
        assert complete(base, "pirate").json()["model"] == "pirate"
        assert loaded(base) == {"b", "pirate"}
        assert complete(base, "missing").status_code == 404


def test_the_cache_of_an_unloaded_model_stays(tmp_path, memory_for):
    prompt = "Mira and Tom walk through the forest. " * 20
    with serve("--models", models_file(tmp_path, "a", "b"), memory_for(1, 2)) as base:
        first = complete(base, "a", prompt).json()
        assert (first["usage"]["prompt_tokens_details"] or {}).get("cached_tokens", 0) == 0
        assert complete(base, "b", prompt).status_code == 200
        assert loaded(base) == {"b"} and state(base)["a"]["kv_cache_kept"]
        second = complete(base, "a", prompt).json()
        assert second["choices"][0]["text"] == first["choices"][0]["text"]
        tokens = second["usage"]["prompt_tokens"]
        assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= (tokens - 1) // BLOCK * BLOCK


def test_the_cache_of_an_engine_without_prefix_caching_is_freed(tmp_path):
    with serve("--models", models_file(tmp_path, "a", a={"enable-prefix-caching": False})) as base:
        assert http_client.post(base + "/models/a/load").json()["kv_cache_kept"]
        used = metrics(base)["octavo:models_used_bytes"]
        assert not http_client.post(base + "/models/a/unload").json()["kv_cache_kept"]
        assert metrics(base)["octavo:models_used_bytes"] == 0 < used


def test_a_running_stream_waits_for_other_models_and_continues(tmp_path, memory_for):
    with serve("--models", models_file(tmp_path, "a", "b"), memory_for(1, 2), "--models-slice=1") as base:
        undisturbed = stream(base, "a", "Once", 900)

        def interrupt(_):
            for _ in range(3):
                assert complete(base, "b").status_code == 200

        answers = at_once(lambda work: work(), [lambda: [stream(base, "a", "Once", 900) for _ in range(3)],
                                                lambda: [interrupt(i) for i in range(3)]])
        assert answers[0] == [undisturbed] * 3
        assert metrics(base)['octavo:model_unloads_total{model_name="a"}'] >= 1


def test_later_loads_map_the_converted_weights(tmp_path):
    folder = tmp_path / "weights"
    with running(serve_command("--models", models_file(tmp_path, "a", "b"), f"--weight-cache-dir={folder}")) as (server, base):
        converted = complete(base, "a").json()["choices"][0]["text"]
        assert eventually(lambda: list(folder.glob("*.octavo-weights")))
        maps = lambda name: Path(f"/proc/{engine_of_model(server, name)}/maps").read_text()
        assert ".octavo-weights" not in maps("a"), "the first load converts"
        assert http_client.post(base + "/models/a/unload").status_code == 200
        for name in ("a", "b"):
            assert complete(base, name).json()["choices"][0]["text"] == converted
            assert ".octavo-weights" in maps(name), "both are copies of one model"
    assert len(list(folder.iterdir())) == 1


def test_a_crash_of_one_engine_touches_no_other_model(tmp_path):
    with running(serve_command("--models", models_file(tmp_path, "a", "b"))) as (server, base):
        undisturbed = stream(base, "a", "Once", 300)
        assert stream(base, "b", "Once", 300) == undisturbed
        other = engine_of_model(server, "b")
        killed = []

        def kill():
            if not killed:
                killed.append(engine_of_model(server, "a"))
                os.kill(killed[0], signal.SIGKILL)

        answers = at_once(lambda work: work(), [lambda: stream(base, "a", "Once", 300, each=kill), lambda: stream(base, "b", "Once", 300)])
        assert answers == [undisturbed] * 2
        assert engine_of_model(server, "b") == other
        assert eventually(lambda: engine_of_model(server, "a") not in (None, killed[0]))


def test_load_and_unload_by_a_client(tmp_path, memory_for):
    more = {"p": {"pinned": True}}
    with serve("--models", models_file(tmp_path, "a", "b", "p", **more), memory_for(2, 3)) as base:
        assert eventually(lambda: loaded(base) == {"p"})
        post = lambda path: http_client.post(base + path)
        assert post("/models/a/load").json()["state"] == "loaded"
        assert post("/models/b/load").json()["state"] == "loaded"
        assert loaded(base) == {"b", "p"}, "the pinned model stays"
        assert post("/models/a/unload").status_code == 503, "it is not loaded"
        assert post("/models/b/unload").json()["state"] == "unloaded"
        assert loaded(base) == {"p"}
        assert post("/models/c/load").status_code == 404
        assert http_client.get(base + "/api/ps").json()["models"][0]["name"] == "p"
        assert len(http_client.get(base + "/api/tags").json()["models"]) == 3


def test_a_model_that_cannot_be_loaded(tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in Path(DEMO).iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.safetensors").write_bytes(b"x" * 1000)
    with serve("--models", models_file(tmp_path, "a", "bad", bad={"model": str(broken)})) as base:
        refused = complete(base, "bad")
        assert refused.status_code == 503 and "bad cannot be loaded" in refused.json()["error"]["message"]
        assert state(base)["bad"]["state"] == "failed" and "cannot be loaded" in state(base)["bad"]["error"]
        assert complete(base, "a").status_code == 200
        assert complete(base, "bad").status_code == 503, "at once"


def test_the_server_refuses_wrong_lists(tmp_path):
    def refusal(names, *flags, **more):
        command = shlex.split(serve_command("--models", models_file(tmp_path, *names, **more), *flags))
        command[command.index("{port}")] = "0"
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert ended.returncode == 2
        return ended.stderr

    assert "models_memory" in refusal("ab", "--models-memory=1000")
    assert "two models are named a" in refusal("aa")
    assert "did you mean --max-model-len" in refusal("a", a={"max-modl-len": 3})


def metrics(base):
    lines = fetch(base + "/metrics").splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(names) == len(set(names)), "each metric once"
    series = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert len(series) == sum(not line.startswith("#") for line in lines), "each series once"
    return {key: float(value) for key, value in series.items()}


def test_many_models_under_load(tmp_path, memory_for):
    names = [f"m{i}" for i in range(6)]
    with serve("--models", models_file(tmp_path, *names), memory_for(2, 3), "--models-slice=1") as base:
        expected = complete(base, "m0", tokens=40).json()["choices"][0]["text"]

        def client(number):
            for turn in range(6):
                name = names[(number * 5 + turn * number) % len(names)]
                answer = complete(base, name, tokens=40)
                assert answer.status_code == 200, answer.text
                assert answer.json()["choices"][0]["text"] == expected
                assert len(loaded(base)) <= 2

        at_once(client, range(8))
        values = metrics(base)
        assert sum(values[f'vllm:request_success_total{{model_name="{name}",engine="0",finished_reason="length"}}'] for name in names
                   if f'octavo:model_loaded{{model_name="{name}"}}' in values) == 49
        for name in names:
            if f'vllm:generation_tokens_total{{model_name="{name}",engine="0"}}' in values:
                assert f'octavo_engine_compute_seconds_total{{model_name="{name}",engine="0"}}' in values
        assert values["octavo:models_used_bytes"] <= values["octavo:models_memory_bytes"]
        assert eventually(lambda: http_client.get(base + "/load").json() == {"server_load": 0})


def test_names_on_the_command_line(tmp_path):
    for name in ["one", "two"]:
        (tmp_path / name).symlink_to(DEMO)
    flags = ["--kv-cache-memory-bytes", str(CACHE)]
    command = serve_command(*flags).replace("serve ", f"serve {tmp_path}/one {tmp_path}/two ", 1)
    with running(command) as (_, base):
        assert set(state(base)) == {f"{tmp_path}/one", f"{tmp_path}/two"}
        assert complete(base, f"{tmp_path}/two").status_code == 200
        assert loaded(base) == {f"{tmp_path}/two"}
    with serve("--models", str(tmp_path), *flags) as base:
        assert set(state(base)) == {"one", "two"}
        assert complete(base, "one").status_code == 200


def test_responses_belong_to_all_models(tmp_path):
    with serve("--models", models_file(tmp_path, "a", "b")) as base:
        def respond(model, **more):
            body = {"model": model, "input": "Where does Mira live?", "max_output_tokens": 4, **more}
            answer = http_client.post(base + "/v1/responses", json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        first = respond("b")["id"]
        assert http_client.get(f"{base}/v1/responses/{first}").json()["model"] == "b"
        assert loaded(base) == {"b"}, "a stored response needs no model"
        items = http_client.get(f"{base}/v1/responses/{respond('a', previous_response_id=first)['id']}/input_items")
        assert len(items.json()["data"]) == 3
        conversation = http_client.post(base + "/v1/conversations?model=b", json={}).json()["id"]
        respond("b", conversation=conversation)
        assert len(http_client.get(f"{base}/v1/conversations/{conversation}/items").json()["data"]) == 2
        assert http_client.delete(f"{base}/v1/responses/{first}").status_code == 200
        assert http_client.get(f"{base}/v1/responses/{first}").status_code == 404


def test_an_abort_reaches_every_model(tmp_path, slow_engine):
    with serve("--models", models_file(tmp_path, "a", "b", b={"executor": slow_engine})) as base:
        complete(base, "a", tokens=1)
        body = {"model": "b", "prompt": "Once", "max_tokens": 1000, "ignore_eos": True, "stream": True, "request_id": "r"}
        with http_client.stream("POST", base + "/v1/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            aborted = http_client.post(base + "/inference/v1/abort_requests", json={"request_ids": ["r"]})
            assert aborted.json()["aborted"] == 1
            assert '"finish_reason":"abort"' in "".join(lines)
