"""Measures how an image of 4,000 tokens slows down other streams: the times between tokens of a stream, with and without the image.

    pip install torch torchvision transformers pillow
    python images.py [--server PROGRAM] [--model DIR] [--streams 2] [--side 1792] [--chunk 256]

Without --model, the program creates a Qwen2-VL with random weights: 8 layers of width 512 for text, and an encoder of 8 layers of width
384 with attention over the whole image. Prints percentiles of the times between tokens, and the time of the answer to the image.
"""

import argparse
import base64
import io
import json
import pathlib
import shutil
import tempfile
import time

from server import PROGRAM, ROOT, Server, Streams, report


def random_model(to):
    """Creates a model with the tokenizer and the chat template of the smallest image model in the tests."""
    import torch
    import transformers

    small = ROOT / "tests/data/vision/qwen2_vl"
    given = json.loads((small / "config.json").read_text())
    torch.manual_seed(0)
    text = given["text_config"] | dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=2,
                                       max_position_embeddings=16384, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[8, 12, 12]))
    text.pop("layer_types", None)
    text.pop("head_dim", None)
    vision = dict(depth=8, embed_dim=384, hidden_size=512, num_heads=6, mlp_ratio=4, patch_size=14)
    ids = {name: value for name, value in given.items() if name.endswith("_token_id")}
    model = transformers.Qwen2VLForConditionalGeneration(transformers.Qwen2VLConfig(text_config=text, vision_config=vision, **ids))
    model.to(torch.bfloat16).save_pretrained(to)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(small / name, to)
    transformers.Qwen2VLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 4200}).save_pretrained(to)
    return to


def picture(side):
    import numpy
    from PIL import Image

    x = numpy.arange(side)
    waves = numpy.stack([numpy.add.outer(x * k, x) % 256 for k in (1, 2, 3)], axis=-1).astype(numpy.uint8)
    data = io.BytesIO()
    Image.fromarray(waves).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=PROGRAM)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--side", type=int, default=1792, help="of the image, in pixels")
    parser.add_argument("--chunk", type=int, default=256, help="--max-num-batched-tokens")
    parser.add_argument("--seconds", type=float, default=15, help="of streams without an image")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = args.model or random_model(pathlib.Path(scratch) / "model")
        with Server(args.server, model, "--device", "cpu", "--max-num-batched-tokens", args.chunk, "--max-num-seqs", args.streams + 2) as server:
            streams = Streams(server, args.streams)
            time.sleep(args.seconds)
            quiet = report("without", streams.stop())
            streams = Streams(server, args.streams)
            time.sleep(1)
            streams.gaps.clear()
            began = time.perf_counter()
            content = [{"type": "image_url", "image_url": {"url": picture(args.side)}}, {"type": "text", "text": "What is it?"}]
            answer = server.ask("/v1/chat/completions", dict(messages=[{"role": "user", "content": content}], max_tokens=4, temperature=0))
            took, gaps = time.perf_counter() - began, list(streams.gaps)
            streams.stop()
            busy = report("beside it", gaps)
            print(f"{answer['usage']['prompt_tokens']} tokens took {took:.1f} s; p99 {busy / quiet:.2f} times that without")


if __name__ == "__main__":
    main()
