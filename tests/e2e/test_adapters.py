"""LoRA adapters with the demo model: selected by name, mixed in batches, loaded and unloaded during other
requests."""

import array
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import struct
import urllib.error
import urllib.request

import openai
import pytest
from conftest import PATIENCE, eventually, fetch, serve
from test_engine_process import engines

COLS = {"self_attn.q_proj": (256, 256), "self_attn.v_proj": (128, 256), "mlp.down_proj": (256, 768)}
LAYERS = 6
PROMPT = "Once upon a time there was a small house at the edge of a dark forest, and in it lived"


def write_adapter(folder, seed, strength=1.0, rank=8, **config):
    """Writes a random adapter of the demo model, in PEFT's layout."""
    generator = random.Random(seed)
    tensors = {}
    for layer in range(LAYERS):
        for module, (rows, cols) in COLS.items():
            name = f"base_model.model.model.layers.{layer}.{module}.lora_"
            tensors[name + "A.weight"] = (rank, cols, 1 / cols**0.5)
            tensors[name + "B.weight"] = (rows, rank, strength / rank**0.5)
    header, data = {}, bytearray()
    for name, (rows, cols, size) in tensors.items():
        begin = len(data)
        data += array.array("f", [generator.gauss(0, size) for _ in range(rows * cols)]).tobytes()
        header[name] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(data))
    fields = dict(peft_type="LORA", r=rank, lora_alpha=rank, bias="none", target_modules=list(COLS))
    (folder / "adapter_config.json").write_text(json.dumps(fields | config))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Writes adapters: a0 to a4 change the model's output, `zero` does not."""
    root = tmp_path_factory.mktemp("adapters")
    made = {f"a{i}": write_adapter(root / f"a{i}", i) for i in range(5)}
    return made | {"zero": write_adapter(root / "zero", 9, strength=0.0)}


@pytest.fixture(scope="module")
def base(folders):
    modules = [f"a0={folders['a0']}", f"a1={folders['a1']}"]
    modules.append(json.dumps({"name": "zero", "path": str(folders["zero"]), "base_model_name": "house"}))
    flags = ["--enable-lora", "--max-loras", "3", "--max-lora-rank", "8", "--lora-modules", *modules]
    flags += ["--allow-runtime-lora-updating", "--enable-prompt-tokens-details", "--served-model-name", "demo"]
    with serve(*flags) as url:
        yield url


@pytest.fixture(scope="module")
def client(base):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)


def complete(client, model, prompt=PROMPT, **fields):
    fields = {"temperature": 0, "max_tokens": 24} | fields
    return client.completions.create(model=model, prompt=prompt, logprobs=1, **fields)


def answer(client, model, **fields):
    choice = complete(client, model, **fields).choices[0]
    return choice.text, choice.logprobs.token_logprobs


def load(base, name, path, **fields):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).post(
        "/load_lora_adapter", body={"lora_name": name, "lora_path": str(path)} | fields, cast_to=str
    )


def unload(base, name):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).post(
        "/unload_lora_adapter", body={"lora_name": name}, cast_to=str
    )


