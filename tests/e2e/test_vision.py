"""A vision model, with OpenAI's client: a small random model (tests/data/vision), compared with transformers'
logits."""

import base64
import functools
import http.server
import json
import math
import pathlib
import shutil
import struct
import threading
import zlib

import anthropic
import openai
import pytest

from conftest import http_client, serve

CASES = pathlib.Path("tests/data/vision")
CASE = CASES / "idefics3"
QUESTION = "What is in this picture?"


def tensor(name, case=CASE):
    """Returns an F32 or I32 tensor of the golden file as a flat list, and its shape."""
    data = (case / "golden.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    found = json.loads(data[8:8 + size])[name]
    begin, end = found["data_offsets"]
    kind = {"F32": "f", "I32": "i"}[found["dtype"]]
    return struct.unpack(f"<{(end - begin) // 4}{kind}", data[8 + size + begin:8 + size + end]), found["shape"]


def image(name, kind="png"):
    text = base64.b64encode((CASE / name).read_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{text}"}}


def text(words):
    return {"type": "text", "text": words}


CONVERSATION = [
    {"role": "user", "content": [image("rgb.png"), text(QUESTION)]},
    {"role": "assistant", "content": "Waves."},
    {"role": "user", "content": [text("And here?"), image("photo.jpg", "jpeg")]},
]


@pytest.fixture(scope="module")
def base():
    with serve("--model", str(CASE), "--served-model-name", "see", "--dtype", "float32", "--limit-mm-per-prompt", '{"image": 3}',
               "--enable-prompt-tokens-details", "--max-num-batched-tokens", "64") as base:
        yield base


@pytest.fixture
def client(base):
    return openai.OpenAI(base_url=f"{base}/v1", api_key="none")


def ask(client, messages, **options):
    return client.chat.completions.create(model="see", messages=messages, **{"temperature": 0, "max_tokens": 8, **options})


def test_answers_are_those_of_transformers(client):
    ids, _ = tensor("ids")
    logits, (rows, vocabulary) = tensor("logits")
    last = logits[(rows - 1) * vocabulary:]
    total = math.log(sum(math.exp(x) for x in last))
    best = sorted((x - total for x in last), reverse=True)[:5]
    reply = ask(client, CONVERSATION, max_tokens=1, logprobs=True, top_logprobs=5)
    assert reply.usage.prompt_tokens == len(ids)
    top = reply.choices[0].logprobs.content[0].top_logprobs
    # The second picture is a JPEG, whose pixels may be rounded differently.
    assert [t.logprob for t in top] == pytest.approx(best, abs=2e-2)


def test_an_earlier_turn_is_found_in_the_cache(client):
    first = [{"role": "user", "content": [image("palette.png"), text(QUESTION)]}]
    answer = ask(client, first)
    again = ask(client, first)
    assert again.choices[0].message.content == answer.choices[0].message.content
    assert again.usage.prompt_tokens_details.cached_tokens >= again.usage.prompt_tokens // 16 * 16 - 16
    other = ask(client, [{"role": "user", "content": [image("alpha.png"), text(QUESTION)]}])
    assert other.usage.prompt_tokens_details.cached_tokens < 16  # only the tokens before the image
    after = ask(client, first + [{"role": "assistant", "content": "Hm."}, {"role": "user", "content": "And?"}])
    assert after.usage.prompt_tokens_details.cached_tokens >= again.usage.prompt_tokens // 16 * 16 - 16


def test_streams_text_and_several_answers(client):
    whole = ask(client, CONVERSATION, max_tokens=6)
    stream = ask(client, CONVERSATION, stream=True, max_tokens=6)
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    several = ask(client, CONVERSATION, n=3, temperature=1, seed=5)
    assert [choice.index for choice in several.choices] == [0, 1, 2]
    alone = ask(client, [{"role": "user", "content": "No picture at all."}])
    assert alone.usage.prompt_tokens < 60


def test_errors_are_400_and_name_the_part(client):
    def refused(part):
        with pytest.raises(openai.BadRequestError) as error:
            ask(client, [{"role": "user", "content": [text("Look:"), part]}])
        return error.value

    broken = image("rgb.png")
    broken["image_url"]["url"] = broken["image_url"]["url"][:3000]
    for part, message in [
        (broken, "the PNG image is damaged"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%%"}}, "not a base64 character"),
        ({"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}, "start the server with --allowed-media-domains 127.0.0.1"),
        ({"type": "video_url", "video_url": {"url": "data:,"}}, "takes images and no videos"),
        ({"type": "film"}, "text, thinking, image_url, video_url, audio_url"),
    ]:
        error = refused(part)
        assert message in str(error) and "messages[0].content[1]" in error.param
    with pytest.raises(openai.BadRequestError, match="At most 3 image"):
        ask(client, [{"role": "user", "content": [image("rgb.png")] * 4}])


def test_beam_search_of_an_image(client):
    messages = [{"role": "user", "content": [text(QUESTION), image("rgb.png")]}]
    fields = {"extra_body": {"use_beam_search": True, "length_penalty": 0, "ignore_eos": True, "return_token_ids": True}, "logprobs": True}
    def beams(n):
        return client.chat.completions.create(model="see", messages=messages, max_tokens=6, n=n, **fields).choices
    greedy = ask(client, messages, max_tokens=6, extra_body={"ignore_eos": True, "return_token_ids": True}).choices[0]
    assert beams(1)[0].token_ids == greedy.token_ids
    scores = [sum(token.logprob for token in choice.logprobs.content) for choice in beams(4)]
    assert len(set(scores)) == 4 and scores == sorted(scores, reverse=True)


def test_tokenize_counts_images(base):
    ids, _ = tensor("ids")
    reply = http_client.post(f"{base}/tokenize", json={"model": "see", "messages": CONVERSATION}).json()
    assert reply["count"] == len(ids)


def test_fewer_tiles_when_asked():
    with serve("--model", str(CASE), "--served-model-name", "see", "--mm-processor-kwargs", '{"do_image_splitting": false}') as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        reply = ask(client, [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}])
        assert reply.usage.prompt_tokens < 60


def test_without_images_they_are_refused():
    with serve("--model", str(CASE), "--served-model-name", "see", "--language-model-only") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        with pytest.raises(openai.BadRequestError, match="see is not a multimodal model"):
            ask(client, CONVERSATION)
        assert ask(client, [{"role": "user", "content": "Text."}]).usage.completion_tokens > 0


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl", "qwen3_5_moe_vl", "internvl", "gemma3", "gemma4", "gemma4-whole",
                                  "llava", "llava_next", "llava_onevision", "mistral3", "pixtral"])
def test_greedy_answers_of_each_family_are_those_of_transformers(name):
    """All cases use the same images. The prompt is computed in small steps."""
    ids, _ = tensor("ids", CASES / name)
    answer, _ = tensor("answer", CASES / name)
    with serve("--model", str(CASES / name), "--served-model-name", "see", "--dtype", "float32", "--max-num-seqs", "4",
               "--max-num-batched-tokens", "80" if name == "gemma4-whole" else "32", "--enable-prompt-tokens-details", "--mamba-block-size", "32") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        for again in (False, True):
            reply = ask(client, CONVERSATION, max_tokens=len(answer), extra_body={"ignore_eos": True, "return_token_ids": True})
            assert reply.choices[0].token_ids == list(answer)
            assert reply.usage.prompt_tokens == len(ids)
            cached = reply.usage.prompt_tokens_details
            assert (cached is not None and cached.cached_tokens > 0) == again
        assert ask(client, [{"role": "user", "content": [text("No picture at all.")]}]).usage.prompt_tokens < len(ids)


def test_images_at_addresses(tmp_path):
    """Images from allowed hosts and from the allowed folder get the answer that the same bytes get in a data: URL."""
    shutil.copy(CASE / "rgb.png", tmp_path)
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{files.server_address[1]}/rgb.png"
    with serve("--model", str(CASE), "--served-model-name", "see", "--allowed-media-domains", "127.0.0.1", "--allowed-local-media-path",
               str(tmp_path)) as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        expected = ask(client, [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}]).choices[0].message.content
        for url in (at, f"file://{tmp_path}/rgb.png"):
            part = {"type": "image_url", "image_url": {"url": url}}
            assert ask(client, [{"role": "user", "content": [part, text(QUESTION)]}]).choices[0].message.content == expected
        for url, why in ((at.replace("127.0.0.1", "localhost"), "the host localhost is not in --allowed-media-domains"), (at + "x", "returned status 404"),
                         ("file:///etc/hostname", "does not contain this file"), (f"file://{tmp_path}/../x", "does not contain this file")):
            with pytest.raises(openai.BadRequestError, match=why):
                ask(client, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])
    files.shutdown()


