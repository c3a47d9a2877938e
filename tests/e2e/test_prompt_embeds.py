"""Prompts as embeddings: with the rows of the model's own embedding table, the answers equal those of the tokens."""

import base64
import io
import json
import pickle
import sys
import zipfile

import numpy
import openai
import pytest
from conftest import serve
from test_python import DEMO, LLM, ROOT, SamplingParams

TEXT = "Once upon a time there was a small boat"
FLAGS = ("--device", "cpu", "--dtype", "float32", "--enable-prompt-embeds", "--served-model-name", "demo")


def table():
    file = (ROOT / "models/demo/model.safetensors").read_bytes()
    header = int.from_bytes(file[:8], "little")
    begin, end = json.loads(file[8:8 + header])["model.embed_tokens.weight"]["data_offsets"]
    bits = numpy.frombuffer(file[8 + header + begin:8 + header + end], numpy.uint16)
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32).reshape(-1, 256)


def safetensors(rows, dtype=None, shape=None, name="prompt_embeds"):
    data = rows.tobytes()
    entry = {"dtype": dtype or {"float32": "F32", "float16": "F16"}[str(rows.dtype)], "shape": shape or list(rows.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({name: entry, "__metadata__": {"made": "here"}}).encode()
    header = header.ljust(128)  # begins with the byte 0x80, as files of torch.save do
    return len(header).to_bytes(8, "little") + header + data


def encoded(file):
    return base64.b64encode(file).decode()


@pytest.fixture(scope="module", params=[1, 2])
def base(request):
    with serve(*FLAGS, "--tensor-parallel-size", str(request.param)) as base:
        yield base


def complete(base, **fields):
    return openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).completions.create(
        model="demo", max_tokens=24, temperature=0, extra_body=fields, prompt="")


def answer_to(base, text):
    """Returns the choice of a greedy answer to a text, and the rows of its tokens."""
    choice = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0).completions.create(
        model="demo", prompt=text, max_tokens=24, temperature=0, extra_body={"return_token_ids": True}).choices[0]
    return choice, table()[choice.prompt_token_ids]


def test_rows_answer_as_their_text(base):
    (expected, rows), (other, other_rows) = (answer_to(base, text) for text in (TEXT, "A dog"))
    bf16 = (rows.view(numpy.uint32) >> 16).astype(numpy.uint16)
    for file in (safetensors(rows), safetensors(rows[None]), safetensors(bf16, "BF16")):
        reply = complete(base, prompt_embeds=encoded(file), return_token_ids=True)
        assert reply.choices[0].text == expected.text
        assert reply.usage.prompt_tokens == len(rows)
        assert not reply.choices[0].prompt_token_ids, "the prompt has no ids"
    both = complete(base, prompt_embeds=[encoded(safetensors(rows)), encoded(safetensors(other_rows))])
    assert [choice.text for choice in both.choices] == [expected.text, other.text]
    assert complete(base, prompt_embeds=encoded(safetensors(rows.astype(numpy.float16)))).choices[0].text


def torch_file():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps([1.0]))
    return out.getvalue()


ROWS = numpy.zeros((3, 256), numpy.float32)


@pytest.mark.parametrize("value, message", [
    (encoded(torch_file()), "is a file of torch.save .pickle., which the server never reads because it can contain code: send a safetensors file in base64"),
    (encoded(pickle.dumps([1.0], protocol=2)), "is a file of torch.save"),
    ("!", "is not base64"),
    ("", "is not a safetensors file"),
    (encoded(b"\xff" * 64), "is not a safetensors file"),
    (encoded(safetensors(ROWS)[:-1]), "must have 3072 bytes of data for 3 rows, got 3071"),
    (encoded(safetensors(ROWS[:, :255])), r"must have the shape .tokens, 256., the model's hidden size, got .3, 255."),
    (encoded(safetensors(ROWS, shape=[2**62, 256])), "has 4611686018427387904 rows, but with a context of"),
    (encoded(safetensors(ROWS, shape=[0, 256])), "has 0 rows"),
    (encoded(safetensors(ROWS, "F64")), "must have the type F32, F16 or BF16, got F64"),
    (encoded(safetensors(numpy.full((1, 256), numpy.nan, numpy.float32))), "must contain only finite numbers"),
    (encoded(safetensors(ROWS, name="__metadata__")), "must have exactly one tensor, got none"),
    (7, "must be a base64 string, or a list of base64 strings"),
])
def test_what_is_not_a_tensor_of_rows_is_refused(base, value, message):
    with pytest.raises(openai.BadRequestError, match=message) as refused:
        complete(base, prompt_embeds=value)
    assert refused.value.body["param"] == "prompt_embeds"


def test_an_empty_list_counts_as_missing(base):
    with pytest.raises(openai.BadRequestError, match="Either prompt or prompt_embeds must be provided and non-empty") as refused:
        complete(base, prompt_embeds=[])
    assert refused.value.body["param"] == "prompt"


@pytest.mark.parametrize("fields", [{"echo": True}, {"suffix": "end"}, {"truncate_prompt_tokens": 2}, {"prompt_logprobs": 1},
                                    {"use_beam_search": True}, {"prompt": "text"}])
def test_fields_about_the_prompts_text_are_refused(base, fields):
    with pytest.raises(openai.BadRequestError, match="cannot be combined with prompt_embeds") as refused:
        complete(base, prompt_embeds=encoded(safetensors(ROWS)), **fields)
    assert refused.value.body["param"] == next(iter(fields))


def test_without_the_flag_they_are_refused(server):
    with pytest.raises(openai.BadRequestError, match="prompt_embeds: .*--enable-prompt-embeds|is not enabled: start the server with --enable-prompt-embeds"):
        openai.OpenAI(base_url=server + "/v1", api_key="none").completions.create(
            model="demo", prompt="", extra_body={"prompt_embeds": encoded(safetensors(ROWS))})


def test_in_python():
    greedy = SamplingParams(temperature=0, max_tokens=24)
    with LLM(DEMO, dtype="float32", enable_prompt_embeds=True, kv_cache_memory_bytes="64M") as llm:
        expected = llm.generate(TEXT, greedy)[0]
        rows = table()[expected.prompt_token_ids]
        prompts = [{"prompt_embeds": rows}, {"prompt_embeds": rows.astype(numpy.float32), "cache_salt": "a"}]
        if torch := sys.modules.get("torch"):
            prompts.append({"prompt_embeds": torch.tensor(rows)})
        for output in llm.generate(prompts, greedy):
            assert output.outputs[0].text == expected.outputs[0].text
            assert output.prompt is None and not output.prompt_token_ids
        with pytest.raises(ValueError, match="prompt_embeds: must be a tensor or an array of float32, float16, bfloat16, got list"):
            llm.generate({"prompt_embeds": [[0.0]]}, greedy)
        with pytest.raises(Exception, match="prompt_embeds: must have the shape"):
            llm.generate({"prompt_embeds": rows[:, :8].copy()}, greedy)
