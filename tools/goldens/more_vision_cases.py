"""Cases of make_vision_goldens.py for PaliGemma, LFM2-VL, Cosmos 3, and models with LLaVA-OneVision's format."""
import json
import os

import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from transformers.models.siglip2 import image_processing_siglip2 as siglip2

import similar_vision_cases


class NormedProjector(torch.nn.Module):
    """The projector of R-4B and Bee, from their published code: a norm, and two matrices."""

    def __init__(self, config, wide):
        super().__init__()
        dim, out_dim = config.vision_config.hidden_size, config.text_config.hidden_size
        self.pre_norm = torch.nn.LayerNorm(dim, eps=1e-6)
        self.linear_1 = torch.nn.Linear(dim, wide * out_dim)
        self.linear_2 = torch.nn.Linear(wide * out_dim, out_dim)

    def forward(self, x):
        return self.linear_2(torch.nn.functional.gelu(self.linear_1(self.pre_norm(x))))


class R(transformers.LlavaOnevisionForConditionalGeneration):
    wide = 1

    def __init__(self, config):
        super().__init__(config)
        self.model.multi_modal_projector = NormedProjector(config, self.wide)
        self.post_init()


class Bee(R):
    wide = 4


def publish_cosmos3(directory):
    """Writes the names of published checkpoints, and a matrix of the generator."""
    def rename(name):
        for ours, theirs in (("model.language_model.", ""), ("model.visual.", ""), ("self_attn.q_proj", "self_attn.to_q"), ("self_attn.k_proj", "self_attn.to_k"),
                             ("self_attn.v_proj", "self_attn.to_v"), ("self_attn.o_proj", "self_attn.to_out"), ("self_attn.q_norm", "self_attn.norm_q"),
                             ("self_attn.k_norm", "self_attn.norm_k")):
            name = name.replace(ours, theirs)
        return name
    similar_vision_cases.rewrite(directory, rename, lambda config: config | dict(architectures=["Cosmos3ForConditionalGeneration"], model_type="cosmos3_omni"))


def publish_as(architecture):
    """transformers writes "model.language_model.model." for classes that it does not know."""
    return lambda directory: similar_vision_cases.rewrite(directory, lambda name: name.replace("model.language_model.model.", "model.language_model."),
                                                          lambda config: config | dict(architectures=[architecture]))


def make_split(base, directory, case):
    tokenizer = base.write_tokenizer(directory, base.TEMPLATE, case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"],
                                                    image_token_id=tokenizer.convert_tokens_to_ids("<image>"), **case["options"]))
    images = transformers.Lfm2VlImageProcessor(encoder_patch_size=case["vision"]["patch_size"], **case["split"])
    images.save_pretrained(directory)
    return images, transformers.Lfm2VlProcessor(images, tokenizer, chat_template=base.TEMPLATE)


def pixels_of(patches, rows, columns, patch):
    pixels = patches[:rows * columns].reshape(rows, columns, patch, patch, 3).transpose(1, 2).reshape(rows * patch, columns * patch, 3)
    return ((pixels * 0.5 + 0.5) * 255).round().to(torch.uint8)


def split_parts(image, images):
    """Returns the tiles of an image that is cut, and the whole image."""
    small = transformers.Lfm2VlImageProcessor(**images.to_dict() | dict(max_image_tokens=6, max_pixels_tolerance=1.0))
    inputs = small(image, return_tensors="pt")
    parts = [pixels_of(patches, *(int(n) for n in shape), images.encoder_patch_size) for patches, shape in zip(inputs["pixel_values"], inputs["spatial_shapes"])]
    return dict(tiles=torch.stack(parts[:-1]), whole=parts[-1][None])


def split_of(image, images, model):
    inputs = images(image, return_tensors="pt")
    rows, columns = (int(n) for n in inputs["spatial_shapes"][0])
    with torch.no_grad():
        features = model.model.get_image_features(inputs["pixel_values"], inputs["spatial_shapes"], inputs["pixel_attention_mask"])
    patches = inputs["pixel_values"][0, :rows * columns]
    return pixels_of(patches, rows, columns, images.encoder_patch_size)[None], patches.float(), torch.cat(features.pooler_output)[None]