def test_the_other_protocols_see_the_same(client, base):
    expected = ask(client, [{"role": "user", "content": [text(QUESTION), image("rgb.png")]}], max_tokens=8).choices[0].message.content
    url = image("rgb.png")["image_url"]["url"]
    answer = client.responses.create(model="see", temperature=0, max_output_tokens=8, input=[
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}, {"type": "input_image", "image_url": url}]}])
    assert answer.output_text == expected
    source = {"type": "base64", "media_type": "image/png", "data": url.split(",")[1]}
    message = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0).messages.create(
        model="see", max_tokens=8, extra_body={"temperature": 0}, messages=[{"role": "user", "content": [text(QUESTION), {"type": "image", "source": source}]}])
    assert message.content[0].text == expected


def test_images_of_any_size_are_as_large_as_asked():
    def tokens(*options):
        with serve("--model", str(CASES / "qwen2_vl"), "--served-model-name", "see", *options) as base:
            client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
            return ask(client, [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}]).usage.prompt_tokens

    # 61 x 45 pixels are 5 x 4 tokens of 12 x 12 pixels, or 3 x 2 tokens.
    assert tokens() - tokens("--mm-processor-kwargs", '{"min_pixels": 144, "max_pixels": 1000}') == 14


def test_a_request_may_have_its_images_smaller():
    with serve("--model", str(CASES / "qwen2_vl"), "--served-model-name", "see") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")

        def tokens(**processor):
            messages = [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}]
            return ask(client, messages, extra_body={"mm_processor_kwargs": processor}).usage.prompt_tokens

        assert tokens() - tokens(min_pixels=144, max_pixels=1000) == 14
        with pytest.raises(openai.BadRequestError, match="mm_processor_kwargs.max_pixels: must be from 144 to 2880"):
            tokens(max_pixels=10**9)


