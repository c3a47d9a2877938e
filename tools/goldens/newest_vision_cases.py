"""Cases of make_vision_goldens.py for Cosmos 3 Edge, Keye-VL, Ling 3, MiniMax-M3 and Ovis 2.5.

transformers has Cosmos 3 Edge and MiniMax-M3. The others are made of transformers' modules, with the formulas of vLLM 0.33's code."""
import json
import os

import make_model_goldens
import numpy
import own_decoders
import similar_vision_cases
import torch
import transformers
from PIL import Image
from encoder_vision_cases import Expander, Raw
from safetensors.torch import load_file, save_file
from torch import nn

CHAT = similar_vision_cases.CHAT


class EdgeProcessor(transformers.Cosmos3EdgeProcessor):
    def __call__(self, **inputs):
        return super().__call__(return_mm_token_type_ids=True, **inputs)


def publish_edge(directory):
    """Restores SigLIP's names. transformers also writes the names of the text model's tensors in the encoder."""
    def rename(name):
        if name.startswith("model.visual."):
            for ours, theirs in (("attn.to_", "attn."), ("attn.q.", "attn.q_proj."), ("attn.k.", "attn.k_proj."), ("attn.v.", "attn.v_proj."), ("up_proj", "fc1"), ("down_proj", "fc2")):
                name = name.replace(ours, theirs)
        return name
    similar_vision_cases.rewrite(directory, rename, lambda config: config)


def m3_processor(images, tokenizer, template):
    return transformers.MiniMaxM3VLProcessor(images, tokenizer, transformers.MiniMaxM3VLVideoProcessor(), chat_template=template)


def publish_m3(directory):
    """Writes the name of MiniMax's image processor. transformers has it only with torchvision's resampling."""
    path = os.path.join(directory, "preprocessor_config.json")
    with open(path) as file:
        settings = json.load(file)
    with open(path, "w") as file:
        json.dump(settings | dict(image_processor_type="MiniMaxM3VLImageProcessor"), file, indent=2)


class WithImages:
    """A language model whose placeholder tokens get rows_of(pixel_values, image_grid_thw)."""

    def forward(self, input_ids, pixel_values, image_grid_thw, **options):
        embeds = self.model.embed_tokens(input_ids).clone()
        embeds[input_ids == 259] = torch.cat(self.rows_of(pixel_values, image_grid_thw))
        self.place(input_ids, image_grid_thw)
        return super().forward(inputs_embeds=embeds, use_cache=False)

    def place(self, input_ids, image_grid_thw):
        """Sets the positions of tokens, if they have several axes."""

    def generate(self, input_ids, max_new_tokens, do_sample, eos_token_id, **images):
        for _ in range(max_new_tokens):
            input_ids = torch.cat([input_ids, self(input_ids, **images).logits[:, -1:].argmax(-1)], 1)
        return input_ids


