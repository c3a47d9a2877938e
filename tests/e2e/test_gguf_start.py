"""A server with a GGUF file is ready before its matrices are converted, and answers the same."""

import contextlib
import shlex
import shutil
import subprocess
from pathlib import Path

import openai
from conftest import PATIENCE, engine_of, eventually, fetch, free_port, serve_command, tiny

MODEL = Path(__file__).parents[1] / "data" / "gguf" / "llama-q4_k_m" / "model.gguf"
CONVERTED = "the last matrices of the file are converted"


@contextlib.contextmanager
def logged(log, *flags):
    """Runs a server whose log is written to a file, and yields its process and base URL."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(shlex.split(serve_command(*flags).replace("{port}", str(port))), stderr=output)

    def is_ready():
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError):
            return fetch(base + "/health") is not None

    try:
        assert eventually(is_ready, PATIENCE)
        yield process, base
    finally:
        process.kill()
        process.wait()


def answer(base):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    reply = client.completions.create(
        model=client.models.list().data[0].id, prompt=[5, 6, 7, 8], max_tokens=8, temperature=0, logprobs=3,
        extra_body={"ignore_eos": True})
    return reply.choices[0].logprobs.token_logprobs


def test_answers_do_not_depend_on_when_matrices_are_converted(tmp_path):
    model = str(shutil.copy(MODEL, tmp_path / "model.gguf"))
    flags = (model, "--tokenizer", tiny("llama", tmp_path), "--max-model-len", "32")
    log = tmp_path / "late.log"
    with logged(log, *flags) as (server, base):
        late = answer(base)
        assert eventually(lambda: CONVERTED in log.read_text(), PATIENCE)
        # Nobody needs the file any more.
        assert eventually(lambda: model not in Path(f"/proc/{engine_of(server)}/maps").read_text(), PATIENCE)
        assert answer(base) == late
    log = tmp_path / "now.log"
    with logged(log, *flags, "--no-engine-process") as (server, base):
        assert answer(base) == late
    assert CONVERTED not in log.read_text()
