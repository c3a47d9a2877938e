"""Models with recurrent layers, over HTTP: common prefixes of prompts are computed once."""

import array
import json
import pathlib
import random
import shutil
import struct

import openai
import pytest
from conftest import at_rest, eventually, metric, running, serve, serve_command
from test_kept_cache import kill_engine

DIM, HEAD, VOCAB, LAYERS = 48, 16, 4096, ["conv", "full_attention", "conv"]
STORY = "Once upon a time there was a small house at the edge of a dark forest, and in it lived a baker. " * 30


def shapes():
    yield "embed_tokens", (VOCAB, DIM), 1.0
    yield "embedding_norm", (DIM,), None
    for i, kind in enumerate(LAYERS):
        for norm in ("operator_norm", "ffn_norm"):
            yield f"layers.{i}.{norm}", (DIM,), None
        for name, shape in (("w1", (64, DIM)), ("w2", (DIM, 64)), ("w3", (64, DIM))):
            yield f"layers.{i}.feed_forward.{name}", shape, 0.2
        if kind == "conv":
            for name, shape in (("conv", (DIM, 1, 3)), ("in_proj", (3 * DIM, DIM)), ("out_proj", (DIM, DIM))):
                yield f"layers.{i}.conv.{name}", shape, 0.3
            continue
        for name, rows in (("q_proj", DIM), ("k_proj", HEAD), ("v_proj", HEAD), ("out_proj", DIM)):
            yield f"layers.{i}.self_attn.{name}", (rows, DIM), 0.2
        for name in ("q_layernorm", "k_layernorm"):
            yield f"layers.{i}.self_attn.{name}", (HEAD,), None


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    """Writes a random LFM2 with the demo model's vocabulary."""
    folder = tmp_path_factory.mktemp("hybrid") / "random"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path("models/demo") / name, folder)
    fields = dict(architectures=["Lfm2ForCausalLM"], model_type="lfm2", hidden_size=DIM, vocab_size=VOCAB, intermediate_size=64,
                  block_auto_adjust_ff_dim=False, conv_L_cache=3, layer_types=LAYERS, num_hidden_layers=len(LAYERS),
                  num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=4096, torch_dtype="float32")
    (folder / "config.json").write_text(json.dumps(fields))
    generator, header, data = random.Random(3), {}, bytearray()
    for name, shape, spread in shapes():
        count = 1
        for size in shape:
            count *= size
        begin = len(data)
        numbers = [1.0 if spread is None else generator.gauss(0, spread) for _ in range(count)]
        data += array.array("f", numbers).tobytes()
        header[f"model.{name}.weight"] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(data))
    return str(folder)


def ask(base, prompt):
    """Returns the answer, the number of prompt tokens, and the number of cached ones."""
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    completion = client.completions.create(model="m", prompt=prompt, max_tokens=24, temperature=0)
    details = completion.usage.prompt_tokens_details
    return completion.choices[0].text, completion.usage.prompt_tokens, details.cached_tokens if details else 0


def test_a_common_beginning_is_computed_once(hybrid):
    prompts = [STORY + end for end in ("He sang.", "She danced.", "They slept.")]
    flags = ["--device", "cpu", "--served-model-name", "m", "--enable-prompt-tokens-details"]
    with serve(hybrid, *flags, "--no-enable-prefix-caching") as base:
        plain = [ask(base, prompt) for prompt in prompts]
        assert all(cached == 0 for *_, cached in plain)
    with serve(hybrid, *flags) as base:
        shared = [ask(base, prompt) for prompt in prompts]
        assert [text for text, *_ in shared] == [text for text, *_ in plain]
        lengths = [length for _, length, _ in shared]
        first, second, third = (cached for *_, cached in shared)
        assert first == 0 and 0 < second < lengths[1] and second % 256 == 0
        # A state was saved at the position where the second prompt differs from the first one.
        assert second <= third and lengths[2] - third < 64
        assert eventually(lambda: metric(base, "vllm:prefix_cache_hits_total") == second + third)


def test_an_engine_that_was_killed_leaves_its_states(hybrid):
    flags = [hybrid, "--device", "cpu", "--served-model-name", "m", "--enable-prompt-tokens-details"]
    with running(serve_command(*flags)) as (server, base):
        text, tokens, _ = ask(base, STORY)
        assert at_rest(base)
        kill_engine(server, base)
        again = ask(base, STORY)
        assert again[0] == text and again[2] >= tokens // 256 * 256
        assert metric(base, "vllm:kv_kept_discarded_blocks_total") == 0
