#!/usr/bin/env python3
"""Makes tests/data/vision/: small random vision models, and transformers' results with them.

Needs torch, torchvision, transformers and pillow (made with 2.13, 0.28, 5.23 and 13.0). Usage: make_vision_goldens.py
OUT_DIR [CASE ...]

A case is a directory with a checkpoint, its tokenizer, image processor and chat template, small images, and
golden.safetensors:

    decoded.NAME  U8 [height, width, 3]             the image NAME as pillow reads it, with transparent pixels over white
    split.tiles, split.whole U8 [parts, height, width, 3]  (LFM2-VL) the parts of the first image when it is cut
    resized.FILTER U8 [height, width, 3]            the first image, resized by pillow with this filter (lanczos, bicubic, bilinear)
    tiles.NAME    U8 [tiles, height, width, 3]      the image after the image processor (its pillow version) has cut it into tiles or resized it
    numbers       F32 [3, size, size]               numbers of the first tile of the first image; for models with images of any size, [n, any]
    rows.NAME     F32 [tiles, tokens, dim]          rows in the language model's input for each tile (or for all tiles together, if they form one grid
                                                    of tokens); for models with DeepStack, also those that are added to its first layers' outputs
    ids           I32 [n]                           a conversation about the first two images
    answer        I32 [12]                          the model's greedy answer
    logits        F32 [60, vocab]                   the logits of its last 60 tokens
    bf16_kl       F32 [60]                          KL(f32 || transformers' bf16) at each of them

For Phi-4-multimodal, also:

    whole.NAME    F32 [3, size, size]               the numbers of the whole image, which the tiles are cut from
    adapted       I32 [12], F32 [60, vocab]         answer and logits with the adapter for images, in vision-lora (adapted_answer, adapted_logits)

All except bf16_kl is computed in f32. Weights are stored in bf16.
"""
import contextlib
import json
import os
import shutil
import sys
import unittest.mock

import numpy
import tokenizers
import torch
import torchvision.transforms.v2.functional
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

import encoder_vision_cases
import more_vision_cases
import newest_vision_cases
import similar_vision_cases

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
QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA_TEMPLATE = (
    "<bos>{% for message in messages %}<start_of_turn>{{ message['role'] }}\n{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "<start_of_image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
QWEN_SPECIAL = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"]
QWEN_TEXT = {k: v for k, v in TEXT.items() if k != "model_type"}
QWEN_TEXT |= dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 4, 6]))
QWEN = dict(template=QWEN_TEMPLATE, special=QWEN_SPECIAL, text=QWEN_TEXT, end="<|im_end|>", any_size=True,
            sizes={"shortest_edge": 12 * 12 * 12, "longest_edge": 12 * 12 * 20}, images=transformers.Qwen2VLImageProcessorPil)
# Positions of 5 x 5 patches are interpolated to the size of the images.
QWEN3_TEXT = QWEN_TEXT | dict(num_hidden_layers=3, head_dim=24, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[5, 4, 3],
                                                                                  mrope_interleaved=True))
QWEN3 = QWEN | dict(text=QWEN3_TEXT, chat=(transformers.Qwen3VLProcessor, transformers.Qwen3VLVideoProcessor),
                    vision=dict(depth=4, hidden_size=48, out_hidden_size=48, intermediate_size=56, num_heads=2, patch_size=6,
                                num_position_embeddings=25, deepstack_visual_indexes=[0, 2]))
# One layer of three is not a gated delta net. RoPE applies to half of a head of 24. Without `output`, its
# logits would be larger than those of the others.
QWEN35 = QWEN3 | dict(output=0.5, text=dict(vocab_size=288, hidden_size=48, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                                head_dim=24, max_position_embeddings=512, layer_types=["linear_attention", "full_attention", "linear_attention"],
                                linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=24,
                                rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5, mrope_section=[3, 2, 1],
                                                     mrope_interleaved=True)),
                      vision={k: v for k, v in QWEN3["vision"].items() if k != "deepstack_visual_indexes"})