class Filler(Expander):
    """Replaces a placeholder by tokens, for arrays of an image processor. The tokens may have another text."""

    def __init__(self, images, tokenizer, placeholder, more=0, token=None, replaced=("\0", "")):
        super().__init__(images, tokenizer, placeholder, lambda inputs: inputs["image_grid_thw"].prod(-1) // 4 + more)
        self.token, self.replaced = token or placeholder, replaced

    def __call__(self, text, images, return_tensors):
        inputs = dict(self.images(images, return_tensors="pt"))
        pieces = text.replace(*self.replaced).split(self.placeholder)
        text = "".join(piece + self.token * int(count) for piece, count in zip(pieces, self.tokens(inputs))) + pieces[-1]
        return dict(self.tokenizer(text, return_tensors="pt", return_token_type_ids=False), **inputs)


def own_rows(image, images, model):
    inputs = images(image, return_tensors="pt")
    _, rows, columns = (int(n) for n in inputs["image_grid_thw"][0])
    size = (columns * images.patch_size, rows * images.patch_size)
    with torch.no_grad():
        own = model.rows_of(inputs["pixel_values"], inputs["image_grid_thw"])[0]
    resized = torch.from_numpy(numpy.asarray(image.resize(size, Image.Resampling.BICUBIC)).copy())
    return resized[None], inputs["pixel_values"].float(), own[None]


class AxesAngles(nn.Module):
    """A rotary embedding whose pair i has the position on axis axes[i]."""

    def __init__(self, axes):
        super().__init__()
        self.frequencies = 1e4 ** (-torch.arange(len(axes), dtype=torch.float32) / len(axes))
        self.axes, self.positions = axes, None

    def forward(self, x, *_, **__):
        angles = self.positions[self.axes].T.float() * self.frequencies
        return tuple(torch.cat([part, part], -1)[None].to(x.dtype) for part in (angles.cos(), angles.sin()))


class OnAxes(WithImages):
    """Tokens have positions in time, height and width, as in Qwen2-VL."""

    def place(self, input_ids, image_grid_thw):
        axes, images, token, next_one = [[], [], []], image_grid_thw.tolist(), 0, 0
        ids = input_ids[0].tolist()
        while token < len(ids):
            if ids[token] != 259:
                for axis in axes:
                    axis.append(next_one)
                token, next_one = token + 1, next_one + 1
                continue
            _, rows, columns = images.pop(0)
            rows, columns = rows // 2, columns // 2
            for row in range(rows):
                for column in range(columns):
                    for axis, value in zip(axes, (0, row, column)):
                        axis.append(next_one + value)
            token, next_one = token + rows * columns, next_one + max(rows, columns)
        self.model.rotary_emb.positions = torch.tensor(axes)


class LingMerger(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x):
        return self.norm(x).view(-1, 4 * x.shape[-1])


class LingVision(OnAxes, Raw, own_decoders.BailingMoeV3ForCausalLM):
    """Pairs alternate between height and width, then follow those of the time."""
    sections = (2, 1, 1)

    def __init__(self, config):
        super().__init__(config)
        vision = transformers.Qwen3VLVisionConfig(**config.vision_config, deepstack_visual_indexes=[], attn_implementation="eager")
        visual = transformers.Qwen3VLVisionModel(vision)
        visual.merger = LingMerger(vision.hidden_size)
        self.model.visual = visual
        self.model.linear_proj = nn.Sequential(nn.Linear(4 * vision.hidden_size, config.hidden_size), nn.GELU(), nn.Linear(config.hidden_size, config.hidden_size))
        self.model.rotary_emb = AxesAngles([1, 2, 0, 0])
        self.post_init()

    def rows_of(self, pixel_values, grids):
        rows = self.model.linear_proj(self.model.visual(pixel_values.to(self.dtype), grid_thw=grids, return_dict=True).pooler_output)
        return rows.split((grids.prod(-1) // 4).tolist())


def make_ling(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], {})
    base.save_model(directory, case, transformers.DeepseekV3Config(**case["text"], vision_config=case["vision"]))
    images = transformers.Qwen2VLImageProcessorPil(size=case["sizes"], patch_size=case["vision"]["patch_size"])
    images.save_pretrained(directory)
    return images, Filler(images, tokenizer, "<|image_pad|>", replaced=("<|vision_end|>", "<|vision_end|>\n"))


def publish_ling(directory):
    path = os.path.join(directory, "model.safetensors")
    tensors = load_file(path)
    text = {name: tensor for name, tensor in tensors.items() if not name.startswith(("model.visual.", "model.linear_proj."))}
    save_file({name: tensor for name, tensor in tensors.items() if name not in text} | make_model_goldens.bailing_v3_tensors(text), path, metadata={"format": "pt"})

    def configure(config):
        vision = config.pop("vision_config")
        return dict(architectures=["BailingMoeV3VLForConditionalGeneration"], model_type="bailing_moe_v3_vl", image_token_id=259, tie_word_embeddings=False,
                    mrope_section=list(LingVision.sections), vision_config=vision, text_config=make_model_goldens.bailing_v3(config), dtype="bfloat16")
    similar_vision_cases.rewrite(directory, lambda name: name, configure)


class GridSiglip(nn.Module):
    """A SigLIP with a grid of positions that is stretched over an image, and RoPE for rows and columns."""

    def __init__(self, vision, mode):
        super().__init__()
        siglip = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**vision, vision_use_head=False))
        self.vision_model, self.mode = getattr(siglip, "vision_model", siglip), mode
        self.side, self.heads = vision["image_size"] // vision["patch_size"], vision["num_attention_heads"]

    def forward(self, patches, rows, columns):
        embeddings = self.vision_model.embeddings
        kernel, dim = embeddings.patch_embedding, embeddings.patch_embedding.weight.shape[0]
        x = patches @ kernel.weight.flatten(1).T + kernel.bias
        grid = embeddings.position_embedding.weight.reshape(1, self.side, self.side, dim).permute(0, 3, 1, 2)
        grid = nn.functional.interpolate(grid.float(), size=(rows, columns), mode=self.mode).to(x.dtype)[0].permute(1, 2, 0)
        in_squares = lambda values: values.reshape(rows // 2, 2, columns // 2, 2, -1).transpose(1, 2).reshape(rows * columns, -1)
        x = x + in_squares(grid)
        head = dim // self.heads
        frequencies = 1e4 ** (-torch.arange(0, head // 2, 2, dtype=torch.float32) / (head // 2))
        y, across = in_squares(torch.arange(rows)[:, None].expand(rows, columns)), in_squares(torch.arange(columns).expand(rows, columns))
        angles = torch.cat([y * frequencies, across * frequencies], -1)
        cos, sin = (torch.cat([part, part], -1)[:, None].to(x.dtype) for part in (angles.cos(), angles.sin()))

        def rotated(values):
            first, second = values.chunk(2, -1)
            return values * cos + torch.cat([-second, first], -1) * sin

        for layer in self.vision_model.encoder.layers:
            normed, attention = layer.layer_norm1(x), layer.self_attn
            q, k, v = (proj(normed).view(-1, self.heads, head) for proj in (attention.q_proj, attention.k_proj, attention.v_proj))
            scores = torch.einsum("qhd,khd->hqk", rotated(q), rotated(k)).float() * head ** -0.5
            mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1).to(x.dtype), v).flatten(1)
            x = x + attention.out_proj(mixed)
            x = x + layer.mlp(layer.layer_norm2(x))
        return x


class Ovis(WithImages, Raw, transformers.Qwen3ForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        words = config.visual_vocab_size - 4
        self.visual_tokenizer = nn.Module()
        self.visual_tokenizer.vit = GridSiglip(config.vit_config, "bicubic")
        self.visual_tokenizer.head = nn.Sequential(nn.Linear(4 * config.vit_config["hidden_size"], words, bias=False), nn.LayerNorm(words))
        self.vte = nn.Embedding(config.visual_vocab_size, config.hidden_size)
        self.post_init()

    def rows_of(self, pixel_values, grids):
        images = []
        for patches, (_, rows, columns) in zip(pixel_values.to(self.dtype).split(grids.prod(-1).tolist()), grids.tolist()):
            scores = self.visual_tokenizer.head(self.visual_tokenizer.vit(patches, rows, columns).reshape(rows * columns // 4, -1))
            table = self.vte.weight
            images.append(torch.cat([table[-4:-3], scores.float().softmax(-1).to(scores.dtype) @ table[:-4], table[-3:-2]]))
        return images


def make_ovis(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], {})
    base.save_model(directory, case, transformers.Qwen3Config(**case["text"], vit_config=case["vision"], visual_vocab_size=64))
    images = transformers.Qwen2VLImageProcessorPil(size=case["sizes"], patch_size=case["vision"]["patch_size"], temporal_patch_size=1,
                                                   image_mean=[0.5] * 3, image_std=[0.5] * 3)
    with open(os.path.join(directory, "preprocessor_config.json"), "w") as file:
        json.dump(dict(image_processor_type="SiglipImageProcessor", resample=3, size={"height": 30, "width": 30}, min_pixels=case["sizes"]["shortest_edge"],
                       max_pixels=case["sizes"]["longest_edge"]), file, indent=2)
    return images, Filler(images, tokenizer, "<image>", 2, "<|image_pad|>")


def publish_ovis(directory):
    def configure(config):
        vision, words = config.pop("vit_config"), config.pop("visual_vocab_size")
        return dict(architectures=["Ovis2_5"], model_type="ovis2_5", image_token_id=259, hidden_size=config["hidden_size"], visual_vocab_size=words,
                    llm_config=config | dict(architectures=["Qwen3ForCausalLM"]), dtype="bfloat16",
                    vit_config=vision | dict(hidden_stride=2, temporal_patch_size=1, num_patches=-1, preserve_original_pe=True, use_rope=True, model_type="siglip2_navit"))
    similar_vision_cases.rewrite(directory, lambda name: "llm." + name if name.startswith(("model.", "lm_head.")) else name, configure)


class KeyeProjector(nn.Module):
    """The norm applies to patches or, in Keye-VL 1.5, to squares of patches."""

    def __init__(self, dim, out_dim, squares):
        super().__init__()
        self.pre_norm = nn.LayerNorm(4 * dim if squares else dim, eps=1e-5)
        self.linear_1, self.act, self.linear_2 = nn.Linear(4 * dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, out_dim)

    def forward(self, x):
        x = self.pre_norm(x.reshape(-1, *self.pre_norm.normalized_shape))
        return self.linear_2(self.act(self.linear_1(x.reshape(-1, self.linear_1.in_features))))


class Keye(OnAxes, Raw, transformers.Qwen3ForCausalLM):
    squares = False

    def __init__(self, config):
        super().__init__(config)
        vision = config.vision_config
        self.visual = GridSiglip(vision, "bilinear")
        self.mlp_AR = KeyeProjector(vision["hidden_size"], config.hidden_size, self.squares)
        self.model.rotary_emb = AxesAngles([0] * 2 + [1] * 4 + [2] * 6)
        self.post_init()

    def rows_of(self, pixel_values, grids):
        patches = pixel_values.to(self.dtype).split(grids.prod(-1).tolist())
        return [self.mlp_AR(self.visual.vision_model.post_layernorm(self.visual(part, rows, columns)))
                for part, (_, rows, columns) in zip(patches, grids.tolist())]


class Keye15(Keye):
    squares = True


def make_keye(base, directory, case):
    tokenizer = base.write_tokenizer(directory, case["template"], case["special"], case["end"], {})
    base.save_model(directory, case, transformers.Qwen3Config(**case["text"], vision_config=case["vision"]))
    images = transformers.Qwen2VLImageProcessorPil(size=case["sizes"], patch_size=case["vision"]["patch_size"], temporal_patch_size=1)
    with open(os.path.join(directory, "preprocessor_config.json"), "w") as file:
        json.dump(dict(image_processor_type="SiglipImageProcessor", patch_size=images.patch_size, merge_size=2, resample=3,
                       size=dict(min_pixels=case["sizes"]["shortest_edge"], max_pixels=case["sizes"]["longest_edge"])), file, indent=2)
    return images, Filler(images, tokenizer, "<|image_pad|>")


def publish_keye(architecture, model_type):
    def configure(config):
        return config | dict(architectures=[architecture], model_type=model_type, image_token_id=259,
                             rope_scaling=dict(type="default", rope_type="default", mrope_section=[2, 4, 6]))
    return lambda directory: similar_vision_cases.rewrite(directory, lambda name: name, configure)


def cases(base):
    """`base` is the module make_vision_goldens."""
    text = {k: v for k, v in base.QWEN3_TEXT.items() if k != "pad_token_id"}
    siglip = dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, patch_size=6)
    m3 = {k: v for k, v in base.TEXT.items() if k not in ("model_type", "pad_token_id", "intermediate_size")}
    ling = {k: v for k, v in base.TEXT.items() if k not in ("model_type", "pad_token_id", "num_key_value_heads", "num_hidden_layers")}
    plain = {k: v for k, v in base.TEXT.items() if k not in ("model_type", "pad_token_id")}
    keye = dict(kind=(lambda directory, case: make_keye(base, directory, case), own_rows), end="<|im_end|>",
                template=CHAT.format(image="<|vision_start|><|image_pad|><|vision_end|>"), special=base.QWEN_SPECIAL, sizes=base.QWEN["sizes"],
                text=plain | dict(head_dim=24, tie_word_embeddings=False), vision=siglip | dict(image_size=30))
    return {
        "keye": keye | dict(model=Keye, publish=publish_keye("KeyeForConditionalGeneration", "Keye")),
        "keye1_5": keye | dict(model=Keye15, publish=publish_keye("KeyeVL1_5ForConditionalGeneration", "KeyeVL1_5")),
        "cosmos3_edge": base.QWEN | dict(
            model=transformers.Cosmos3EdgeForConditionalGeneration, config=transformers.Cosmos3EdgeConfig, images=transformers.Cosmos3EdgeImageProcessorPil,
            publish=publish_edge, chat=(EdgeProcessor, transformers.Cosmos3EdgeVideoProcessor), options=dict(projector_hidden_size=56),
            text={k: v for k, v in text.items() if k != "rope_parameters"} | dict(
                rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[5, 4, 3])),
            vision=siglip | dict(num_patches=25)),
        "minimax_m3_vl": base.QWEN | dict(
            model=transformers.MiniMaxM3SparseForConditionalGeneration, config=transformers.MiniMaxM3VLConfig, processor_of=m3_processor, publish=publish_m3, decided=True,
            end="<|im_end|>", template=CHAT.format(image="]<]image[>["), special=["<|im_start|>", "<|im_end|>", "]<]start of image[>[", "]<]image[>[", "]<]end of image[>["],
            ids=dict(image_token_index="]<]image[>["), options=dict(projector_hidden_size=56, video_token_index=258),
            text=m3 | dict(head_dim=24, rotary_dim=12, dense_intermediate_size=80, intermediate_size=40, shared_intermediate_size=56, num_local_experts=4, num_experts_per_tok=2,
                           index_n_heads=1, index_head_dim=16, index_block_size=16, index_topk_blocks=32, index_local_blocks=1,
                           rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5),
                           layer_types=["full_attention", "minimax_m3_sparse"], mlp_layer_types=["dense", "sparse"]),
            vision=siglip | dict(num_attention_heads=3)),
        "bailing_v3_vl": dict(
            kind=(lambda directory, case: make_ling(base, directory, case), own_rows), publish=publish_ling, model=LingVision, decided=True, end="<|im_end|>",
            template=CHAT.format(image="<|vision_start|><|image_pad|><|vision_end|>"), special=base.QWEN_SPECIAL, sizes=base.QWEN["sizes"],
            text=ling | dict(num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3, kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32,
                             moe_intermediate_size=24, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, first_k_dense_replace=1, n_group=1, topk_group=1,
                             routed_scaling_factor=1.5, layer_group_size=2, linear_head_dim=16, kda_lower_bound=-4.0, short_conv_kernel_size=4, tie_word_embeddings=False,
                             rope_parameters=dict(rope_type="default", rope_theta=1e4)),
            vision=dict(depth=2, hidden_size=48, out_hidden_size=48, intermediate_size=56, num_heads=2, patch_size=6, num_position_embeddings=25)),
        "ovis2_5": dict(
            kind=(lambda directory, case: make_ovis(base, directory, case), own_rows), publish=publish_ovis, model=Ovis, end="<|im_end|>",
            template=CHAT.format(image="<image>"), special=["<|im_start|>", "<|im_end|>", "<image>", "<|image_pad|>"], sizes=base.QWEN["sizes"],
            text=plain | dict(head_dim=24, tie_word_embeddings=False), vision=siglip | dict(image_size=30)),
    }
