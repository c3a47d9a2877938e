"""Speech on an emulated GPU: a transcription equals that of transformers, alone and beside others."""

from concurrent.futures import ThreadPoolExecutor

import openai
from test_gpu_ranks import ALONE, on_gpus, pytestmark  # noqa: F401
from test_transcription import CASE, CHIRP, tokens, words


def test_transcriptions_are_those_of_transformers():
    with on_gpus(str(CASE), *ALONE, "--max-model-len", "90") as base:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)

        def text(file):
            options = {"model": "demo", "language": "de", "extra_body": {"max_completion_tokens": 40}}
            return client.audio.transcriptions.create(file=file, **options).text

        assert text(CHIRP) == words(tokens("greedy"))
        with ThreadPoolExecutor(3) as pool:
            texts = list(pool.map(text, [CHIRP, CHIRP.parent / "stereo.flac", CHIRP]))
        assert texts[0] == texts[2] == words(tokens("greedy")) != texts[1]
