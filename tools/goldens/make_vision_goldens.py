#!/usr/bin/env python3
"""Makes tests/data/vision/: tiny random models that see, and what transformers computes with them.

Needs torch, torchvision, transformers and pillow (made with 2.13, 0.28, 5.23 and 13.0). Usage: make_vision_goldens.py OUT_DIR [CASE ...]

A case is a directory with a checkpoint, its tokenizer, image processor and chat template, small pictures, and golden.safetensors:
  decoded.NAME  U8 [height, width, 3]             the picture NAME, as pillow reads it (what is transparent: over white)
  resized.FILTER U8 [height, width, 3]            the first picture, resized by pillow with this filter (lanczos, bicubic, bilinear)
  tiles.NAME    U8 [tiles, size, size, 3]         what the image processor (its pillow version) cuts the picture into
  numbers       F32 [3, size, size]               what it makes of the first tile of the first picture
  rows.NAME     F32 [tiles, tokens, dim]          what stands in the language model's input for each tile
  ids           I32 [n]                           a conversation about the first two pictures
  logits        F32 [60, vocab]                   the logits of its last 60 tokens
  bf16_kl       F32 [60]                          KL(f32 || transformers' bf16) at each of them
All is computed in f32 but the last. Weights are stored in bf16.
"""
import json
import os
import shutil
import sys

import numpy
import tokenizers
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}{% if message['content'][0]['type'] == 'image' %}{{':'}}"
    "{% else %}{{': '}}{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
SPECIAL = ["<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>"]
SPECIAL += [f"<row_{r}_col_{c}>" for r in (1, 2, 3) for c in (1, 2, 3)]

# Odd sizes: heads of 24, tiles of 36 pixels in patches of 6.
TEXT = dict(vocab_size=288, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
            max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=256, eos_token_id=257, pad_token_id=257, model_type="llama")
CASES = {
    "idefics3": dict(model=transformers.Idefics3ForConditionalGeneration, config=transformers.Idefics3Config,
                     processor=transformers.Idefics3Processor, images=transformers.Idefics3ImageProcessorPil,
                     vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8),
                     scale=2, longest=64),
    "smolvlm": dict(model=transformers.SmolVLMForConditionalGeneration, config=transformers.SmolVLMConfig,
                    processor=None, images=transformers.SmolVLMImageProcessorPil,
                    vision=dict(hidden_size=48, intermediate_size=72, num_hidden_layers=1, num_attention_heads=3, image_size=36, patch_size=6),
                    scale=3, longest=90),
}


def picture(height, width, channels, seed):
    """Waves and noise, so that neither a wrong order nor a shift goes unnoticed."""
    generator = numpy.random.default_rng(seed)
    y, x, c = numpy.meshgrid(numpy.arange(height), numpy.arange(width), numpy.arange(channels), indexing="ij")
    waves = 127 + 90 * numpy.sin(x / 5 + c) * numpy.cos(y / 7 - c * seed)
    return numpy.clip(waves + generator.normal(0, 20, waves.shape), 0, 255).astype(numpy.uint8)


def write_pictures(directory, all_formats):
    paths = {}

    def write(name, image, **options):
        paths[name] = os.path.join(directory, name)
        image.save(paths[name], **options)

    write("rgb.png", Image.fromarray(picture(45, 61, 3, 1)))
    write("photo.jpg", Image.fromarray(picture(70, 50, 3, 2)), quality=90)
    write("palette.png", Image.fromarray(picture(20, 64, 3, 6)).convert("P", palette=Image.ADAPTIVE, colors=32))
    if not all_formats:
        return paths
    write("alpha.png", Image.fromarray(picture(21, 33, 4, 3)))
    write("grey.jpg", Image.fromarray(picture(40, 30, 1, 4)[:, :, 0]), quality=80)
    write("progressive.jpg", Image.fromarray(picture(33, 47, 3, 5)), quality=75, progressive=True)
    write("lossy.webp", Image.fromarray(picture(37, 29, 3, 7)), quality=80)
    write("alpha.webp", Image.fromarray(picture(16, 16, 4, 8)), lossless=True, exact=True)
    return paths