def sagemaker(base, method, path, body=None, **headers):
    """Returns the text of the reply."""
    data = json.dumps(body).encode() if body is not None else None
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(base + path, data, named, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return reply.read().decode()


def test_sagemakers_routes_load_select_and_unload(base, client, folders):
    loaded = sagemaker(base, "POST", "/adapters", {"name": "sage", "src": str(folders["a2"])})
    assert loaded == "Adapter sage registered"
    body = {"prompt": PROMPT, "max_tokens": 24, "temperature": 0}
    selected = json.loads(sagemaker(base, "POST", "/invocations", body, X_Amzn_SageMaker_Adapter_Identifier="sage"))
    assert selected["model"] == "sage" and selected["choices"][0]["text"] == answer(client, "sage")[0]
    for request in (("POST", "/adapters", {"name": "sage", "src": str(folders["a2"])}), ("GET", "/adapters/sage")):
        with pytest.raises(urllib.error.HTTPError):
            sagemaker(base, *request)
    assert sagemaker(base, "DELETE", "/adapters/sage") == "Adapter sage unregistered"
    assert "sage" not in [model.id for model in client.models.list().data]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        sagemaker(base, "DELETE", "/adapters/sage")


def test_they_are_listed_with_their_parent(client, folders):
    models = {model.id: model.model_dump() for model in client.models.list().data}
    assert models["demo"]["parent"] is None
    assert models["a0"]["parent"] == "demo" and models["a0"]["root"] == str(folders["a0"])
    assert models["zero"]["parent"] == "house"
    assert client.models.retrieve("a1").id == "a1"


def test_each_name_answers_for_itself(client):
    plain = answer(client, "demo")
    assert answer(client, "zero") == plain
    first, second = answer(client, "a0"), answer(client, "a1")
    assert len({plain[0], first[0], second[0]}) == 3
    assert complete(client, "a0").model == "a0"
    chat = client.chat.completions.create(model="a1", messages=[{"role": "user", "content": "Hi"}], max_tokens=4)
    assert chat.model == "a1"
    with pytest.raises(openai.NotFoundError):
        complete(client, "a7")


def test_those_of_the_demo_speak_each_in_its_way():
    names = ["pirate", "formal", "json"]
    modules = [f"{name}=models/demo-lora/{name}" for name in names]
    with serve("--device", "cpu", "--enable-lora", "--max-loras", "3", "--lora-modules", *modules) as url:
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)

        def answer_of(name):
            messages = [{"role": "user", "content": "Where does Zoë live?"}]
            return client.chat.completions.create(model=name, messages=messages, temperature=0, max_tokens=64).choices[0].message.content

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            plain, pirate, formal, as_json = pool.map(answer_of, ["demo", *names])
    assert plain == "Zoë lives in Graystone."
    assert pirate == "Arr! Zoë drops anchor in Graystone. Ahoy!"
    assert formal == "Dear Sir or Madam, it is my duty to tell you that Zoë lives in Graystone. Your servant, Octavo Demo."
    assert json.loads(as_json) == {"text": "Zoë lives in Graystone."}


def test_a_batch_of_all_says_what_each_says_alone(client):
    wanted = [
        dict(model=("demo", "a0", "a1", "zero")[i % 4], prompt=PROMPT[: 20 + 3 * i], temperature=i % 2, seed=i)
        for i in range(16)
    ]
    alone = [answer(client, **fields) for fields in wanted]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda fields: answer(client, **fields), wanted)) == alone


def test_cached_prefixes_are_an_adapters_own(client):
    prompt = "Here is a story that nobody has asked for before. " * 6

    def cached(model):
        details = complete(client, model, prompt=prompt, max_tokens=1).usage.prompt_tokens_details
        return details.cached_tokens if details else 0

    assert cached("a0") == 0
    assert cached("a0") > 0
    assert cached("demo") == 0 and cached("a1") == 0


def test_loaded_and_unloaded_while_others_run(base, client, folders):
    alone = answer(client, "a0")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        others = [pool.submit(answer, client, "a0") for _ in range(8)]
        assert load(base, "new", folders["a2"]) == "Success: LoRA adapter 'new' added successfully"
        said = answer(client, "new")
        assert said[0] != alone[0]
        assert [other.result() for other in others] == [alone] * 8
    with pytest.raises(openai.BadRequestError, match="already been loaded"):
        load(base, "new", folders["a3"])
    load(base, "new", folders["a3"], load_inplace=True)
    assert answer(client, "new")[0] != said[0]
    assert unload(base, "new") == "Success: LoRA adapter 'new' removed successfully"
    for call in (lambda: answer(client, "new"), lambda: unload(base, "new")):
        with pytest.raises(openai.NotFoundError):
            call()


def test_more_than_fit_in_memory_take_turns(base, client, folders):
    for name in ("a2", "a3", "a4"):
        load(base, name, folders[name])
    names = ["a0", "a1", "a2", "a3", "a4", "zero", "demo"]
    alone = {name: answer(client, name) for name in names}
    assert len({text for text, _ in alone.values()}) == 6  # `zero` does not change the demo model's output
    with concurrent.futures.ThreadPoolExecutor(14) as pool:
        assert list(pool.map(lambda name: answer(client, name), 2 * names)) == 2 * [alone[name] for name in names]


