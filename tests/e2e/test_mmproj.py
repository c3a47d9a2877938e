"""Pairs of GGUF files, a language model and its mmproj file, with OpenAI's client: the answers are those of
transformers."""

import math
import shutil
import subprocess
from pathlib import Path

import openai
import pytest
from conftest import PATIENCE, serve
from test_vision import CASES, CONVERSATION, image, tensor, text

PAIRS = Path("tests/data/gguf_vision")


def best_logprobs(case):
    logits, (rows, vocabulary) = tensor("logits", CASES / case)
    last = logits[(rows - 1) * vocabulary:]
    total = math.log(sum(math.exp(x) for x in last))
    return sorted((x - total for x in last), reverse=True)[:5]


def ask(base, messages, **options):
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
    return client.chat.completions.create(model="see", messages=messages, temperature=0, **options)


def flags(model):
    return (str(model), "--served-model-name", "see", "--dtype", "float32", "--limit-mm-per-prompt", '{"image": 3}')


# The file is named by a flag, or the server finds it beside the model.
@pytest.mark.parametrize(("case", "named"), [("idefics3", True), ("qwen2_5_vl", False), ("gemma3", False)])
def test_answers_are_those_of_transformers(case, named, tmp_path):
    files = PAIRS / case
    model = shutil.copy(files / "model.gguf", tmp_path / "see-F16.gguf")
    if named:
        more = ("--mmproj", str(files / "mmproj.gguf"))
    else:
        shutil.copy(files / "mmproj.gguf", tmp_path / "mmproj-see-F16.gguf")
        more = ()
    with serve(*flags(model), *more) as base:
        reply = ask(base, CONVERSATION, max_tokens=1, logprobs=True, top_logprobs=5)
    assert reply.usage.prompt_tokens == len(tensor("ids", CASES / case)[0])
    top = reply.choices[0].logprobs.content[0].top_logprobs
    # The second picture is a JPEG, whose pixels may be rounded differently.
    assert [t.logprob for t in top] == pytest.approx(best_logprobs(case), abs=2e-2)


def test_an_encoder_that_does_not_fit_leaves_a_text_model(tmp_path):
    model = shutil.copy(PAIRS / "qwen2_5_vl" / "model.gguf", tmp_path / "model.gguf")
    shutil.copy(PAIRS / "gemma3" / "mmproj.gguf", tmp_path / "mmproj.gguf")
    with serve(*flags(model)) as base:
        assert ask(base, [{"role": "user", "content": "Hello"}], max_tokens=1).usage.completion_tokens == 1
        with pytest.raises(openai.BadRequestError):
            ask(base, [{"role": "user", "content": [image("rgb.png"), text("What is it?")]}], max_tokens=1)


def refused(*arguments):
    done = subprocess.run(["build/release/octavo", "serve", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    return done.stderr


def test_errors_say_which_files_to_give(tmp_path):
    model, mmproj = PAIRS / "gemma3" / "model.gguf", PAIRS / "gemma3" / "mmproj.gguf"
    other = PAIRS / "qwen2_5_vl" / "mmproj.gguf"
    error = refused(model, "--mmproj", other)
    assert "qwen2.5vl_merger" in error and "qwen2vl" in error and "gemma3" in error
    assert "--mmproj" in refused(mmproj)
    assert "must be clip" in refused(model, "--mmproj", model)
    assert "only for GGUF files" in refused(CASES / "gemma3", "--mmproj", mmproj)
    for name in ("mmproj-F16.gguf", "mmproj-BF16.gguf"):
        shutil.copy(mmproj, tmp_path / name)
    several = refused(shutil.copy(model, tmp_path / "model.gguf"))
    assert all(word in several for word in ("mmproj-BF16.gguf", "mmproj-F16.gguf", "--no-mmproj"))