def read_picture(path):
    image = Image.open(path)
    if "A" in image.getbands():
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def write_tokenizer(directory):
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={letter: i for i, letter in enumerate(sorted(letters))}, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token="<end_of_utterance>",
                                                pad_token="<end_of_utterance>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(directory)
    return fast


def randomise(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                p.copy_(1 + 0.3 * torch.randn_like(p))
            else:
                p.copy_((0.3 if p.dim() == 1 else 0.12) * torch.randn_like(p))


def logits_of(model, inputs):
    with torch.no_grad():
        return model(**{k: v.to(model.dtype) if v.is_floating_point() else v for k, v in inputs.items()}).logits[0, -60:].float()


def make(directory, case):
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = write_tokenizer(directory)
    image_token = tokenizer.convert_tokens_to_ids("<image>")
    config = case["config"](text_config=dict(TEXT), vision_config=case["vision"], scale_factor=case["scale"], image_token_id=image_token)
    model = case["model"](config).eval()
    randomise(model)
    model = model.to(torch.bfloat16)
    model.save_pretrained(directory)

    tile = case["vision"]["image_size"]
    images = case["images"](size={"longest_edge": case["longest"]}, max_image_size={"longest_edge": tile}, return_row_col_info=True)
    tokens = (tile // case["vision"]["patch_size"] // case["scale"]) ** 2
    # SmolVLM's own processor wants a package for videos; its text is that of Idefics3.
    processor = transformers.Idefics3Processor(images, tokenizer, image_seq_len=tokens, chat_template=TEMPLATE)
    images.save_pretrained(directory)
    if case["processor"]:  # as transformers 5 writes it
        with open(os.path.join(directory, "preprocessor_config.json")) as file:
            nested = json.load(file)
        os.remove(os.path.join(directory, "preprocessor_config.json"))
        with open(os.path.join(directory, "processor_config.json"), "w") as file:
            json.dump({"image_processor": nested, "image_seq_len": tokens}, file, indent=2)

    paths = write_pictures(directory, all_formats=case["processor"] is not None)
    golden = {}
    wide = case["model"].from_pretrained(directory, dtype=torch.float32).eval()  # its rotary frequencies were never rounded
    for name, path in paths.items():
        image = read_picture(path)
        golden[f"decoded.{name}"] = torch.from_numpy(numpy.asarray(image).copy())
        if name not in ("rgb.png", "photo.jpg", "palette.png"):
            continue
        pixels = images(image, return_tensors="pt")["pixel_values"]
        golden.setdefault("numbers", pixels[0, 0].float())
        golden[f"tiles.{name}"] = (pixels[0] * 127.5 + 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
        with torch.no_grad():
            rows = torch.stack(list(wide.model.get_image_features(pixels, return_dict=True).pooler_output))
        golden[f"rows.{name}"] = rows.reshape(pixels.shape[1], tokens, -1)
    first = read_picture(paths["rgb.png"])
    for name in ("lanczos", "bicubic", "bilinear"):
        kind = getattr(Image.Resampling, name.upper())
        golden[f"resized.{name}"] = torch.from_numpy(numpy.asarray(first.resize((37, 83), kind)).copy())

    messages = [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is in this picture?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Waves."}]},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, {"type": "image"}]},
    ]
    text = processor.apply_chat_template(messages, add_generation_prompt=True)
    pictures = [read_picture(paths[name]) for name in ("rgb.png", "photo.jpg")]
    inputs = dict(processor(text=text, images=pictures, return_tensors="pt"))
    logits = logits_of(wide, inputs)
    # Loaded anew, so that the weights' format is the only difference.
    narrow = case["model"].from_pretrained(directory, dtype=torch.bfloat16).eval()
    kl = torch.nn.functional.kl_div(logits_of(narrow, inputs).log_softmax(-1), logits.log_softmax(-1), log_target=True, reduction="none")
    golden["ids"] = inputs["input_ids"][0].to(torch.int32)
    golden["logits"] = logits
    golden["bf16_kl"] = kl.sum(-1)
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, os.path.join(directory, "golden.safetensors"))


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or CASES
    for name in wanted:
        directory = os.path.join(out, name)
        shutil.rmtree(directory, ignore_errors=True)
        make(directory, CASES[name])


if __name__ == "__main__":
    main()