INTERNVL_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "<IMG_CONTEXT>\n{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Rotary embeddings of rows and columns in heads of 24. A text token separates the rows of an image.
PIXTRAL = dict(longest_edge=True, images=transformers.PixtralImageProcessorPil, end="</s>",
               template=("<s>{% for message in messages %}[INST]{% for part in message['content'] %}{% if part['type'] == 'image' %}[IMG]"
                         "{% else %}{{ part['text'] }}{% endif %}{% endfor %}[/INST]{% endfor %}"),
               special=["<s>", "</s>", "[INST]", "[IMG]", "[/INST]", "[IMG_BREAK]", "[IMG_END]"],
               vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=48, patch_size=6))
GEMMA4_TEMPLATE = (
    "<bos>{% for message in messages %}<|turn>{{ message['role'] }}\n{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "<|image|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<turn|>\n{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)
GEMMA4_TEXT = {k: v for k, v in TEXT.items() if k not in ("model_type", "pad_token_id", "num_key_value_heads")} | dict(
    pad_token_id=0, num_hidden_layers=3, head_dim=16, global_head_dim=24, sliding_window=90, vocab_size_per_layer_input=288,
    layer_types=["sliding_attention", "full_attention", "full_attention"])
# Patches of 6 x 6 pixels, 2 x 2 of which are a token. At most 70 tokens, which is the least that the image
# processor permits. Bounds that clip some numbers. Scores are not divided by the root of the heads' size,
# so with norms around 1 attention would be sharper than in the others.
GEMMA4 = dict(queries=0.25, model=transformers.Gemma4ForConditionalGeneration, config=transformers.Gemma4Config, budget=70, end="<turn|>",
              template=GEMMA4_TEMPLATE, images=transformers.Gemma4ImageProcessorPil,
              special=["<|turn>", "<turn|>", "<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|video|>"],
              names=dict(image_token="<|image|>", boi_token="<|image>", eoi_token="<image|>", audio_token="<|audio|>", boa_token="<|audio>",
                         eoa_token="<audio|>"),
              text=GEMMA4_TEXT | dict(num_key_value_heads=1, hidden_size_per_layer_input=16, num_kv_shared_layers=1, use_double_wide_mlp=True),
              vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, head_dim=24,
                          patch_size=6, pooling_kernel_size=2, position_embedding_size=150, use_clipped_linears=True))
PHI4 = dict(padded=True, model=transformers.Phi4MultimodalForCausalLM, config=transformers.Phi4MultimodalConfig, end="<|end|>",
            sizes=dict(size={"height": 48, "width": 48}, patch_size=6, dynamic_hd=3),
            text={k: v for k, v in TEXT.items() if k != "model_type"} | dict(
                tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.75)),
            vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=2, image_size=48, crop_size=48, patch_size=6),
            audio=dict(hidden_size=16, intermediate_size=16, num_blocks=1, num_attention_heads=2, ext_pw_out_channel=16,
                       depthwise_separable_out_channel=16, nemo_conv_channels=16, input_size=16))
