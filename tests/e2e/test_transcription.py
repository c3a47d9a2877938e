"""Transcription, with OpenAI's client: a small random Whisper (tests/data/sound), compared with transformers'
texts."""

import io
import json
import math
import pathlib
import struct
import wave

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from conftest import http_client, serve

CASE = pathlib.Path("tests/data/sound/whisper")
CHIRP = pathlib.Path("tests/data/sound/chirp.wav")
SPACE = 220


def tokens(name):
    """Returns an I32 tensor of the golden file."""
    data = (CASE / "golden.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}i", data[8 + size + begin:8 + size + end])


def words(ids):
    """Returns the text of token ids. A token is a byte; none of these is a special token."""
    letters = {i: letter for letter, i in json.loads((CASE / "tokenizer.json").read_text())["model"]["vocab"].items()}
    return "".join(" " if i == SPACE else letters[i] for i in ids)


def tone(seconds, rate=16000):
    """Returns a tone that pauses for 0.1 s every 1.5 s."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1), out.setsampwidth(2), out.setframerate(rate)
        for i in range(int(seconds * rate)):
            loud = 0 if i % (rate * 3 // 2) > rate * 7 // 5 else 8000
            out.writeframesraw(struct.pack("<h", int(loud * math.sin(i * (0.05 + i * 1e-6)))))
    return file.getvalue()


@pytest.fixture(scope="module")
def base():
    with serve("--model", str(CASE), "--served-model-name", "hear", "--dtype", "float32", "--max-num-seqs", "4") as base:
        yield base


@pytest.fixture
def client(base):
    return openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)


def transcribe(client, file=None, **options):
    given = {"model": "hear", "file": file or CHIRP, "language": "de", "extra_body": {"max_completion_tokens": 40}, **options}
    return client.audio.transcriptions.create(**given)


def test_says_what_transformers_says(client):
    answer = transcribe(client)
    assert answer.text == words(tokens("greedy"))
    assert answer.usage.type == "duration" and answer.usage.seconds == 2


def test_language_is_found_as_transformers_finds_it(client):
    (language,) = tokens("language")
    found = transcribe(client, language=openai.omit, response_format="verbose_json").language
    assert {"en": 258, "zh": 259, "de": 260, "es": 261}[found] == language


def test_translation(client):
    answer = client.audio.translations.create(model="hear", file=CHIRP, extra_body={"max_completion_tokens": 40})
    assert answer.text == words(tokens("translated"))


@pytest.mark.parametrize("name", ["stereo.flac", "short.ogg", "short.opus", "short.mp3"])
def test_every_format_is_read(client, name):
    assert transcribe(client, CHIRP.parent / name).usage.seconds == 1


def test_streams_say_the_same(client):
    whole = transcribe(client, ("tone.wav", tone(4.5)))
    chunks = list(transcribe(client, ("tone.wav", tone(4.5)), stream=True,
                             extra_body={"max_completion_tokens": 40, "stream_include_usage": True}))
    assert chunks[-1].model_extra["usage"]["completion_tokens"] == 120
    parts = [chunk.model_extra["choices"][0] for chunk in chunks[:-1]]
    assert all(chunk.model_extra["object"] == "transcription.chunk" for chunk in chunks)
    assert "".join(part["delta"]["content"] for part in parts).split() == whole.text.split()
    assert sum("finish_reason" in part for part in parts) == 3  # one per window


def test_segments_and_subtitles(client):
    answer = transcribe(client, ("tone.wav", tone(3)), response_format="verbose_json", timestamp_granularities=["segment"])
    assert answer.duration == 3 and answer.language == "de" and answer.segments
    assert all(0 <= s.start <= s.end for s in answer.segments) and all(s.avg_logprob < 0 for s in answer.segments)
    assert answer.text == "".join(s.text for s in answer.segments).strip()
    assert transcribe(client, response_format="srt").startswith("1\n00:00:0")
    assert transcribe(client, response_format="vtt").startswith("WEBVTT\n\n00:00:0")
    assert transcribe(client, response_format="text") == transcribe(client).text + "\n"


def test_draws_follow_the_seed(client):
    def drawn(seed):
        return transcribe(client, temperature=1.0, extra_body={"max_completion_tokens": 40, "seed": seed}).text
    assert drawn(1) == drawn(1) != drawn(2)


def test_many_at_once_say_the_same(base):
    def ask(sound):
        return http_client.post(f"{base}/v1/audio/transcriptions", files={"file": sound}, data={"language": "en"}).json()["text"]
    sounds = [tone(0.5 + 0.3 * i) for i in range(6)]
    alone = [ask(sound) for sound in sounds]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(ask, sounds * 2)) == alone * 2


@pytest.mark.parametrize("change, says", [
    ({"file": ("a.wav", b"")}, "Invalid or corrupted audio data"),
    ({"file": ("a.wav", b"GIF89a")}, "Invalid or corrupted audio data"),
    ({"file": ("a.wav", b"RIFF\0\0\0\0WAVEfmt ")}, "the sound is damaged"),
    ({"file": ("a.wav", tone(601, 1000))}, "longer than 600 seconds"),
    ({"language": "xx"}, "language: must be one of en, zh, de, es"),
    ({"response_format": "srt", "stream": True}, "cannot be streamed"),
    ({"response_format": "diarized_json"}, "names the speakers"),
    ({"stream": True, "extra_body": {"use_beam_search": True, "n": 2}}, "not currently supported with beam search"),
    ({"prompt": "<|endoftext|>"}, "special tokens"),
])
def test_bad_requests_say_why(client, change, says):
    with pytest.raises(openai.BadRequestError) as error:
        transcribe(client, **change)
    assert says in error.value.message


def test_another_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        transcribe(client, model="other")


def test_beams(client):
    one = transcribe(client, extra_body={"max_completion_tokens": 12, "use_beam_search": True, "n": 1})
    several = transcribe(client, extra_body={"max_completion_tokens": 12, "use_beam_search": True, "n": 4})
    assert one.text and several.text
    without = transcribe(client, extra_body={"max_completion_tokens": 12, "n": 4, "hotwords": "chirp"})
    assert without.text == transcribe(client, extra_body={"max_completion_tokens": 12}).text


def test_routes_for_texts_are_not_found(client):
    with pytest.raises(openai.NotFoundError, match="/v1/audio/transcriptions"):
        client.completions.create(model="hear", prompt="Hello", max_tokens=2)
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="hear", messages=[{"role": "user", "content": "Hello"}])


def test_a_model_of_texts_does_not_hear(server):
    answer = http_client.post(f"{server}/v1/audio/transcriptions", files={"file": CHIRP.read_bytes()})
    assert answer.status_code == 404 and "cannot transcribe sound" in answer.json()["error"]["message"]


def test_metrics_and_health_hold(base, client):
    transcribe(client)
    assert http_client.get(f"{base}/health").status_code == 200
    assert "vllm:request_success_total" in http_client.get(f"{base}/metrics").text
