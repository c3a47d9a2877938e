"""Video models, with OpenAI's client: small random models (tests/data/vision), compared with transformers'
answers."""

import base64
import json
import pathlib
import struct

import openai
import pytest

from conftest import serve

CASES = pathlib.Path("tests/data/vision")
VIDEOS = pathlib.Path("tests/data/video")
SIZE = ("--media-io-kwargs", '{"video": {"fps": 5.5}}')  # frame rate of the golden frames
# Video files need a plugin library, which is built if FFmpeg's headers are installed.
needs_files = pytest.mark.skipif(not any(pathlib.Path("build").glob("*/liboctavo_video.so")), reason="built without FFmpeg's libraries")


def golden(case, name):
    data = (CASES / case / "video.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}i", data[8 + size + begin:8 + size + end])


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


def video(url):
    return {"type": "video_url", "video_url": {"url": url}}


def file(name):
    return video(f"data:video/mp4;base64,{encoded(VIDEOS / name)}")


def frames(*numbers):
    return video("data:video/jpeg;base64," + ",".join(encoded(VIDEOS / f"frame{n}.png") for n in numbers))


def text(words):
    return {"type": "text", "text": words}


def ask(base, *parts, **options):
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
    return client.chat.completions.create(model="see", messages=[{"role": "user", "content": list(parts)}], temperature=0, max_tokens=4, **options)


@pytest.mark.parametrize("case", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl"])
def test_greedy_answers_are_those_of_transformers(case):
    answer = golden(case, "answer")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + encoded(CASES / case / "rgb.png")}}
    messages = [
        {"role": "user", "content": [picture, text("What is in this picture?")]},
        {"role": "assistant", "content": "Waves."},
        {"role": "user", "content": [frames(0, 1, 2, 3, 4), text("And how do they move in this one?")]},
    ]
    with serve("--model", str(CASES / case), "--served-model-name", "see", "--dtype", "float32", "--max-num-seqs", "4", "--max-num-batched-tokens", "32",
               "--mamba-block-size", "32", *SIZE) as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none")
        for _ in range(2):  # the second run uses the prefix cache
            reply = client.chat.completions.create(model="see", messages=messages, temperature=0, max_tokens=len(answer),
                                                   extra_body={"ignore_eos": True, "return_token_ids": True})
            assert reply.choices[0].token_ids == list(answer)
            assert reply.usage.prompt_tokens == len(golden(case, "ids"))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with serve("--model", str(CASES / "qwen2_vl"), "--served-model-name", "see", "--limit-mm-per-prompt", '{"video": 1}', "--allowed-local-media-path",
               str(VIDEOS.absolute())) as base:
        yield base


@needs_files
def test_files_are_read(base):
    """Six frames of 48 x 32 pixels: three parts of 3 x 4 tokens, as for the same frames sent one by one."""
    counts = {name: ask(base, file(name), text("Hm?")).usage.prompt_tokens for name in ("h264.mp4", "vp8.webm", "mjpeg.avi", "frames.gif")}
    assert len(set(counts.values())) == 1
    local = ask(base, video(f"file://{(VIDEOS / 'h264.mp4').absolute()}"), text("Hm?"))
    assert local.choices[0].message.content == ask(base, file("h264.mp4"), text("Hm?")).choices[0].message.content


@needs_files
def test_fewer_frames_when_asked(base):
    def tokens(**processor):
        return ask(base, file("h264.mp4"), text("Hm?"), extra_body={"mm_processor_kwargs": processor}).usage.prompt_tokens

    of_part = (tokens() - tokens(num_frames=2)) / 2
    assert of_part > 0 and tokens(num_frames=4) - tokens(num_frames=2) == of_part
    with pytest.raises(openai.BadRequestError, match="num_frames: cannot be combined with fps"):
        tokens(num_frames=2, fps=1)
    with pytest.raises(openai.BadRequestError, match="mm_processor_kwargs.num_frames"):
        tokens(num_frames=10**6)
    with serve("--model", str(CASES / "qwen2_vl"), "--served-model-name", "see", "--media-io-kwargs", '{"video": {"num_frames": 2}}') as server:
        assert ask(server, file("h264.mp4"), text("Hm?")).usage.prompt_tokens == tokens(num_frames=2)


