"""Cases of make_vision_goldens.py for Kimi's and Nemotron's encoders, models like InternVL, Alpamayo 2, and Pixtral in Mistral's own format."""
import json
import os
import re

import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

import similar_vision_cases

CHAT = similar_vision_cases.CHAT


class Raw:
    """Writes the tensors with the names of the modules, and reads them again: without transformers' conversions."""
    stored = {}

    def save_pretrained(self, directory):
        self.config.architectures = [type(self).__name__]
        self.config.save_pretrained(directory)
        with open(os.path.join(directory, "config.json")) as file:
            config = json.load(file)
        with open(os.path.join(directory, "config.json"), "w") as file:
            json.dump(config | dict(dtype="bfloat16"), file, indent=2)
        tensors = {name: tensor.contiguous().clone() for name, tensor in self.state_dict().items()}
        save_file(tensors, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
        Raw.stored[directory] = (self.config, tensors)

    @classmethod
    def from_pretrained(cls, directory, dtype):
        config, tensors = Raw.stored[directory]
        model = cls(config)
        model.load_state_dict(tensors)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype)
        return model


class Expander:
    """A processor that replaces each placeholder by the tokens of its image."""

    def __init__(self, images, tokenizer, placeholder, tokens):
        self.images, self.tokenizer, self.placeholder, self.tokens = images, tokenizer, placeholder, tokens

    def apply_chat_template(self, messages, **options):
        return self.tokenizer.apply_chat_template(messages, tokenize=False, **options)

    def __call__(self, text, images, return_tensors):
        inputs = dict(self.images(images))
        pieces = text.split(self.placeholder)
        text = "".join(piece + self.placeholder * int(count) for piece, count in zip(pieces, self.tokens(inputs))) + pieces[-1]
        return dict(self.tokenizer(text, return_tensors="pt", return_token_type_ids=False), **inputs)


def picture_of(patches, rows, columns, images):
    """Joins patches [n, 3, size, size], and returns the picture's bytes [1, height, width, 3]."""
    size = patches.shape[-1]
    mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in (images.image_mean, images.image_std))
    pixels = patches.reshape(rows, columns, 3, size, size).permute(2, 0, 3, 1, 4).reshape(3, rows * size, columns * size)
    return ((pixels * std + mean) * 255).round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0)[None]


class Patches:
    """An image processor whose bytes are numbers that a picture's bytes have, without overshoots of the resampling."""

    def __init__(self, processor, grid):
        self.processor, self.grid = processor, grid

    def __getattr__(self, name):
        return getattr(self.processor, name)

    def __call__(self, images, return_tensors="pt"):
        inputs = dict(self.processor(images, return_tensors="pt"))
        values = inputs["pixel_values"]
        shape = (1, 3, 1, 1)
        mean, std = (torch.tensor(x).reshape(shape) for x in (self.image_mean, self.image_std))
        flat = values.reshape(len(values), 3, self.patch_size, self.patch_size)
        inputs["pixel_values"] = ((((flat * std + mean) * 255).round().clamp(0, 255) / 255 - mean) / std).reshape(values.shape)
        return inputs