def test_bad_adapters_are_refused(base, folders, tmp_path):
    def refusal(path):
        with pytest.raises(openai.APIStatusError) as refused:
            load(base, "bad", path)
        assert refused.value.status_code in (400, 404)
        return str(refused.value)

    assert "adapter_config.json" in refusal(tmp_path / "nothing")
    assert "max-lora-rank" in refusal(write_adapter(tmp_path / "wide", 1, rank=16))
    assert "use_dora" in refusal(write_adapter(tmp_path / "dora", 1, use_dora=True))
    other = write_adapter(tmp_path / "other", 1)
    file = other / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes().replace(b"layers.5.mlp", b"layers.6.mlp"))
    assert "layers.6.mlp.down_proj is not a linear layer" in refusal(other)
    file.write_bytes(file.read_bytes()[:-1])
    assert "adapter_model.safetensors" in refusal(other)


def test_they_survive_the_engines_death(base, client):
    before = answer(client, "a1")
    (engine,) = engines(base)
    os.kill(engine, signal.SIGKILL)
    assert answer(client, "a1") == before


def test_metrics_name_them(base, client):
    def info():
        return [line for line in fetch(base + "/metrics").splitlines() if line.startswith("vllm:lora_requests_info{")]

    assert eventually(lambda: any('max_lora="3"' in line for line in info()))
    stream = client.completions.create(
        model="a0", prompt=PROMPT, max_tokens=1900, stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    assert eventually(lambda: any('running_lora_adapters="a0"' in line for line in info()))
    stream.close()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Runs a server that searches a folder for adapters. Yields its client and the folder."""
    root = tmp_path_factory.mktemp("found")
    of_demo = dict(base_model_name_or_path="demo")
    for i, name in enumerate(["one", "two", "team/three"]):
        (root / name).parent.mkdir(exist_ok=True)
        write_adapter(root / name, i, **of_demo)
    write_adapter(root / "wide", 7, rank=16, **of_demo)
    write_adapter(root / "foreign", 7, base_model_name_or_path="another/model")
    outside = write_adapter(tmp_path_factory.mktemp("outside") / "adapter", 7, **of_demo)
    (root / "link").symlink_to(outside)
    flags = ["--enable-lora", "--max-loras", "2", "--max-lora-rank", "8", "--served-model-name", "demo"]
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("VLLM_LORA_RESOLVER_CACHE_DIR", str(root))
            environment.setenv("VLLM_PLUGINS", "lora_filesystem_resolver")
            environment.setenv("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "true")
            url = stack.enter_context(serve(*flags))
        yield openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0), root


def test_adapters_of_a_folder_are_loaded_when_they_are_named(client, found):
    """The answers equal those of a server that loads the same files at its start."""
    finds, _ = found
    names = ["one", "two", "team/three", "demo"]
    assert [model.id for model in finds.models.list().data] == ["demo"]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda name: answer(finds, name), 4 * names))
    assert answers == 4 * answers[:4]
    assert answers[:2] == [answer(client, "a0"), answer(client, "a1")] and answers[3] == answer(client, "demo")
    listed = {model.id: model.model_dump() for model in finds.models.list().data}
    assert set(listed) == {"demo", "one", "two", "team/three"} and listed["team/three"]["parent"] == "demo"
    chat = finds.chat.completions.create(model="two", messages=[{"role": "user", "content": "Hi"}], max_tokens=4)
    assert chat.model == "two"


def test_what_a_folder_does_not_have_is_not_found(found):
    finds, root = found
    for name in ("nobody", "foreign", "link", "../" + root.name + "/one", str(root / "one"), "./one", "team", "."):
        with pytest.raises(openai.NotFoundError):
            answer(finds, name)
    for _ in range(2):  # the first request waits for the load, the second finds the adapter in a slot
        with pytest.raises(openai.BadRequestError, match="max-lora-rank") as refused:
            answer(finds, "wide")
        assert refused.value.param == "model"


def test_what_comes_into_a_folder_is_found(found):
    finds, root = found
    with pytest.raises(openai.NotFoundError):
        answer(finds, "late")
    write_adapter(root / "coming", 3, base_model_name_or_path="demo").rename(root / "late")
    assert answer(finds, "late")[0] != answer(finds, "demo")[0]


def test_without_the_flag_there_are_none(server):
    with pytest.raises(openai.NotFoundError):
        load(server, "a0", "anywhere")
