"""Cases of make_vision_goldens.py for models whose encoders are like Qwen's, Pixtral's or LLaVA-NeXT's."""
import json
import os

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as qwen25

CHAT = (
    "{{% for message in messages %}}<|im_start|>{{{{ message['role'] }}}}\n{{% for part in message['content'] %}}{{% if part['type'] == 'image' %}}"
    "{image}{{% else %}}{{{{ part['text'] }}}}{{% endif %}}{{% endfor %}}<|im_end|>\n{{% endfor %}}"
    "{{% if add_generation_prompt %}}<|im_start|>assistant\n{{% endif %}}"
)


class DotsPatches(torch.nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.proj = torch.nn.Conv3d(3, dim, kernel_size=(1, size, size), stride=(1, size, size))
        self.norm = qwen25.Qwen2_5_VLRMSNorm(dim, eps=1e-5)
        self.size = size

    def forward(self, x):
        x = self.proj(x.view(-1, 3, 1, self.size, self.size).to(self.proj.weight.dtype))
        return self.norm(x.flatten(1))


class DotsMerger(torch.nn.Module):
    def __init__(self, dim, out_dim):
        super().__init__()
        self.post_trunk_norm = qwen25.Qwen2_5_VLRMSNorm(dim, eps=1e-5)
        self.ln_q = torch.nn.LayerNorm(dim, eps=1e-6)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(4 * dim, 4 * dim), torch.nn.GELU(), torch.nn.Linear(4 * dim, out_dim))

    def forward(self, x):
        return self.mlp(self.ln_q(self.post_trunk_norm(x)).view(-1, 4 * x.shape[-1]))


class DotsOcr(transformers.Qwen2_5_VLForConditionalGeneration):
    """dots.ocr, from the formulas of its published code: Qwen2.5-VL's blocks with full attention, other ends, and
    one position for each token."""

    def __init__(self, config):
        super().__init__(config)
        vision, visual = config.vision_config, self.model.visual
        visual.patch_embed = DotsPatches(vision.patch_size, vision.hidden_size)
        visual.merger = DotsMerger(vision.hidden_size, vision.out_hidden_size)
        for block in visual.blocks:
            block.norm1.variance_epsilon = block.norm2.variance_epsilon = 1e-5
        self.post_init()
        self.model.compute_3d_position_ids = lambda **inputs: None


class OpenCua(transformers.Qwen2_5_VLForConditionalGeneration):
    """One position for each token."""

    def __init__(self, config):
        super().__init__(config)
        self.model.compute_3d_position_ids = lambda **inputs: None