CASES = {
    # Tiles on white, with masked white patches. One case has transformers' names and resampling, the other
    # one those of Microsoft.
    "phi4_multimodal": PHI4 | dict(tokens=("<|image|>", "<|audio|>")),
    "phi4_mm": PHI4 | dict(tokens=("<|endoftext10|>", "<|endoftext11|>")),
    "gemma4": GEMMA4,
    # The larger models: tokens of an image attend to each other in layers with a window, and the encoder's
    # output is standardised.
    "gemma4-whole": GEMMA4 | dict(
        text=GEMMA4_TEXT | dict(num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True, hidden_size_per_layer_input=0,
                                use_bidirectional_attention="vision", num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"]),
        vision=GEMMA4["vision"] | dict(use_clipped_linears=False, standardize=True)),
    "mistral3": PIXTRAL | dict(model=transformers.Mistral3ForConditionalGeneration, config=transformers.Mistral3Config, merge=2,
                               text=TEXT | dict(model_type="mistral", head_dim=24)),
    "pixtral": PIXTRAL | dict(model=transformers.LlavaForConditionalGeneration, config=transformers.LlavaConfig, merge=1,
                              text=TEXT | dict(model_type="mistral", head_dim=24)),
    "qwen3_vl": QWEN3 | dict(model=transformers.Qwen3VLForConditionalGeneration, config=transformers.Qwen3VLConfig),
    "qwen3_vl_moe": QWEN3 | dict(model=transformers.Qwen3VLMoeForConditionalGeneration, config=transformers.Qwen3VLMoeConfig,
                                 text=QWEN3_TEXT | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40)),
    "qwen3_5_vl": QWEN35 | dict(model=transformers.Qwen3_5ForConditionalGeneration, config=transformers.Qwen3_5Config),
    "qwen3_5_moe_vl": QWEN35 | dict(model=transformers.Qwen3_5MoeForConditionalGeneration, config=transformers.Qwen3_5MoeConfig,
                                    text=QWEN35["text"] | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40,
                                                               shared_expert_intermediate_size=32)),
    "internvl": dict(model=transformers.InternVLForConditionalGeneration, config=transformers.InternVLConfig, ratio=True,
                     images=transformers.GotOcr2ImageProcessorPil, sizes=dict(size={"height": 32, "width": 32}, max_patches=4),
                     template=INTERNVL_TEMPLATE, special=["<|im_start|>", "<|im_end|>", "<img>", "<IMG_CONTEXT>", "</img>", "<video>"],
                     end="<|im_end|>", names=dict(start_image_token="<img>", end_image_token="</img>", context_image_token="<IMG_CONTEXT>",
                                                  video_token="<video>"),
                     text=TEXT | dict(model_type="qwen2"),
                     vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=[32, 32],
                                 patch_size=[8, 8], attention_bias=True, use_qk_norm=True)),
    "qwen2_vl": QWEN | dict(model=transformers.Qwen2VLForConditionalGeneration, config=transformers.Qwen2VLConfig,
                            vision=dict(depth=2, embed_dim=48, hidden_size=48, num_heads=2, mlp_ratio=2, patch_size=6)),
    # Encoders of squares. The tokens of a Gemma 3 image fill most of a window.
    "gemma3": dict(model=transformers.Gemma3ForConditionalGeneration, config=transformers.Gemma3Config, square=True,
                   images=transformers.Gemma3ImageProcessorPil, sizes=dict(size={"height": 48, "width": 48}),
                   template=GEMMA_TEMPLATE, special=["<bos>", "<end_of_turn>", "<start_of_image>", "<image_soft_token>", "<end_of_image>", "<start_of_turn>"],
                   end="<end_of_turn>", names=dict(boi_token="<start_of_image>", image_token="<image_soft_token>", eoi_token="<end_of_image>"),
                   options=dict(mm_tokens_per_image=16),
                   text={k: v for k, v in TEXT.items() if k != "model_type"} | dict(
                       num_hidden_layers=3, head_dim=24, query_pre_attn_scalar=24, sliding_window=20,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
                   vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=48, patch_size=6)),
    "llava": dict(model=transformers.LlavaForConditionalGeneration, config=transformers.LlavaConfig, square=True,
                  images=transformers.CLIPImageProcessorPil,
                  sizes=dict(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
                  template=TEMPLATE, special=SPECIAL, end="<end_of_utterance>", names=dict(image_token="<image>"), options={}, text=TEXT,
                  vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=2, image_size=32, patch_size=8,
                              model_type="clip_vision_model")),
    # Tiles in one of several grids, with a learned row after each row of tokens.
    "llava_next": dict(model=transformers.LlavaNextForConditionalGeneration, config=transformers.LlavaNextConfig, pinned=True,
                       processor_of=transformers.LlavaNextProcessor, images=transformers.LlavaNextImageProcessorPil,
                       sizes=dict(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
                       grids=[[32, 64], [64, 32], [64, 64], [96, 32], [32, 96]],
                       template=TEMPLATE, special=SPECIAL, end="<end_of_utterance>", names=dict(image_token="<image>"), options={}, text=TEXT,
                       vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=2, image_size=32, patch_size=8,
                                   model_type="clip_vision_model")),
    # Tiles of 30 pixels, of which patches of 7 leave 2. The tokens of more than 2 tiles are reduced.
    "llava_onevision": dict(model=transformers.LlavaOnevisionForConditionalGeneration, config=transformers.LlavaOnevisionConfig, pinned=True,
                            processor_of=transformers.LlavaOnevisionProcessor, images=transformers.LlavaOnevisionImageProcessorPil,
                            sizes=dict(size={"height": 30, "width": 30}), grids=[[30 * rows, 30 * columns] for rows in (1, 2, 3) for columns in (1, 2, 3)],
                            template=TEMPLATE, special=[*SPECIAL, "<video>"], end="<end_of_utterance>",
                            names=dict(image_token="<image>", video_token="<video>"), options=dict(vision_aspect_ratio="anyres_max_2"),
                            text=TEXT | dict(model_type="qwen2"),
                            vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=30, patch_size=7,
                                        model_type="siglip_vision_model", vision_use_head=False)),
    # Windows of 2 x 2 tokens.
    "qwen2_5_vl": QWEN | dict(model=transformers.Qwen2_5_VLForConditionalGeneration, config=transformers.Qwen2_5_VLConfig,
                              vision=dict(depth=3, hidden_size=48, out_hidden_size=48, intermediate_size=56, num_heads=3, patch_size=6,
                                          window_size=24, fullatt_block_indexes=[1])),
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
    """Returns waves and noise, so that a wrong order or a shift is detected."""
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