def test_images_are_cut_into_as_many_tiles_as_asked():
    def tokens(*options):
        with serve("--model", str(CASES / "internvl"), "--served-model-name", "see", *options) as base:
            client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
            return ask(client, [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}]).usage.prompt_tokens

    # 4 tiles and the whole image with 4 tokens each, or only the whole image.
    assert tokens() - tokens("--mm-processor-kwargs", '{"max_patches": 1}') == 16


def test_needles_are_refused():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 500, 2, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(2 * (1 + 3 * 500)))
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    needle = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(file).decode()}}
    with serve("--model", str(CASES / "qwen2_vl"), "--served-model-name", "see") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        with pytest.raises(openai.BadRequestError, match="500 x 2 pixels") as error:
            ask(client, [{"role": "user", "content": [text("Look:"), needle]}])
        assert "messages[0].content[1]" in error.value.param


PHI = CASES / "phi4_mm"


def phi_image(name, kind="png"):
    data = base64.b64encode((PHI / name).read_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{data}"}}


def test_images_switch_on_the_adapter_that_comes_with_the_model():
    """Phi-4-multimodal as published: the adapter in its folder vision-lora applies only to chats with images."""
    conversation = [
        {"role": "user", "content": [phi_image("rgb.png"), text(QUESTION)]},
        {"role": "assistant", "content": "Waves."},
        {"role": "user", "content": [text("And here?"), phi_image("photo.jpg", "jpeg")]},
    ]
    words = [{"role": "user", "content": QUESTION}]

    def best(name):
        logits, (rows, vocabulary) = tensor(name, PHI)
        last = logits[(rows - 1) * vocabulary:]
        total = math.log(sum(math.exp(x) for x in last))
        return sorted((x - total for x in last), reverse=True)[:5]

    def top(reply):
        return [t.logprob for t in reply.choices[0].logprobs.content[0].top_logprobs]

    options = dict(max_tokens=1, logprobs=True, top_logprobs=5)
    with serve("--model", str(PHI), "--served-model-name", "see", "--dtype", "float32") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        reply = ask(client, conversation, **options)
        assert reply.model == "see"
        assert reply.usage.prompt_tokens == len(tensor("ids", PHI)[0])
        assert top(reply) == pytest.approx(best("adapted_logits"), abs=2e-2)
        assert top(reply) != pytest.approx(best("logits"), abs=2e-2)
        assert {model.id for model in client.models.list()} == {"see", "image"}
        alone = top(ask(client, words, **options))
        named = client.chat.completions.create(model="image", messages=words, temperature=0, **options)
        assert top(named) != pytest.approx(alone, abs=1e-3)
    with serve("--model", str(PHI), "--served-model-name", "see", "--dtype", "float32", "--limit-mm-per-prompt", '{"image": 0}') as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        assert [model.id for model in client.models.list()] == ["see"]


def test_a_template_may_number_its_images(tmp_path):
    """As the templates of Phi-3 models, such as VLM2Vec's: `<|image_1|>` is the placeholder `<|image|>`."""
    case = CASES / "phi3_vision"
    template = (case / "chat_template.jinja").read_text()
    assert template.count("<|image|>") == 1
    numbered = tmp_path / "numbered.jinja"
    numbered.write_text(template.replace("<|image|>", "<|image_1|>"))
    body = {"messages": [{"role": "user", "content": [image("rgb.png"), text(QUESTION)]}], "max_tokens": 4,
            "temperature": 0, "logprobs": True}
    answers = []
    for flags in ([], ["--chat-template", str(numbered)]):
        with serve("--model", str(case), "--dtype", "float32", *flags) as base:
            reply = http_client.post(base + "/v1/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
            answers.append((reply.json()["choices"], reply.json()["usage"]))
    assert answers[0] == answers[1]