class Phi4Vision(transformers.Lfm2VlForConditionalGeneration):
    """Phi-4-reasoning-vision, from vLLM's code: a SigLIP 2 without its last layer and norm, two matrices, and a Phi-3."""

    def __init__(self, config):
        super().__init__(config)
        tower = self.model.vision_tower
        tower.encoder.layers = tower.encoder.layers[:-1]
        tower.post_layernorm, tower.head = torch.nn.Identity(), None
        tower.use_head = False
        self.post_init()


class PatchImages:
    """The image processor of Phi-4-reasoning-vision: the number of patches is that of the image, within limits."""
    patch_size, min_num_patches, max_num_patches, encoder_patch_size = 6, 20, 60, 6

    def __call__(self, images, return_tensors="pt"):
        out = dict(pixel_values=[], pixel_attention_mask=[], spatial_shapes=[])
        for image in images if isinstance(images, list) else [images]:
            count = max(image.height // self.patch_size * (image.width // self.patch_size), 1)
            height, width = siglip2.get_image_size_for_max_num_patches(image.height, image.width, self.patch_size,
                                                               min(max(count, self.min_num_patches), self.max_num_patches))
            pixels = torch.from_numpy(numpy.asarray(image.resize((width, height), Image.Resampling.BILINEAR)).copy()).float() / 127.5 - 1
            patches, mask = siglip2.pad_along_first_dim(siglip2.convert_image_to_patches(pixels.permute(2, 0, 1), self.patch_size), self.max_num_patches)
            for name, value in zip(out, (patches, mask, torch.tensor([height // self.patch_size, width // self.patch_size]))):
                out[name].append(value)
        return {name: torch.stack(values) for name, values in out.items()}

    def save(self, directory):
        with open(os.path.join(directory, "preprocessor_config.json"), "w") as file:
            json.dump(dict(image_processor_type="Siglip2ImageProcessorNoUpscale", patch_size=self.patch_size, min_num_patches=self.min_num_patches,
                           max_num_patches=self.max_num_patches), file, indent=2)


class PatchProcessor:
    def __init__(self, images, tokenizer):
        self.images, self.tokenizer = images, tokenizer

    def apply_chat_template(self, messages, **options):
        return self.tokenizer.apply_chat_template(messages, tokenize=False, **options)

    def __call__(self, text, images, return_tensors):
        inputs = self.images(images)
        pieces = text.split("<image>")
        text = "".join(piece + "<image>" * int(shape.prod()) for piece, shape in zip(pieces, inputs["spatial_shapes"])) + pieces[-1]
        return dict(self.tokenizer(text, return_tensors="pt", return_token_type_ids=False), **inputs)


def make_patches(base, directory, case):
    tokenizer = base.write_tokenizer(directory, base.TEMPLATE, case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], **case["options"]))
    images = PatchImages()
    images.save(directory)
    return images, PatchProcessor(images, tokenizer)


def publish_phi4(directory):
    def rename(name):
        for ours, theirs in (("model.vision_tower.", "model.vision_tower.vision_tower.vision_model."), ("model.language_model.", "model."),
                             ("model.multi_modal_projector.linear_1", "model.mm_projector.0"), ("model.multi_modal_projector.linear_2", "model.mm_projector.2")):
            name = name.replace(ours, theirs)
        return name
    similar_vision_cases.rewrite(directory, rename, lambda config: config["text_config"] | dict(
        architectures=["Phi4ForCausalLMV"], model_type="phi4-siglip", image_token_id=259, vision_config=config["vision_config"],
        tie_word_embeddings=False))


def make_colpali(base, directory, text, vision):
    """Makes ColPali, which has a vector of each token in place of logits ("logits": the vectors before normalisation)."""
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = base.write_tokenizer(directory)
    image_token = tokenizer.convert_tokens_to_ids("<image>")
    config = transformers.ColPaliConfig(embedding_dim=20, vlm_config=transformers.PaliGemmaConfig(
        text_config=text, vision_config=vision, image_token_index=image_token, projection_dim=48, hidden_size=48))
    model = transformers.ColPaliForRetrieval(config).eval()
    base.randomise(model)
    model.to(torch.bfloat16).save_pretrained(directory)
    wide = transformers.ColPaliForRetrieval.from_pretrained(directory, dtype=torch.float32).eval()
    images = transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32}, resample=3)
    images.save_pretrained(directory)
    golden, pictures = {}, {name: base.read_picture(path) for name, path in base.write_pictures(directory, False).items()}
    for name, picture in pictures.items():
        pixels = images(picture, return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            golden[f"rows.{name}"] = wide.vlm.get_image_features(pixels, return_dict=True).pooler_output
        golden[f"decoded.{name}"] = torch.from_numpy(numpy.asarray(picture).copy())
        golden[f"tiles.{name}"] = ((pixels * 0.5 + 0.5) * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    words = tokenizer("Describe the image.")["input_ids"]
    ids = torch.tensor([[image_token] * 16 + words + [image_token] * 16 + words])
    vectors = []
    wide.embedding_proj_layer.register_forward_hook(lambda module, args, out: vectors.append(out))
    with torch.no_grad():
        wide(input_ids=ids, token_type_ids=torch.zeros_like(ids),
             pixel_values=images([pictures["rgb.png"], pictures["photo.jpg"]], return_tensors="pt")["pixel_values"])
    golden |= {"ids": ids[0].to(torch.int32), "answer": torch.zeros(12, dtype=torch.int32), "logits": vectors[0][0], "bf16_kl": torch.zeros(ids.shape[1])}
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, os.path.join(directory, "golden.safetensors"))


def cases(base):
    """`base` is the module make_vision_goldens."""
    text = {k: v for k, v in base.TEXT.items() if k not in ("model_type", "pad_token_id")} | dict(pad_token_id=0)
    siglip = dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
    gemma = text | dict(head_dim=24, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True)
    pali = dict(model=transformers.PaliGemmaForConditionalGeneration, config=transformers.PaliGemmaConfig, square=True, drop=("labels",),
                images=transformers.SiglipImageProcessorPil, sizes=dict(size={"height": 32, "width": 32}, image_seq_length=16, resample=3),
                template=base.TEMPLATE, special=base.SPECIAL, end="<end_of_utterance>", names=dict(image_token="<image>"),
                options=dict(projection_dim=48, hidden_size=48), vision=siglip | dict(model_type="siglip_vision_model", vision_use_head=False))
    onevision = base.CASES["llava_onevision"]
    split = dict(downsample_factor=2, min_image_tokens=4, max_image_tokens=30, tile_size=24, min_tiles=2, max_tiles=6)
    return {
        "colpali": dict(make=lambda directory: make_colpali(base, directory, gemma | dict(model_type="gemma"), pali["vision"])),
        "cosmos3": base.QWEN3 | dict(model=transformers.Qwen3VLForConditionalGeneration, config=transformers.Qwen3VLConfig, publish=publish_cosmos3),
        "phi4_reasoning_vision": dict(
            patches=True, model=Phi4Vision, config=transformers.Lfm2VlConfig, end="<end_of_utterance>", special=base.SPECIAL, names=dict(image_token="<image>"),
            options=dict(downsample_factor=1, projector_hidden_size=48, projector_use_layernorm=False, image_token_id=259, tie_word_embeddings=False),
            text=text | dict(model_type="phi3", tie_word_embeddings=False), publish=publish_phi4,
            vision={k: v for k, v in siglip.items() if k != "image_size"} | dict(
                patch_size=6, num_patches=25, num_hidden_layers=3, model_type="siglip2_vision_model", vision_use_head=False)),
        "paligemma": pali | dict(text=gemma | dict(model_type="gemma", hidden_act="gelu_pytorch_tanh")),
        "paligemma2": pali | dict(text=gemma | dict(model_type="gemma2", query_pre_attn_scalar=24, sliding_window=512, num_hidden_layers=2)),
        "lfm2_vl": dict(split=split, model=transformers.Lfm2VlForConditionalGeneration, config=transformers.Lfm2VlConfig, end="<end_of_utterance>",
                        special=[*base.SPECIAL[:4], "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>",
                                 *(f"<|img_row_{row}_col_{column}|>" for row in (1, 2, 3) for column in (1, 2, 3))],
                        names=dict(image_token="<image>"), options=dict(projector_hidden_size=56),
                        text=text | dict(model_type="lfm2", block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention"]),
                        vision={k: v for k, v in siglip.items() if k != "image_size"} | dict(patch_size=6, num_patches=25, model_type="siglip2_vision_model")),
        "llava_onevision-r4b": onevision | dict(model=R, text=base.TEXT | dict(model_type="qwen3", head_dim=24), publish=publish_as("RForConditionalGeneration")),
        "llava_onevision-bee": onevision | dict(model=Bee, text=base.TEXT | dict(model_type="qwen3", head_dim=24), publish=publish_as("BeeForConditionalGeneration")),
    }