def write_tokenizer(directory, template=TEMPLATE, special=SPECIAL, end="<end_of_utterance>", names=None):
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={letter: i for i, letter in enumerate(sorted(letters))}, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token=end, pad_token=end, extra_special_tokens=names or {})
    fast.chat_template = template
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


def make_tiles(directory, case):
    """Makes the saved model, the image processor, and the processor of a model with tiles."""
    tokenizer = write_tokenizer(directory)
    image_token = tokenizer.convert_tokens_to_ids("<image>")
    config = case["config"](text_config=dict(TEXT), vision_config=case["vision"], scale_factor=case["scale"], image_token_id=image_token)
    save_model(directory, case, config)
    tile = case["vision"]["image_size"]
    images = case["images"](size={"longest_edge": case["longest"]}, max_image_size={"longest_edge": tile}, return_row_col_info=True)
    tokens = (tile // case["vision"]["patch_size"] // case["scale"]) ** 2
    # SmolVLM's processor needs a package for videos. Its text is that of Idefics3.
    processor = transformers.Idefics3Processor(images, tokenizer, image_seq_len=tokens, chat_template=TEMPLATE)
    images.save_pretrained(directory)
    if case["processor"]:  # as transformers 5 writes it
        with open(os.path.join(directory, "preprocessor_config.json")) as file:
            nested = json.load(file)
        os.remove(os.path.join(directory, "preprocessor_config.json"))
        with open(os.path.join(directory, "processor_config.json"), "w") as file:
            json.dump({"image_processor": nested, "image_seq_len": tokens}, file, indent=2)
    return images, processor


def make_any_size(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case.get("names"))
    ids = case.get("ids") or {f"{name}_token_id": f"<|{token}|>" for name, token in dict(
        image="image_pad", video="video_pad", vision_start="vision_start", vision_end="vision_end").items()}
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in ids.items()}
    save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], **ids, **case.get("options", {})))
    images = case["images"](size=case["sizes"], patch_size=case["vision"]["patch_size"], **case.get("image_options", {}))
    images.save_pretrained(directory)
    if "processor_of" in case:
        return images, case["processor_of"](images, tokenizer, case["template"])
    processor, videos = case.get("chat", (transformers.Qwen2VLProcessor, transformers.Qwen2VLVideoProcessor))
    return images, processor(images, tokenizer, videos(patch_size=case["vision"]["patch_size"]), chat_template=case["template"])


def make_square(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    image_token = tokenizer.convert_tokens_to_ids(case["names"]["image_token"])
    save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_index=image_token,
                                               **case["options"]))
    images = case["images"](**case["sizes"])
    images.save_pretrained(directory)
    if case["model"] is transformers.PaliGemmaForConditionalGeneration:
        processor = transformers.PaliGemmaProcessor(images, tokenizer, chat_template=case["template"])
    elif case["model"] is transformers.LlavaForConditionalGeneration:
        processor = transformers.LlavaProcessor(images, tokenizer, patch_size=case["vision"]["patch_size"], num_additional_image_tokens=1,
                                                vision_feature_select_strategy="default", chat_template=case["template"])
    else:
        processor = transformers.Gemma3Processor(images, tokenizer, image_seq_length=case["options"]["mm_tokens_per_image"],
                                                 chat_template=case["template"])
    return images, processor


