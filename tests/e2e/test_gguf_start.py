"""A server with a GGUF file is ready before its matrices are converted, and answers the same."""

import shutil
from pathlib import Path

import openai
from conftest import engine_of, running, serve_command, tiny

MODEL = Path(__file__).parents[1] / "data" / "gguf" / "llama-q4_k_m" / "model.gguf"


def answer(base):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    reply = client.completions.create(
        model=client.models.list().data[0].id, prompt=[5, 6, 7, 8], max_tokens=8, temperature=0, logprobs=3,
        extra_body={"ignore_eos": True})
    return reply.choices[0].logprobs.token_logprobs


def test_answers_do_not_depend_on_when_matrices_are_converted(tmp_path):
    model = shutil.copy(MODEL, tmp_path / "model.gguf")
    flags = (str(model), "--tokenizer", tiny("llama", tmp_path), "--max-model-len", "32")
    answers, mapped = [], []
    for more, process_of in (((), engine_of), (("--no-engine-process",), lambda server: server.pid)):
        with running(serve_command(*flags, *more)) as (server, base):
            answers.append(answer(base))
            mapped.append(str(model) in Path(f"/proc/{process_of(server)}/maps").read_text())
    assert answers[0] == answers[1]
    # With an engine process, the file stays mapped, because the engine started before it had read all of it.
    assert mapped == [True, False]