def make_kimi(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_id=259, projection_hidden_size=48,
                                                    tie_word_embeddings=False))
    own = transformers.Kimi_K25ImageProcessor(patch_size=6, max_patches=40)
    own.save_pretrained(directory)
    images = Patches(own, "image_grid_thw")
    return images, Expander(images, tokenizer, "<|media_pad|>", lambda inputs: inputs["image_grid_thw"].prod(-1) // 4)


def kimi_of(image, images, model):
    inputs = images(image)
    _, rows, columns = (int(n) for n in inputs["image_grid_thw"][0])
    with torch.no_grad():
        features = model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
    return picture_of(inputs["pixel_values"], rows, columns, images), inputs["pixel_values"].flatten(1), torch.cat(list(features.pooler_output))[None]


class Kimi(Raw, transformers.Kimi_K25ForConditionalGeneration):
    pass


def publish_kimi(architecture, model_type, projector):
    def configure(config):
        vision = {name.replace("pos_emb_", "init_pos_emb_") if model_type == "kimi_vl" else name: value for name, value in config["vision_config"].items()}
        return {name: value for name, value in config.items() if name != "image_token_id"} | dict(
            architectures=[architecture], model_type=model_type, media_placeholder_token_id=259, vision_config=vision)

    def publish(directory):
        path = os.path.join(directory, "model.safetensors")
        stored, tensors = load_file(path), {}
        heads = Raw.stored[directory][0].vision_config.num_attention_heads
        for name, tensor in stored.items():
            name = name.removeprefix("model.")
            if name.startswith("language_model."):
                name = name.replace("language_model.", "language_model.model.", 1)
                if ".mlp.experts." in name:
                    half = tensor.shape[1] // 2
                    for index, expert in enumerate(tensor):
                        before = name.split("gate_up_proj")[0].split("down_proj")[0] + str(index)
                        if "down_proj" in name:
                            tensors[before + ".down_proj.weight"] = expert.clone()
                        else:
                            tensors |= {before + ".gate_proj.weight": expert[:half].clone(), before + ".up_proj.weight": expert[half:].clone()}
                    continue
            if name.startswith("lm_head"):
                name = "language_model." + name
            if name.startswith("vision_tower."):
                if re.search(r"attn\.[kv]_proj", name):
                    continue
                if "attn.q_proj" in name:
                    own = [stored["model." + name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
                    as_rows = [part if part.dim() == 2 else part[:, None] for part in own]
                    tensor = torch.cat([in_pairs(part, heads) for part in as_rows[:2]] + as_rows[2:]).reshape(-1, *own[0].shape[1:])
                    name = name.replace("attn.q_proj", "wqkv")
                for ours, theirs in (("norm1", "norm0"), ("norm2", "norm1")):
                    if "." + ours + "." in name:
                        name = name.replace("." + ours + ".", "." + theirs + ".")
                        break
                for ours, theirs in (("vision_tower.layers.", "vision_tower.encoder.blocks."), ("vision_tower.final_layernorm", "vision_tower.encoder.final_layernorm"),
                                     ("attn.proj", "wo"), ("mlp.fc1", "mlp.fc0"), ("mlp.fc2", "mlp.fc1"), ("pos_emb.position_embeddings", "pos_emb.weight")):
                    name = name.replace(ours, theirs)
            for ours, theirs in (("mm_projector.in_proj", projector[0]), ("mm_projector.out_proj", projector[1]), ("mm_projector.pre_norm", projector[2])):
                name = name.replace(ours, theirs)
            tensors[name] = tensor.contiguous()
        save_file(tensors, path, metadata={"format": "pt"})
        similar_vision_cases.rewrite(directory, lambda name: name, configure)
    return publish


class NemotronOmni(Raw, transformers.NemotronH_Omni_Reasoning_V3):
    """Without the scales of the encoder's layers, which no checkpoint has."""

    def __init__(self, config):
        super().__init__(config)
        for layer in self.vision_model.encoder.layer:
            layer.layer_scale1 = layer.layer_scale2 = torch.nn.Identity()
        if self.vision_final_layernorm is not None:  # no checkpoint has its weights
            self.vision_final_layernorm = torch.nn.LayerNorm(config.vision_hidden_size, eps=1e-6, elementwise_affine=False)
        self.post_init()

    @property
    def lm_head(self):
        return self.language_model.lm_head


class LlamaNemotron(NemotronOmni):
    """Llama Nemotron Nano VL, from vLLM's code: a norm with a mean, and matrices with biases."""

    def __init__(self, config):
        super().__init__(config)
        dim, hidden, out_dim = 4 * config.vision_hidden_size, config.projector_hidden_size, config.text_config.hidden_size
        self.multi_modal_projector = torch.nn.Sequential()
        self.multi_modal_projector.layer_norm = torch.nn.LayerNorm(dim)
        self.multi_modal_projector.linear_1 = torch.nn.Linear(dim, hidden)
        self.multi_modal_projector.act = torch.nn.GELU()
        self.multi_modal_projector.linear_2 = torch.nn.Linear(hidden, out_dim)
        self.post_init()


class Tiles:
    """An image processor of tiles that returns the patches of all tiles."""

    def __init__(self, processor, patch):
        self.processor, self.patch_size = processor, patch

    def __getattr__(self, name):
        return getattr(self.processor, name)

    def __call__(self, images, return_tensors="pt"):
        out = dict(pixel_values=[], counts=[])
        for image in images if isinstance(images, list) else [images]:
            tiles = self.processor(image, return_tensors="pt", crop_to_patches=True)["pixel_values"]
            size, side = self.patch_size, tiles.shape[-1] // self.patch_size
            out["pixel_values"].append(tiles.reshape(len(tiles), 3, side, size, side, size).permute(0, 2, 4, 1, 3, 5).reshape(-1, 3 * size * size))
            out["counts"].append(len(tiles))
        tiles = sum(out["counts"])
        return dict(pixel_values=torch.cat(out["pixel_values"]), image_grid_hw=torch.tensor([[side, side]] * tiles), counts=out["counts"])


class TileExpander(Expander):
    def __call__(self, text, images, return_tensors):
        inputs = super().__call__(text, images, return_tensors)
        inputs.pop("counts", None)
        return inputs


def make_nemotron(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_id=259, projector_hidden_size=56,
                                                    vision_hidden_size=48))
    if case["tile"]:
        own = transformers.GotOcr2ImageProcessorPil(size={"height": case["tile"], "width": case["tile"]}, max_patches=4)
        images = Tiles(own, case["vision"]["patch_size"])
        tokens = (case["tile"] // images.patch_size // 2) ** 2
        return images, TileExpander(images, tokenizer, "<image>", lambda inputs: [count * tokens for count in inputs["counts"]])
    own = transformers.NemotronH_Omni_Reasoning_V3ImageProcessor(patch_size=6, min_num_patches=20, max_num_patches=60)
    images = Patches(own, "image_grid_hw")
    return images, Expander(images, tokenizer, "<image>", lambda inputs: inputs["image_grid_hw"].prod(-1) // 4)


def nemotron_of(image, images, model):
    inputs = images(image)
    grids = inputs["image_grid_hw"].tolist()
    with torch.no_grad():
        rows = list(model.get_image_features(inputs["pixel_values"], inputs["image_grid_hw"], return_dict=True).pooler_output)
    patches = inputs["pixel_values"].reshape(-1, 3, images.patch_size, images.patch_size).split([rows * columns for rows, columns in grids])
    pictures = [picture_of(part, rows, columns, images) for part, (rows, columns) in zip(patches, grids)]
    return torch.cat(pictures), inputs["pixel_values"].float(), torch.stack(rows)


def publish_nemotron(architecture, tile):
    def configure(config):
        vision, text = config["vision_config"], config["text_config"]
        args = dict(model="vit_base_patch16_224", cpe_max_size=vision["max_img_size"], cls_token_per_teacher=True, register_multiple=5,
                    teachers=[dict(name=name) for name in ("clip", "dino", "sam", "sam")])
        if not tile:
            args |= dict(min_num_patches=20, max_num_patches=60)
        # Published configurations have the sizes of args.model.
        sizes = dict(hidden_size=vision["hidden_size"], num_hidden_layers=vision["num_hidden_layers"], num_attention_heads=vision["num_attention_heads"],
                     intermediate_size=int(vision["hidden_size"] * vision["mlp_ratio"]))
        names = dict(nemotron_h="NemotronHForCausalLM", llama="LlamaForCausalLM")
        return dict(architectures=[architecture], model_type=architecture, dtype="bfloat16", img_context_token_id=259, downsample_ratio=0.5, ps_version="v2", use_thumbnail=True,
                    force_image_size=tile or 48, max_num_tiles=4, vit_hidden_size=48, projector_hidden_size=56, norm_mean=vision["norm_mean"], norm_std=vision["norm_std"],
                    llm_config=text | dict(architectures=[names[text["model_type"]]]), vision_config=dict(args=args, patch_size=vision["patch_size"]) | sizes)

    def publish(directory):
        path = os.path.join(directory, "model.safetensors")
        stored, tensors = load_file(path), {}
        for name, tensor in stored.items():
            if re.search(r"attention\.[kv]_proj", name) or name.startswith("vision_model.summary_idxs"):
                continue
            if ".attention.q_proj." in name and name.startswith("vision_model."):
                tensor = torch.cat([stored[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
                name = name.replace("attention.q_proj", "attn.qkv")
            if name.startswith("vision_model."):
                for ours, theirs in (("vision_model.embeddings.patch_projection", "patch_generator.embedder"),
                                     ("vision_model.embeddings.video_patch_projection", "patch_generator.video_embedder"),
                                     ("vision_model.embeddings.position_embedding", "patch_generator.pos_embed"),
                                     ("vision_model.embeddings.cls_register_token", "patch_generator.cls_token.token"),
                                     ("vision_model.encoder.layer.", "blocks."), ("attention.o_proj", "attn.proj")):
                    name = name.replace(ours, theirs)
                if not name.startswith("vision_model."):
                    name = "vision_model.radio_model.model." + name
            for ours, theirs in (("multi_modal_projector.layer_norm", "mlp1.0"), ("multi_modal_projector.linear_1", "mlp1.1"),
                                 ("multi_modal_projector.linear_2", "mlp1.3")):
                name = name.replace(ours, theirs)
            tensors[name] = tensor
        save_file(tensors, path, metadata={"format": "pt"})
        similar_vision_cases.rewrite(directory, lambda name: name, configure)
    return publish


class Nvlm(transformers.InternVLForConditionalGeneration):
    """NVLM-D, from vLLM's code: matrices without biases, and a width of the language model's MLPs."""

    def __init__(self, config):
        super().__init__(config)
        projector, text = self.model.multi_modal_projector, config.text_config
        projector.linear_1 = torch.nn.Linear(4 * config.vision_config.hidden_size, text.intermediate_size, bias=False)
        projector.linear_2 = torch.nn.Linear(text.intermediate_size, text.hidden_size, bias=False)
        self.post_init()


SIGLIP = dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, vision_use_head=False)


class Eagle(Raw, transformers.InternVLForConditionalGeneration):
    """Eagle 2.5: InternVL with a SigLIP encoder."""

    def __init__(self, config):
        super().__init__(config)
        self.model.vision_tower = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**SIGLIP))
        self.post_init()


def publish_chat_as(architecture, model_type):
    def publish(directory):
        similar_vision_cases.publish_internvl_chat(directory)
        similar_vision_cases.rewrite(directory, lambda name: name.removeprefix("model."), lambda config: config | dict(
            architectures=[architecture], model_type=model_type, img_context_token_id=259))
    return publish


def publish_eagle(directory):
    def rename(name):
        name = re.sub(r"^(model\.)?vision_tower\.(vision_model\.)?", "vision_model.vision_model.", name)
        name = re.sub(r"^model\.language_model\.(?!model)", "language_model.model.", name)
        name = re.sub(r"^(model\.)?multi_modal_projector\.", "multi_modal_projector.", name).replace("lm_head.", "language_model.lm_head.")
        for ours, theirs in (("multi_modal_projector.layer_norm", "mlp1.0"), ("multi_modal_projector.linear_1", "mlp1.1"),
                             ("multi_modal_projector.linear_2", "mlp1.3"), ("language_model.language_model.", "language_model.")):
            name = name.replace(ours, theirs)
        return name
    similar_vision_cases.rewrite(directory, rename, lambda config: dict(
        architectures=["Eagle2_5_VLForConditionalGeneration"], model_type="eagle_2_5_vl", downsample_ratio=0.5, select_layer=-1, dynamic_image_size=True,
        use_thumbnail=True, min_dynamic_patch=1, max_dynamic_patch=4, force_image_size=32, dtype="bfloat16",
        text_config=config["text_config"] | dict(architectures=["Qwen2ForCausalLM"], tie_word_embeddings=config["tie_word_embeddings"]),
        vision_config=SIGLIP | dict(model_type="siglip_vision_model")))
    os.remove(os.path.join(directory, "preprocessor_config.json"))


class Llama4(Raw, transformers.Llama4ForConditionalGeneration):
    @property
    def lm_head(self):
        return self.language_model.lm_head


def publish_llama4(directory):
    similar_vision_cases.rewrite(directory, lambda name: name, lambda config: config | dict(architectures=["Llama4ForConditionalGeneration"]))


def make_llama4(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](text_config=dict(case["text"]), vision_config=case["vision"], image_token_index=259))
    size = {"height": case["vision"]["image_size"], "width": case["vision"]["image_size"]}
    with open(os.path.join(directory, "preprocessor_config.json"), "w") as file:
        json.dump(dict(image_processor_type="Llama4ImageProcessor", size=size, max_patches=4), file, indent=2)
    # transformers' processor rounds the numbers to bf16.
    images = transformers.GotOcr2ImageProcessorPil(size=size, max_patches=4, image_mean=[0.5] * 3, image_std=[0.5] * 3, crop_to_patches=True)
    return images, Llama4Expander(images, tokenizer, "<|patch|>", lambda inputs: [4 * count for count in inputs["num_patches"]])


class Llama4Expander(Expander):
    def __call__(self, text, images, return_tensors):
        inputs = super().__call__(text, images, return_tensors)
        inputs.pop("num_patches")
        return inputs | dict(pixel_values=torch.as_tensor(inputs["pixel_values"]))


def llama4_of(image, images, model):
    pixels = images(image, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        rows = model.multi_modal_projector(model.vision_model(pixels).last_hidden_state)
    return ((pixels * 0.5 + 0.5) * 255).round().to(torch.uint8).permute(0, 2, 3, 1), pixels[0].float(), rows


class Phi3Images(torch.nn.Module):
    """The encoder and the projector of Phi-3-vision, from vLLM's code."""

    def __init__(self, config):
        super().__init__()
        clip, dim = transformers.CLIPVisionConfig(**config.img_processor), config.hidden_size
        self.img_processor = transformers.CLIPVisionModel(clip)
        self.sub_GN = torch.nn.Parameter(torch.zeros(1, 1, 1, 4 * clip.hidden_size))
        self.glb_GN = torch.nn.Parameter(torch.zeros(1, 1, 4 * clip.hidden_size))
        self.img_projection = torch.nn.Sequential(torch.nn.Linear(4 * clip.hidden_size, dim), torch.nn.GELU(), torch.nn.Linear(dim, dim))

    def lines(self, patches, rows, columns):
        side = int(patches.shape[1] ** 0.5) // 2
        grid = patches.reshape(rows, columns, side, 2, side, 2, -1).permute(0, 2, 1, 4, 3, 5, 6).reshape(rows * side, columns * side, -1)
        return torch.cat([grid, self.sub_GN[0].expand(rows * side, 1, -1)], 1).flatten(0, 1)

    def forward(self, pixels, rows, columns):
        patches = self.img_processor(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
        return self.img_projection(torch.cat([self.lines(patches[1:], rows, columns), self.glb_GN[0], self.lines(patches[:1], 1, 1)]))


class Phi3Vision(Raw, transformers.Phi3ForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        self.model.vision_embed_tokens = Phi3Images(config)
        self.post_init()

    def rows_of(self, pixel_values, grids):
        tiles = pixel_values.to(self.dtype).split([1 + int(rows * columns) for rows, columns in grids])
        return [self.model.vision_embed_tokens(part, int(rows), int(columns)) for part, (rows, columns) in zip(tiles, grids)]

    def forward(self, input_ids, pixel_values, grids, **options):
        embeds = self.model.embed_tokens(input_ids).clone()
        embeds[input_ids == 259] = torch.cat(self.rows_of(pixel_values, grids))
        return super().forward(inputs_embeds=embeds)

    def generate(self, input_ids, max_new_tokens, do_sample, eos_token_id, **images):
        for _ in range(max_new_tokens):
            input_ids = torch.cat([input_ids, self(input_ids, **images).logits[:, -1:].argmax(-1)], 1)
        return input_ids


class Phi3Processor:
    """Phi-3-vision's image processor: the image fills one direction of a grid of tiles, and the rest is white."""
    size, crops = 48, 3
    image_mean, image_std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)

    def frame_of(self, image):
        upright = image.width < image.height
        if upright:
            image = image.transpose(Image.Transpose.TRANSPOSE)
        ratio, columns = image.width / image.height, 1
        while columns * numpy.ceil(columns / ratio) <= self.crops:
            columns += 1
        columns -= 1
        image = image.resize((columns * self.size, int(columns * self.size / ratio)), Image.Resampling.BILINEAR)
        height = int(numpy.ceil(image.height / self.size) * self.size)
        frame = Image.new("RGB", (image.width, height), (255, 255, 255))
        frame.paste(image, (0, int((height - image.height) / 2)))
        return frame.transpose(Image.Transpose.TRANSPOSE) if upright else frame

    def __call__(self, images, return_tensors="pt"):
        mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in (self.image_mean, self.image_std))
        pixels, grids = [], []
        for image in images if isinstance(images, list) else [images]:
            frame = (torch.from_numpy(numpy.asarray(self.frame_of(image)).copy()).permute(2, 0, 1) / 255 - mean) / std
            rows, columns = (side // self.size for side in frame.shape[1:])
            tiles = frame.reshape(3, rows, self.size, columns, self.size).permute(1, 3, 0, 2, 4).reshape(-1, 3, self.size, self.size)
            pixels += [torch.nn.functional.interpolate(frame[None], size=(self.size, self.size), mode="bicubic"), tiles]
            grids.append([rows, columns])
        return dict(pixel_values=torch.cat(pixels), grids=torch.tensor(grids))


def make_phi3(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], case["names"])
    base.save_model(directory, case, case["config"](**case["text"], img_processor=case["vision"], image_token_id=259))
    with open(os.path.join(directory, "preprocessor_config.json"), "w") as file:
        json.dump(dict(image_processor_type="Phi3VImageProcessor", num_crops=3, size={"height": 48, "width": 48}, patch_size=6), file, indent=2)
    images = Phi3Processor()
    return images, Expander(images, tokenizer, "<|image|>", lambda inputs: [16 * rows * columns + 4 * rows + 1 + 4 * 5 for rows, columns in inputs["grids"].tolist()])


def phi3_of(image, images, model):
    inputs = images(image)
    with torch.no_grad():
        rows = model.rows_of(**inputs)[0]
    mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in (images.image_mean, images.image_std))
    tiles = ((inputs["pixel_values"][1:] * std + mean) * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    return tiles, inputs["pixel_values"][1].float(), rows[None]


def publish_phi3(directory):
    def rename(name):
        return re.sub(r"img_processor\.(?!vision_model)", "img_processor.vision_model.", name)
    similar_vision_cases.rewrite(directory, rename, lambda config: config | dict(architectures=["Phi3VForCausalLM"], model_type="phi3_v"))


def publish_alpamayo(directory):
    similar_vision_cases.rewrite(directory, lambda name: "vlm." + name, lambda config: dict(
        architectures=["Alpamayo2Super"], model_type="alpamayo2_super", min_pixels=12 * 12 * 12, max_pixels=12 * 12 * 20, traj_ids={}, vlm_config=config,
        tie_word_embeddings=config["tie_word_embeddings"]))


def in_pairs(matrix, heads):
    """Converts the rows of a matrix so that RoPE pairs adjacent elements of a head."""
    return matrix.reshape(heads, 2, -1, matrix.shape[-1]).transpose(1, 2).reshape(matrix.shape).contiguous()


def publish_pixtral(directory):
    with open(os.path.join(directory, "config.json")) as file:
        config = json.load(file)
    text, vision = config["text_config"], config["vision_config"]
    layer = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk",
             "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo", "attention.q_proj": "attention.wq", "attention.k_proj": "attention.wk",
             "attention.v_proj": "attention.wv", "attention.o_proj": "attention.wo", ".mlp.gate_proj": ".feed_forward.w1", ".mlp.up_proj": ".feed_forward.w3",
             ".mlp.down_proj": ".feed_forward.w2", "feed_forward.gate_proj": "feed_forward.w1", "feed_forward.up_proj": "feed_forward.w3",
             "feed_forward.down_proj": "feed_forward.w2"}
    start = [(r"^(model\.)?vision_tower\.", "vision_encoder."), (r"^(model\.)?multi_modal_projector\.norm", "pre_mm_projector_norm"),
             (r"^(model\.)?multi_modal_projector\.patch_merger", "patch_merger"), (r"^(model\.)?multi_modal_projector\.linear_1", "vision_language_adapter.w_in"),
             (r"^(model\.)?multi_modal_projector\.linear_2", "vision_language_adapter.w_out"), (r"^(language_model\.)?lm_head", "output"),
             (r"^(model\.language_model\.|language_model\.model\.)", ""), (r"^embed_tokens", "tok_embeddings")]
    tensors = {}
    for name, tensor in load_file(os.path.join(directory, "model.safetensors")).items():
        for pattern, written in start:
            name = re.sub(pattern, written, name)
        if "layers." in name:
            for ours, theirs in layer.items():
                name = name.replace(ours, theirs)
        own = vision if name.startswith("vision_encoder.") else text
        if name.endswith("wq.weight"):
            tensor = in_pairs(tensor, own["num_attention_heads"])
        if name.endswith("wk.weight"):
            tensor = in_pairs(tensor, own.get("num_key_value_heads", own["num_attention_heads"]))
        tensors[name] = tensor.contiguous()
    save_file(tensors, os.path.join(directory, "consolidated.safetensors"), metadata={"format": "pt"})
    for name in ("model.safetensors", "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json"):
        if os.path.exists(os.path.join(directory, name)):
            os.remove(os.path.join(directory, name))
    own = dict(hidden_size=vision["hidden_size"], num_channels=3, image_size=48, max_image_size=48, patch_size=vision["patch_size"], rope_theta=10000.0,
               intermediate_size=vision["intermediate_size"], num_hidden_layers=vision["num_hidden_layers"], num_attention_heads=vision["num_attention_heads"],
               adapter_bias=False, mm_projector_id="patch_merge", spatial_merge_size=2, add_pre_mm_projector_layer_norm=True, image_token_id=259,
               image_break_token_id=261, image_end_token_id=262)
    theta = (text.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    params = dict(dim=text["hidden_size"], n_layers=text["num_hidden_layers"], head_dim=text["head_dim"], hidden_dim=text["intermediate_size"],
                  n_heads=text["num_attention_heads"], n_kv_heads=text["num_key_value_heads"], norm_eps=text["rms_norm_eps"], vocab_size=text["vocab_size"],
                  rope_theta=theta, max_position_embeddings=512, sliding_window=None, tied_embeddings="output.weight" not in tensors, vision_encoder=own)
    with open(os.path.join(directory, "params.json"), "w") as file:
        json.dump(params, file, indent=2)


def cases(base):
    """`base` is the module make_vision_goldens."""
    text = {k: v for k, v in base.TEXT.items() if k not in ("model_type", "pad_token_id")}
    latent = text | dict(model_type="deepseek_v3", q_lora_rank=None, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=24, v_head_dim=32, num_key_value_heads=2,
                         n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=40, n_shared_experts=1, first_k_dense_replace=1,
                         rope_parameters=dict(rope_type="default", rope_theta=1e4))
    kimi = dict(kind=(lambda directory, case: make_kimi(base, directory, case), kimi_of), decided=True, model=Kimi,
                config=transformers.Kimi_K25Config, end="<|im_end|>", template=CHAT.format(image="<|media_pad|>"),
                special=["<|im_start|>", "<|im_end|>", "<|media_start|>", "<|media_pad|>", "<|media_end|>"], names={}, text=latent,
                vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3, patch_size=6, pos_emb_height=5, pos_emb_width=5))
    radio = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=1.5, patch_size=6, max_img_size=42, num_cls_tokens=3, num_registers=2,
                 video_temporal_patch_size=2, model_type="radio")
    nemotron = dict(kind=(lambda directory, case: make_nemotron(base, directory, case), nemotron_of), model=NemotronOmni,
                    config=transformers.NemotronH_Omni_Reasoning_V3_Config, end="<|im_end|>", template=CHAT.format(image="<img><image></img>"),
                    special=["<|im_start|>", "<|im_end|>", "<img>", "<image>", "</img>"], names={}, vision=radio)
    llama = base.TEXT | dict(num_nextn_predict_layers=0, tie_word_embeddings=False)
    internvl = base.CASES["internvl"]
    imagenet = internvl["sizes"] | dict(image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    return {
        "kimi_k25": kimi | dict(publish=publish_kimi("KimiK25ForConditionalGeneration", "kimi_k25", ("mm_projector.proj.0", "mm_projector.proj.2", "mm_projector.pre_norm"))),
        "kimi_vl": kimi | dict(publish=publish_kimi("KimiVLForConditionalGeneration", "kimi_vl", (
            "multi_modal_projector.linear_1", "multi_modal_projector.linear_2", "multi_modal_projector.pre_norm"))),
        "nemotron_omni": nemotron | dict(text=llama | dict(num_nextn_predict_layers=1), tile=0, publish=publish_nemotron("NemotronH_Nano_Omni_Reasoning_V3", 0)),
        "nemotron_nano_vl": nemotron | dict(text=llama, tile=24, publish=publish_nemotron("NemotronH_Nano_VL_V2", 24)),
        "llama_nemotron_vl": nemotron | dict(text=llama, tile=24, model=LlamaNemotron, publish=publish_nemotron("Llama_Nemotron_Nano_VL", 24)),
        "nvlm_d": internvl | dict(model=Nvlm, sizes=imagenet, publish=publish_chat_as("NVLM_D", "NVLM_D")),
        "eagle2_5": internvl | dict(model=Eagle, sizes=imagenet, options=dict(vision_feature_select_strategy="full", tie_word_embeddings=False), publish=publish_eagle),
        "llama4": dict(
            kind=(lambda directory, case: make_llama4(base, directory, case), llama4_of), publish=publish_llama4, model=Llama4, config=transformers.Llama4Config, end="<|im_end|>",
            template=CHAT.format(image="<|patch|>"), special=["<|im_start|>", "<|im_end|>", "<|image|>", "<|patch|>"], names={},
            text=text | dict(head_dim=24, intermediate_size_mlp=80, num_local_experts=3, num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=40,
                             pad_token_id=257),
            vision=dict(hidden_size=48, intermediate_size=192, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, projector_input_dim=56,
                        projector_output_dim=56, vision_output_dim=56)),
        "phi3_vision": dict(
            kind=(lambda directory, case: make_phi3(base, directory, case), phi3_of), model=Phi3Vision, config=transformers.Phi3Config, end="<|im_end|>",
            template=CHAT.format(image="<|image|>"), special=["<|im_start|>", "<|im_end|>", "<|user|>", "<|image|>"], names={}, publish=publish_phi3,
            text=text | dict(pad_token_id=257, tie_word_embeddings=False),
            vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=2, image_size=48, patch_size=6)),
        "alpamayo2": base.QWEN3 | dict(model=transformers.Qwen3VLForConditionalGeneration, config=transformers.Qwen3VLConfig, publish=publish_alpamayo),
        "pixtral_own": base.PIXTRAL | dict(model=transformers.Mistral3ForConditionalGeneration, config=transformers.Mistral3Config, merge=2,
                                           text=base.TEXT | dict(model_type="mistral", head_dim=24), vision=base.PIXTRAL["vision"] | dict(hidden_act="silu"),
                                           publish=publish_pixtral),
    }