def make_pinned(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    image_token = tokenizer.convert_tokens_to_ids(case["names"]["image_token"])
    save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_index=image_token,
                                               image_grid_pinpoints=case["grids"], **case["options"]))
    images = case["images"](image_grid_pinpoints=case["grids"], **case["sizes"])
    images.save_pretrained(directory)
    patch = case["vision"]["patch_size"]
    if case["processor_of"] is transformers.LlavaNextProcessor:
        return images, transformers.LlavaNextProcessor(images, tokenizer, patch_size=patch, num_additional_image_tokens=1,
                                                       vision_feature_select_strategy="default", chat_template=case["template"])
    with open(os.path.join(directory, "processor_config.json"), "w") as file:
        json.dump(case["options"], file, indent=2)
    tokens = (case["vision"]["image_size"] // patch) ** 2
    return images, transformers.LlavaOnevisionProcessor(
        images, tokenizer, transformers.LlavaOnevisionVideoProcessor(size=case["sizes"]["size"]), num_image_tokens=tokens,
        vision_feature_select_strategy="full", chat_template=case["template"], **case["options"])


def make_ratio(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    image_token = tokenizer.convert_tokens_to_ids(case["names"].get("context_image_token") or case["names"]["image_token"])
    save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_id=image_token,
                                               **case.get("options", {})))
    images = case["images"](**case["sizes"])
    images.save_pretrained(directory)
    if "processor_of" in case:
        return images, case["processor_of"](images, tokenizer, case["template"])
    side = case["vision"]["image_size"][0] // case["vision"]["patch_size"][0] // 2
    videos = transformers.InternVLVideoProcessor(size=case["sizes"]["size"])
    return images, transformers.InternVLProcessor(images, tokenizer, videos, image_seq_length=side * side, chat_template=case["template"])


def make_longest_edge(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case.get("names"))
    patch, merge = case["vision"]["patch_size"], case["merge"]
    options = dict(spatial_merge_size=merge) if merge > 1 else dict(vision_feature_layer=-1, vision_feature_select_strategy="full")
    token = {"image_token_id": "<|image_pad|>"} if "processor_of" in case else {"image_token_index": "[IMG]"}
    config = case["config"](text_config=dict(case["text"]), vision_config=case["vision"] | dict(model_type="pixtral"),
                            **{name: tokenizer.convert_tokens_to_ids(text) for name, text in token.items()}, **options)
    save_model(directory, case, config)
    images = case["images"](size={"longest_edge": 48}, patch_size={"height": patch, "width": patch})
    images.save_pretrained(directory)
    with open(os.path.join(directory, "processor_config.json"), "w") as file:
        json.dump({"patch_size": patch, "spatial_merge_size": merge}, file, indent=2)
    images.unit = patch * merge
    return images, case.get("processor_of", transformers.PixtralProcessor)(images, tokenizer, patch, merge, chat_template=case["template"])


def make_budget(directory, case):
    tokenizer = write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    ids = {f"{name}_id": tokenizer.convert_tokens_to_ids(token) for name, token in case["names"].items() if name != "eoa_token"}
    config = case["config"](text_config=dict(case["text"]), vision_config=case["vision"], audio_config=None,
                            video_token_id=tokenizer.convert_tokens_to_ids("<|video|>"), **ids)
    save_model(directory, case, config)
    vision = case["vision"]
    sizes = dict(patch_size=vision["patch_size"], pooling_kernel_size=vision["pooling_kernel_size"], max_soft_tokens=case["budget"])
    images = case["images"](**sizes)
    images.save_pretrained(directory)
    processor = transformers.Gemma4Processor(transformers.Gemma4AudioFeatureExtractor(), images, tokenizer, transformers.Gemma4VideoProcessor(**sizes),
                                            chat_template=case["template"])
    return images, processor


torch_resize = torchvision.transforms.v2.functional.resize


class PaddedImages(transformers.Phi4MultimodalImageProcessor):
    """Counts tokens for images of any size. transformers counts those of 32 x 32 patches."""

    def preprocess(self, images, **options):
        out = super().preprocess(images, **options)
        side = self.size["height"] // self.patch_size // 2
        out["num_img_tokens"] = [n - 256 - 16 + side * side + side for n in out["num_img_tokens"]]
        return out