def rewrite(directory, rename, configure):
    path = os.path.join(directory, "model.safetensors")
    save_file({rename(name): tensor for name, tensor in load_file(path).items()}, path, metadata={"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    with open(path, "w") as file:
        json.dump(configure(config), file, indent=2)


def publish_opencua(directory):
    rewrite(directory, lambda name: name.replace("model.visual.", "vision_tower.").replace("model.language_model.", "language_model.model.").replace(
        "lm_head.", "language_model.lm_head."), lambda config: config | dict(
            architectures=["OpenCUAForConditionalGeneration"], model_type="opencua", media_placeholder_token_id=config["image_token_id"]))


def publish_omni(architecture, model_type):
    return lambda directory: rewrite(directory, lambda name: name if name.startswith("thinker.") else "thinker." + name, lambda config: dict(
        architectures=[architecture], model_type=model_type, thinker_config=config))


def publish_dots(directory):
    path = os.path.join(directory, "model.safetensors")
    tensors = {}
    for name, tensor in load_file(path).items():
        for ours, theirs in (("model.visual.merger.post_trunk_norm", "vision_tower.post_trunk_norm"), ("model.visual.", "vision_tower."),
                             ("model.language_model.", "model."), ("patch_embed.", "patch_embed.patchifier."), ("mlp.gate_proj", "mlp.fc1"),
                             ("mlp.up_proj", "mlp.fc3"), ("mlp.down_proj", "mlp.fc2")):
            if ours.startswith("mlp.") and "vision_tower" not in name:
                continue
            name = name.replace(ours, theirs)
        tensors[name] = tensor[:, :, 0].contiguous() if name.endswith("patchifier.proj.weight") else tensor
    save_file(tensors, path, metadata={"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    vision = config["vision_config"]
    flat = config["text_config"] | dict(
        architectures=["DotsOCRForCausalLM"], model_type="dots_ocr", image_token_id=config["image_token_id"], vision_config=dict(
            embed_dim=vision["hidden_size"], hidden_size=vision["out_hidden_size"], intermediate_size=vision["intermediate_size"],
            num_hidden_layers=vision["depth"], num_attention_heads=vision["num_heads"], patch_size=vision["patch_size"],
            spatial_merge_size=2, temporal_patch_size=1, use_bias=True, post_norm=True, rms_norm_eps=1e-5))
    with open(path, "w") as file:
        json.dump(flat, file, indent=2)


def publish_qianfan(directory):
    """transformers writes "encoder." into the names of the language model's layers, too."""
    rewrite(directory, lambda name: name.replace("language_model.model.encoder.", "language_model.model."), lambda config: config)


def cohere_processor(images, tokenizer, template):
    processor = transformers.Cohere2VisionProcessor(images, tokenizer, chat_template=template)
    processor.patch_size = 2  # tokens on a side of a tile
    return processor


CHAT_NAMES = (
    ("model.vision_tower.", "vision_model."), ("vision_tower.", "vision_model."), ("encoder.layer.", "encoder.layers."), (".lambda_1", ".ls1"),
    (".lambda_2", ".ls2"), (".attention.projection_layer.", ".attn.proj."), (".layernorm_before.", ".norm1."), (".layernorm_after.", ".norm2."),
    (".attention.q_norm", ".attn.q_norm"), (".attention.k_norm", ".attn.k_norm"), ("embeddings.cls_token", "embeddings.class_embedding"),
    ("embeddings.position_embeddings", "embeddings.position_embedding"), ("embeddings.patch_embeddings.projection", "embeddings.patch_embedding"),
    ("multi_modal_projector.layer_norm", "mlp1.0"), ("multi_modal_projector.linear_1", "mlp1.1"), ("multi_modal_projector.linear_2", "mlp1.3"))


def publish_internvl_chat(directory):
    """Writes InternVL's first format. The images' settings move to config.json."""
    path = os.path.join(directory, "model.safetensors")
    stored, tensors = load_file(path), {}
    for name, tensor in stored.items():
        if ".attention.k_proj." in name or ".attention.v_proj." in name:
            continue
        if ".attention.q_proj." in name:
            tensor = torch.cat([stored[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
            name = name.replace("attention.q_proj", "attn.qkv")
        for theirs, ours in CHAT_NAMES:
            name = name.replace(theirs, ours)
        tensors[name] = tensor
    save_file(tensors, path, metadata={"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    vision = config["vision_config"]
    images = os.path.join(directory, "preprocessor_config.json")
    with open(images) as file:
        tiles = json.load(file)["max_patches"]
    os.remove(images)
    own = dict(architectures=["InternVLChatModel"], model_type="internvl_chat", downsample_ratio=0.5, ps_version="v2", select_layer=-1, dynamic_image_size=True,
               use_thumbnail=True, min_dynamic_patch=1, max_dynamic_patch=tiles, force_image_size=vision["image_size"][0],
               llm_config=config["text_config"] | dict(architectures=["Qwen2ForCausalLM"], tie_word_embeddings=config["tie_word_embeddings"]), vision_config=dict(
                   hidden_size=vision["hidden_size"], intermediate_size=vision["intermediate_size"], num_hidden_layers=vision["num_hidden_layers"],
                   num_attention_heads=vision["num_attention_heads"], image_size=vision["image_size"][0], patch_size=vision["patch_size"][0], qkv_bias=True,
                   qk_normalization=True, norm_type="layer_norm", layer_norm_eps=1e-6, hidden_act="gelu"))
    with open(path, "w") as file:
        json.dump(own, file, indent=2)


def tokens_of(image, video, *more):
    """Returns special tokens; the image's is the fourth."""
    return ["<|im_start|>", "<|im_end|>", *more[:1], image, *more[1:2], video, *more[2:]]


def qwen_chat(base, image="<|image_pad|>", video="<|video_pad|>", around=("<|vision_start|>", "<|vision_end|>"), **fields):
    return dict(any_size=True, end="<|im_end|>", template=CHAT.format(image=around[0] + image + around[1]), special=tokens_of(image, video, *around),
                names=dict(image_token=image, video_token=video), ids=dict(image_token_id=image, video_token_id=video), **fields)


def cases(base):
    """`base` is the module make_vision_goldens."""
    text = {k: v for k, v in base.TEXT.items() if k != "model_type"}
    sizes = base.QWEN["sizes"]
    glm = qwen_chat(base, "<|image|>", "<|video|>", ("<|begin_of_image|>", "<|end_of_image|>"),
                    images=transformers.Glm4vImageProcessorPil, sizes={name: 2 * size for name, size in sizes.items()},
                    processor_of=lambda images, tokenizer, template: transformers.Glm4vProcessor(
                        images, tokenizer, transformers.Glm4vVideoProcessor(), chat_template=template))
    glm["ids"] |= dict(image_start_token_id="<|begin_of_image|>", image_end_token_id="<|end_of_image|>")
    glm_text = text | dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5, mrope_section=[1, 2, 3]))
    glm_vision = dict(depth=2, hidden_size=48, out_hidden_size=48, intermediate_size=56, num_heads=2, patch_size=6, image_size=30)
    qwen_videos = dict(processor_of=lambda images, tokenizer, template: transformers.Qwen2VLProcessor(
        images, tokenizer, transformers.Qwen2VLVideoProcessor(patch_size=6), chat_template=template))
    qwen25_vision = dict(depth=3, hidden_size=48, out_hidden_size=48, intermediate_size=56, num_heads=3, patch_size=6, window_size=24,
                         fullatt_block_indexes=[1])
    plain = dict(drop=("mm_token_type_ids",), images=transformers.Qwen2VLImageProcessorPil, sizes=sizes)
    omni = qwen_chat(base, "<|IMAGE|>", "<|VIDEO|>", ("<|vision_bos|>", "<|vision_eos|>"), **qwen_videos, **plain, publish=publish_omni("Qwen2_5OmniModel", "qwen2_5_omni"),
                     model=transformers.Qwen2_5OmniThinkerForConditionalGeneration, config=transformers.Qwen2_5OmniThinkerConfig, vision=qwen25_vision,
                     text=text | dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 4, 6])))
    omni["ids"] = dict(image_token_index="<|IMAGE|>", video_token_index="<|VIDEO|>", vision_start_token_id="<|vision_bos|>")
    omni["options"] = dict(audio_config=dict(d_model=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16, output_dim=48, num_mel_bins=16,
                                             max_source_positions=20))
    return {
        "glm4v": glm | dict(model=transformers.Glm4vForConditionalGeneration, config=transformers.Glm4vConfig, text=glm_text, vision=glm_vision),
        "glm4v_moe": glm | dict(decided=True, model=transformers.Glm4vMoeForConditionalGeneration, config=transformers.Glm4vMoeConfig, vision=glm_vision,
                                text=glm_text | dict(head_dim=24, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=40, n_shared_experts=1,
                                                     first_k_dense_replace=1, n_group=1, topk_group=1)),
        "glm_ocr": glm | dict(model=transformers.GlmOcrForConditionalGeneration, config=transformers.GlmOcrConfig, text=glm_text, vision=glm_vision,
                              images=transformers.Glm46VImageProcessorPil),
        "paddleocr_vl": qwen_chat(
            base, "<|IMAGE_PLACEHOLDER|>", "<|video_pad|>", ("<|IMAGE_START|>", "<|IMAGE_END|>"), model=transformers.PaddleOCRVLForConditionalGeneration,
            config=transformers.PaddleOCRVLConfig, images=transformers.PaddleOCRVLImageProcessorPil, sizes=sizes,
            text=text | dict(head_dim=24, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 4, 6])),
            vision=dict(hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=30, patch_size=6),
            processor_of=lambda images, tokenizer, template: transformers.PaddleOCRVLProcessor(images, tokenizer, chat_template=template)),
        "exaone4_5": qwen_chat(base, **qwen_videos, **plain, model=transformers.Exaone4_5_ForConditionalGeneration, config=transformers.Exaone4_5_Config,
                               text=text | dict(model_type="exaone4", head_dim=24, sliding_window=None, layer_types=["full_attention"] * 2),
                               vision=qwen25_vision | dict(num_heads=6, num_key_value_heads=2)),
        "hyperclovax_vision": qwen_chat(base, "<|IMAGE_PAD|>", "<|VIDEO_PAD|>", ("<|image_start|>", "<|image_end|>"), **qwen_videos, **plain,
                                        model=transformers.HyperCLOVAXVisionV2ForConditionalGeneration, config=transformers.HyperCLOVAXVisionV2Config,
                                        text=text | dict(model_type="hyperclovax", head_dim=24),
                                        vision=qwen25_vision | dict(model_type="qwen2_5_vl_vision", out_hidden_size=40)),
        "dots_ocr": qwen_chat(base, "<|imgpad|>", "<|video_pad|>", ("<|img|>", "<|endofimg|>"), **qwen_videos, **plain, model=DotsOcr,
                              config=transformers.Qwen2_5_VLConfig, text=text | dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 4, 6])),
                              vision=qwen25_vision | dict(temporal_patch_size=1, fullatt_block_indexes=[0, 1, 2]), image_options=dict(temporal_patch_size=1),
                              publish=publish_dots),
        "cohere2_vision": dict(
            model=transformers.Cohere2VisionForConditionalGeneration, config=transformers.Cohere2VisionConfig, ratio=True, end="<|im_end|>",
            images=transformers.Cohere2VisionImageProcessor, sizes=dict(size={"height": 32, "width": 32}, max_patches=4),
            template=CHAT.format(image="<|IMG_PATCH|>"), options=dict(alignment_intermediate_size=56),
            special=tokens_of("<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>"),
            names=dict(image_token="<|IMG_PATCH|>", boi_token="<|START_OF_IMG|>", eoi_token="<|END_OF_IMG|>", img_line_break_token="<|IMG_LINE_BREAK|>"),
            # transformers does not scale the logits of this class; vLLM does.
            text=base.TEXT | dict(model_type="cohere2", layer_types=["full_attention"] * 2, logit_scale=1.0),
            vision=dict(model_type="siglip_vision_model", hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, image_size=32,
                        patch_size=8, vision_use_head=False),
            processor_of=cohere_processor),
        "internvl_chat": base.CASES["internvl"] | dict(publish=publish_internvl_chat, sizes=base.CASES["internvl"]["sizes"] | dict(
            image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])),
        "qianfan_ocr": base.CASES["internvl"] | dict(publish=publish_qianfan, model=transformers.QianfanOCRForConditionalGeneration, config=transformers.QianfanOCRConfig,
                                                     text=base.TEXT | dict(model_type="qwen3", head_dim=24),
                                                     vision=base.CASES["internvl"]["vision"] | dict(use_qk_norm=False)),
        "opencua": qwen_chat(base, "<|media_placeholder|>", "<|video_pad|>", ("<|media_begin|>", "<|media_end|>"), **qwen_videos, **plain, model=OpenCua,
                             config=transformers.Qwen2_5_VLConfig, vision=qwen25_vision, publish=publish_opencua,
                             text=text | dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 4, 6]))),
        "qwen2_5_omni": omni,
        "qwen3_omni": base.QWEN3 | dict(
            model=transformers.Qwen3OmniMoeThinkerForConditionalGeneration, config=transformers.Qwen3OmniMoeThinkerConfig, drop=("mm_token_type_ids",),
            images=transformers.Qwen2VLImageProcessorPil, text=base.QWEN3_TEXT | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40),
            ids=dict(image_token_id="<|image_pad|>", video_token_id="<|video_pad|>", vision_start_token_id="<|vision_start|>"),
            options=dict(audio_config=omni["options"]["audio_config"] | dict(downsample_hidden_size=8)),
            publish=publish_omni("Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe")),
        "lighton_ocr": base.PIXTRAL | dict(model=transformers.LightOnOcrForConditionalGeneration, config=transformers.LightOnOcrConfig, merge=2,
                                           processor_of=transformers.LightOnOcrProcessor, end="<|im_end|>", template=CHAT.format(image="<|image_pad|>"),
                                           special=tokens_of("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
                                           names=dict(image_token="<|image_pad|>", image_break_token="<|vision_pad|>", image_end_token="<|vision_end|>"),
                                           text=base.TEXT | dict(model_type="qwen3", head_dim=24)),
        "llava_next_video": base.CASES["llava_next"] | dict(model=transformers.LlavaNextVideoForConditionalGeneration,
                                                             config=transformers.LlavaNextVideoConfig),
    }