def test_errors_are_400_and_name_the_part(base):
    small = encoded(VIDEOS / "frame0.png")
    large = encoded(CASES / "qwen2_vl" / "photo.jpg")
    for part, message in [
        (video("data:video/jpeg;base64,AAAA"), "frame 0: the format of the image is unknown"),
        (video(f"data:video/jpeg;base64,{small},{large}"), "frame 1 has 50 x 70 pixels, but the first frame has 61 x 45"),
        (video(f"data:video/jpeg;base64,{small},%%%%"), "not a base64 character"),
        (video("data:video/jpeg;base64," + ",".join([small] * 800)), "the video has 800 frames, but at most 768 are allowed"),
        (video("data:video/jpeg;base64," + ",".join([small] * 200)), "the context of 512 tokens allows"),
        (video("http://127.0.0.1/x.mp4"), "start the server with --allowed-media-domains 127.0.0.1"),
        (video("data:video/mp4;base64,%%%%"), "not a base64 character"),
    ]:
        with pytest.raises(openai.BadRequestError) as error:
            ask(base, text("Look:"), part)
        assert message in str(error.value)
        assert error.value.param == "messages[0].content[1].video_url"
    with pytest.raises(openai.BadRequestError, match="At most 1 video"):
        ask(base, frames(0, 1), frames(0, 1))
    with pytest.raises(openai.BadRequestError, match="texts must not contain this token"):
        ask(base, frames(0, 1), text("<|video_pad|>"))


def test_options_of_a_request_choose_the_frames(base):
    def tokens(part, **options):
        return ask(base, part, text("Hm?"), extra_body={"media_io_kwargs": {"video": options}}).usage.prompt_tokens

    assert tokens(frames(0, 1, 2, 3), num_frames=2) == tokens(frames(0, 1)) < tokens(frames(0, 1, 2, 3))
    assert tokens(frames(0, 1), fps=2, frames_indices=[4, 9], total_num_frames=20, video_backend="opencv") == tokens(frames(0, 1))
    for options, message in [
        ({"frames_indices": [1]}, "frames_indices has 1 indices, but the list has 2 images"),
        ({"frames_indices": [2, 1]}, "must be ascending"),
        ({"total_num_frames": 1}, "total_num_frames is 1, but the list has 2 images"),
        ({"num_frames": "many"}, "media_io_kwargs.video.num_frames"),
        ({"fps": -1}, "media_io_kwargs.video.fps"),
    ]:
        with pytest.raises(openai.BadRequestError, match=message):
            tokens(frames(0, 1), **options)


@needs_files
def test_options_of_a_request_choose_the_frames_of_a_file(base):
    def tokens(**options):
        return ask(base, file("h264.mp4"), text("Hm?"), extra_body=options).usage.prompt_tokens

    fewer = tokens(media_io_kwargs={"video": {"num_frames": 2}})
    assert fewer == tokens(mm_processor_kwargs={"num_frames": 2}) < tokens()


def test_times_of_frames_follow_their_indices():
    """The prompt of Qwen3-VL contains the time of each pair of frames."""
    with serve("--model", str(CASES / "qwen3_vl"), "--served-model-name", "see") as server:
        def prompt(**options):
            return ask(server, frames(0, 1, 2, 3), text("Hm?"),
                       extra_body={"media_io_kwargs": {"video": {"fps": 10, **options}}, "return_token_ids": True}).prompt_token_ids
        assert prompt() == prompt(frames_indices=[0, 1, 2, 3]) != prompt(frames_indices=[0, 100, 200, 300], total_num_frames=400)


@needs_files
def test_files_that_are_none_are_refused(base):
    whole = (VIDEOS / "h264.mp4").read_bytes()
    for data in (b"ffconcat version 1.0\nfile /etc/passwd\n", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", b"x" * 5000, whole[:900]):
        with pytest.raises(openai.BadRequestError) as error:
            ask(base, video("data:video/mp4;base64," + base64.b64encode(data).decode()))
        assert error.value.param == "messages[0].content[0].video_url"


def test_models_without_videos_say_so():
    with serve("--model", str(CASES / "idefics3"), "--served-model-name", "see") as base:
        with pytest.raises(openai.BadRequestError, match="see takes images and no videos"):
            ask(base, frames(0, 1))