def resize_with_pillow(image, size, **options):
    """Resizes bytes without options, like tiles."""
    if options:
        return torch_resize(image, size, **options)
    resized = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return torch.from_numpy(numpy.asarray(resized).copy()).permute(2, 0, 1)


def make_padded(directory, case):
    image_token, audio_token = case["tokens"]
    published = image_token == "<|endoftext10|>"
    template = ("{% for message in messages %}<|{{ message['role'] }}|>{% for part in message['content'] %}{% if part['type'] == 'image' %}" + image_token +
                "{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
    tokenizer = write_tokenizer(directory, template, ["<|end|>", "<|user|>", "<|assistant|>", image_token, audio_token], case["end"],
                                dict(image_token=image_token, audio_token=audio_token))
    ids = [tokenizer.convert_tokens_to_ids(token) for token in case["tokens"]]
    config = case["config"](vision_config=case["vision"] | dict(image_token_id=ids[0]), audio_config=case["audio"] | dict(audio_token_id=ids[1]), **case["text"])
    save_model(directory, case, config)
    images = PaddedImages(**case["sizes"])
    images.save_pretrained(directory)
    path = os.path.join(directory, "preprocessor_config.json")
    with open(path) as file:
        settings = json.load(file)
    settings["image_processor_type"] = "Phi4MMImageProcessor" if published else "Phi4MultimodalImageProcessor"
    with open(path, "w") as file:
        json.dump(settings, file, indent=2)
    module = sys.modules[transformers.Phi4MultimodalImageProcessor.__module__]
    images.resized = unittest.mock.patch.object(module.tvF, "resize", resize_with_pillow) if published else contextlib.nullcontext()
    processor = transformers.Phi4MultimodalProcessor(images, transformers.Phi4MultimodalFeatureExtractor(), tokenizer, chat_template=template)
    return images, processor


def padded_of(image, images, model):
    with images.resized:
        inputs = images(image, return_tensors="pt")
    pixels, embed = inputs["image_pixel_values"], model.model.embed_tokens_extend.image_embed
    tokens = inputs["num_img_tokens"][0]
    with torch.no_grad():
        rows = embed(torch.full((1, tokens), model.config.vision_config.image_token_id), torch.zeros(1, tokens, model.config.hidden_size),
                     pixels, inputs["image_sizes"], inputs["image_attention_mask"])
    tiles = (pixels[0, 1:] * 127.5 + 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
    images.whole = pixels[0, 0].float()
    return tiles, pixels[0, 1].float(), rows


def write_adapter(directory, model):
    """Writes an adapter of all layers' matrices, as PEFT stores it, and applies it to the model."""
    rank, alpha = 4, 6
    tensors = {}
    with torch.no_grad():
        for name, module in model.named_modules():
            if not name.startswith("model.layers.") or not isinstance(module, torch.nn.Linear):
                continue
            a, b = 0.3 * torch.randn(rank, module.in_features), 0.3 * torch.randn(module.out_features, rank)
            module.weight += alpha / rank * b @ a
            tensors |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
    folder = os.path.join(directory, "vision-lora")
    os.makedirs(folder)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"))
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(dict(peft_type="LORA", r=rank, lora_alpha=alpha, bias="none", target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]), file, indent=2)
    return tensors


def publish(directory, adapter):
    """Renames a checkpoint's tensors to Microsoft's names, and stores the adapters in the same files as the
    matrices."""
    path = os.path.join(directory, "model.safetensors")
    tensors = {}
    for name, tensor in load_file(path).items():
        if name.startswith("model.layers.") and name.endswith("_proj.weight"):
            name = name.replace(".weight", ".base_layer.weight")
        for ours, theirs in (("img_projection_up", "img_projection.0"), ("img_projection_down", "img_projection.2"),
                             ("sub_img_feature_extensor", "sub_GN"), ("global_img_feature_extensor", "glb_GN")):
            name = name.replace(ours, theirs)
        tensors[name] = tensor
    for name, tensor in adapter.items():
        for kind in ("vision", "speech"):
            tensors[name.removeprefix("base_model.model.").replace(".weight", f".{kind}.weight")] = tensor.to(torch.bfloat16)
    save_file(tensors, path, metadata={"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    config |= dict(architectures=["Phi4MMForCausalLM"], model_type="phi4mm")
    with open(path, "w") as file:
        json.dump(config, file, indent=2)


def save_model(directory, case, config):
    model = case["model"](config).eval()
    randomise(model)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith(("_min", "_max")):
                buffer.fill_((0.8 + torch.rand(())) * (1 if name.endswith("_max") else -1))
            elif name.endswith("std_scale"):
                buffer.copy_(0.3 + torch.rand_like(buffer))
            elif name.endswith("std_bias"):
                buffer.copy_(3 * torch.randn_like(buffer))
    for name, bias in model.state_dict().items():
        # These biases decide which experts are selected, so that bf16 does not change the selection.
        if case.get("decided") and name.endswith("e_score_correction_bias"):
            bias.copy_(torch.linspace(-1, 1, len(bias)))
    with torch.no_grad():
        model.lm_head.weight.mul_(case.get("output", 1))
        for name, p in model.named_parameters():
            if name.endswith("q_norm.weight"):
                p.mul_(case.get("queries", 1))
    model.to(torch.bfloat16).save_pretrained(directory)


def tiles_of(image, images, model):
    """Returns the image's tiles, their numbers, and their rows in the language model's input."""
    pixels = images(image, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        rows = torch.stack(list(model.model.get_image_features(pixels, return_dict=True).pooler_output))
    tiles = (pixels[0] * 127.5 + 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
    return tiles, pixels[0, 0].float(), rows.reshape(pixels.shape[1], -1, rows.shape[-1])


def square_of(image, images, model, **options):
    """Returns one square, or several with crop_to_patches."""
    pixels = images(image, return_tensors="pt", **options)["pixel_values"]
    with torch.no_grad():
        rows = torch.cat(list(model.model.get_image_features(pixels, return_dict=True).pooler_output))
    mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in (images.image_mean, images.image_std))
    squares = ((pixels * std + mean) * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    return squares, pixels[0].float(), rows.reshape(len(pixels), -1, rows.shape[-1])


def pinned_of(image, images, model):
    """Returns the tiles, and one image's rows for all of them."""
    inputs = images(image, return_tensors="pt")
    pixels = inputs["pixel_values"][0]
    with torch.no_grad():
        rows = torch.cat(list(model.model.get_image_features(inputs["pixel_values"], inputs["image_sizes"], return_dict=True).pooler_output))
    mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in (images.image_mean, images.image_std))
    tiles = ((pixels * std + mean) * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    return tiles, pixels[0].float(), rows[None]


def ratio_of(image, images, model):
    return square_of(image, images, model, crop_to_patches=True)


def resized_of(image, images, model):
    inputs = images(image, return_tensors="pt")
    _, rows, columns = (int(n) for n in inputs["image_grid_thw"][0])
    size = (columns * images.patch_size, rows * images.patch_size)
    with torch.no_grad():
        features = model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
    rows = [torch.cat(list(rows)) for rows in (features.pooler_output, *(getattr(features, "deepstack_features", None) or []))]
    resized = torch.from_numpy(numpy.asarray(image.resize(size, Image.Resampling.BICUBIC)).copy())
    return resized[None], inputs["pixel_values"].float(), torch.cat(rows, -1)[None]


def longest_of(image, images, model):
    inputs = images(image, return_tensors="pt", patch_size=images.unit)
    height, width = (int(n) for n in inputs["image_sizes"][0])
    with torch.no_grad():
        rows = torch.cat(list(model.model.get_image_features(pixel_values=inputs["pixel_values"], image_sizes=inputs["image_sizes"],
                                                                  return_dict=True).pooler_output))
    resized = torch.from_numpy(numpy.asarray(image.resize((width, height), Image.Resampling.BICUBIC)).copy())
    return resized[None], inputs["pixel_values"][0].float(), rows[None]


def budget_of(image, images, model):
    inputs = images(image, return_tensors="pt")
    patches, positions = inputs["pixel_values"], inputs["image_position_ids"]
    patches = patches[:, (positions[0] >= 0).all(-1)]  # the rest is padding
    columns, rows = (int(n) + 1 for n in positions[0].max(0).values)
    with torch.no_grad():
        features = model.model.get_image_features(inputs["pixel_values"], positions, return_dict=True).pooler_output
    size = (columns * images.patch_size, rows * images.patch_size)
    resized = torch.from_numpy(numpy.asarray(image.resize(size, Image.Resampling.BICUBIC)).copy())
    return resized[None], patches[0].float(), torch.cat(list(features))[None]


# By a field that only cases of this kind have.
KINDS = {"padded": (make_padded, padded_of), "scale": (make_tiles, tiles_of), "square": (make_square, square_of), "any_size": (make_any_size, resized_of), "ratio": (make_ratio, ratio_of),
         "longest_edge": (make_longest_edge, longest_of), "pinned": (make_pinned, pinned_of), "budget": (make_budget, budget_of),
         "patches": (lambda directory, case: more_vision_cases.make_patches(sys.modules[__name__], directory, case), more_vision_cases.split_of),
         "split": (lambda directory, case: more_vision_cases.make_split(sys.modules[__name__], directory, case), more_vision_cases.split_of)}


def make(directory, case):
    if "make" in case:
        case["make"](directory)
        return
    torch.manual_seed(0)
    os.makedirs(directory)
    make_files, parts_of = case.get("kind") or next(both for kind, both in KINDS.items() if kind in case)
    images, processor = make_files(directory, case)
    paths = write_pictures(directory, all_formats=case.get("processor") is not None)
    golden = {}
    # its rotary frequencies were never rounded
    wide = case["model"].from_pretrained(directory, dtype=torch.float32).eval()
    for name, path in paths.items():
        image = read_picture(path)
        golden[f"decoded.{name}"] = torch.from_numpy(numpy.asarray(image).copy())
        if name not in ("rgb.png", "photo.jpg", "palette.png"):
            continue
        tiles, numbers, rows = parts_of(image, images, wide)
        golden.setdefault("numbers", numbers)
        golden[f"tiles.{name}"] = tiles
        golden[f"rows.{name}"] = rows
        if "padded" in case:
            golden[f"whole.{name}"] = images.whole
    first = read_picture(paths["rgb.png"])
    if "scale" in case:
        for name in ("lanczos", "bicubic", "bilinear"):
            kind = getattr(Image.Resampling, name.upper())
            golden[f"resized.{name}"] = torch.from_numpy(numpy.asarray(first.resize((37, 83), kind)).copy())

    if "split" in case:
        golden |= {f"split.{name}": parts for name, parts in more_vision_cases.split_parts(first, images).items()}

    messages = [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is in this picture?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Waves."}]},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, {"type": "image"}]},
    ]
    text = processor.apply_chat_template(messages, add_generation_prompt=True)
    pictures = [read_picture(paths[name]) for name in ("rgb.png", "photo.jpg")]
    with getattr(images, "resized", contextlib.nullcontext()):
        inputs = {name: value for name, value in processor(text=text, images=pictures, return_tensors="pt").items() if name not in case.get("drop", ())}
    logits = logits_of(wide, inputs)
    with torch.no_grad():
        answer = wide.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1]:]
    # Loads the model again, so that the weights' format is the only difference.
    narrow = case["model"].from_pretrained(directory, dtype=torch.bfloat16).eval()
    kl = torch.nn.functional.kl_div(logits_of(narrow, inputs).log_softmax(-1), logits.log_softmax(-1), log_target=True, reduction="none")
    if "padded" in case:
        adapter = write_adapter(directory, wide)
        golden["adapted_logits"] = logits_of(wide, inputs)
        with torch.no_grad():
            adapted = wide.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1]:]
        golden["adapted_answer"] = adapted.to(torch.int32)
        if case["tokens"][0] == "<|endoftext10|>":
            publish(directory, adapter)
    golden["ids"] = inputs["input_ids"][0].to(torch.int32)
    golden["answer"] = answer.to(torch.int32)
    golden["logits"] = logits
    golden["bf16_kl"] = kl.sum(-1)
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, os.path.join(directory, "golden.safetensors"))
    if "publish" in case:
        case["publish"](directory)


def main():
    base = sys.modules[__name__]
    CASES.update(similar_vision_cases.cases(base) | more_vision_cases.cases(base) | encoder_vision_cases.cases(base) | newest_vision_cases.cases(base))
    out, wanted = sys.argv[1], sys.argv[2:] or CASES
    for name in wanted:
        directory = os.path.join(out, name)
        shutil.rmtree(directory, ignore_errors=True)
        make(directory, CASES[name])


if __name__ == "__main__":
    main()
