#!/usr/bin/env python3
"""Adds videos to the cases of tests/data/vision that make_vision_goldens.py has made, and transformers' results with
them.

Needs the same packages. Usage: make_video_goldens.py VISION_DIR. A case gets video_preprocessor_config.json and
video.safetensors; ../video/ gets frame0.png to frame4.png:

    decoded.video U8 [5, height, width, 3]     the frames
    frames.video  U8 [5, height, width, 3]     the frames after the video processor's resize
    rows.video    F32 [parts, tokens, dim]     rows in the language model's input for each two frames (the last one is used twice), as in golden.safetensors
    ids           I32 [n]                      a conversation about the first image and the video
    answer        I32 [12]                     the model's greedy answer
    logits        F32 [60, vocab]              the logits of its last 60 tokens
"""
import os
import sys

import make_vision_goldens as vision
import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2.functional import resize

FPS = 5.5  # gives Qwen2.5-VL fractional times
# Positions on the time axis stay below those of rows and columns. transformers 5.23 counts the text after a
# video only from the latter, Qwen2-VL's paper from the largest.
SIZES = {"qwen2_vl": (6, 12), "qwen2_5_vl": (6, 12), "qwen3_vl": (24, 48), "qwen3_vl_moe": (24, 48), "qwen3_5_vl": (24, 48)}


def make(root, name, least, most):
    directory, case = os.path.join(root, name), vision.CASES[name]
    with open(os.path.join(directory, "chat_template.jinja"), "w") as file:
        file.write(case["template"])
    stamped = "3" in name
    images = case["images"].from_pretrained(directory)
    kind = transformers.Qwen3VLVideoProcessor if stamped else transformers.Qwen2VLVideoProcessor
    videos = kind(size={"shortest_edge": 144 * least, "longest_edge": 144 * most}, patch_size=6, do_sample_frames=False, image_mean=images.image_mean,
                  image_std=images.image_std)
    videos.save_pretrained(directory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    whole = {"qwen2_5_vl": transformers.Qwen2_5_VLProcessor, "qwen2_vl": transformers.Qwen2VLProcessor}.get(name, transformers.Qwen3VLProcessor)
    processor = whole(images, tokenizer, videos, chat_template=case["template"])
    frames = numpy.stack([vision.picture(45, 61, 3, 10 + i) for i in range(5)])
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(os.path.join(root, "..", "video", f"frame{i}.png"))
    golden = {"decoded.video": torch.from_numpy(frames)}

    model = case["model"].from_pretrained(directory, dtype=torch.float32).eval()
    tensor = torch.from_numpy(frames).permute(0, 3, 1, 2)
    inputs = videos(videos=[tensor], return_tensors="pt")
    pixels, grid = inputs["pixel_values_videos"], inputs["video_grid_thw"]
    with torch.no_grad():
        features = model.model.get_video_features(pixels, grid, return_dict=True)
    rows = torch.cat([torch.cat(list(rows)) for rows in (features.pooler_output, *(getattr(features, "deepstack_features", None) or []))], -1)
    golden["rows.video"] = rows.reshape(int(grid[0, 0]), -1, rows.shape[-1])
    size = [int(n) * 6 for n in grid[0, 1:]]
    golden["frames.video"] = resize(tensor, size, interpolation=InterpolationMode.BICUBIC).permute(0, 2, 3, 1)
    again = videos(videos=[golden["frames.video"].permute(0, 3, 1, 2)], do_resize=False, return_tensors="pt")["pixel_values_videos"]
    assert torch.equal(again, pixels)  # the processor makes the same values

    messages = [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is in this picture?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Waves."}]},
        {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": "And how do they move in this one?"}]},
    ]
    text = processor.apply_chat_template(messages, add_generation_prompt=True)
    if stamped:  # The marks are around each part, as in Qwen's processor. transformers 5.23 puts the
                 # template's marks around all parts.
        text = text.replace("<|vision_start|><|video_pad|><|vision_end|>", "<|video_pad|>")
    metadata = transformers.video_utils.VideoMetadata(total_num_frames=5, fps=FPS, frames_indices=list(range(5)), duration=5 / FPS)
    inputs = dict(processor(text=[text], images=[vision.read_picture(os.path.join(directory, "rgb.png"))], videos=[tensor], video_metadata=[[metadata]],
                            return_tensors="pt"))
    golden["logits"] = vision.logits_of(model, inputs)
    with torch.no_grad():
        answer = model.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1]:]
    golden["ids"] = inputs["input_ids"][0].to(torch.int32)
    golden["answer"] = answer.to(torch.int32)
    save_file({key: value.contiguous() for key, value in golden.items()}, os.path.join(directory, "video.safetensors"))
    print(name, golden["frames.video"].shape, golden["rows.video"].shape, inputs.get("second_per_grid_ts"), tokenizer.decode(golden["ids"]))


def main():
    for name, sizes in SIZES.items():
        make(sys.argv[1], name, *sizes)


if __name__ == "__main__":
    main()
