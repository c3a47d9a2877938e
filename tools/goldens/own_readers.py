"""Embedding models of 2026 whose classes are in their authors' repositories, for make_encoder_goldens.py.

A class may have `prepare(directory, model)`, which is called before the results are computed, and `publish(directory)`, which
is called at the end and gives the files the names and fields of the published ones."""
import json
import os

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.lfm2 import modeling_lfm2


def rewrite(directory, rename=lambda name: name, more=None, config=lambda config: config):
    path = os.path.join(directory, "model.safetensors")
    save_file({rename(name): tensor for name, tensor in load_file(path).items()} | (more or {}), path, {"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        changed = config(json.load(file))
    with open(path, "w") as file:
        json.dump(changed, file, indent=2)
        file.write("\n")


def convolved(conv):
    """Returns the forward function of an LFM2 convolution that sees tokens on both sides."""

    def forward(hidden_states, **_):
        b, c, x = conv.in_proj(hidden_states).transpose(-1, -2).chunk(3, dim=-2)
        width = conv.conv.weight.shape[-1]
        y = F.conv1d(b * x, conv.conv.weight, conv.conv.bias, padding=width // 2, groups=x.shape[1])[..., : x.shape[-1]]
        return conv.out_proj((c * y).transpose(-1, -2))

    return forward


class Lfm2BidirectionalModel(transformers.Lfm2Model):
    def __init__(self, config):
        config._attn_implementation = "eager"  # the others are causal without a mask
        super().__init__(config)

    def forward(self, input_ids):
        usual, modeling_lfm2.create_causal_mask = modeling_lfm2.create_causal_mask, lambda **_: None  # sees all tokens
        for layer in self.layers:
            if hasattr(layer, "conv"):
                layer.conv.forward = convolved(layer.conv)
        try:
            return BaseModelOutput(last_hidden_state=super().forward(input_ids=input_ids, use_cache=False).last_hidden_state)
        finally:
            modeling_lfm2.create_causal_mask = usual


class DeepseekV3BidirectionalModel(transformers.DeepseekV3Model):
    @staticmethod
    def publish(directory):
        """Writes a tensor for each expert's matrix."""
        path = os.path.join(directory, "model.safetensors")
        tensors = {}
        for name, tensor in load_file(path).items():
            if "mlp.experts." not in name:
                tensors[name] = tensor
                continue
            before, kind = name.rsplit(".", 1)
            parts = ("gate", "up") if kind == "gate_up_proj" else ("down",)
            for i, matrix in enumerate(tensor):
                tensors |= {f"{before}.{i}.{part}_proj.weight": half.clone() for part, half in zip(parts, matrix.chunk(len(parts)))}
        save_file(tensors, path, {"format": "pt"})

    def forward(self, input_ids):
        mask = torch.zeros(1, 1, *[input_ids.shape[1]] * 2)
        return BaseModelOutput(last_hidden_state=super().forward(input_ids=input_ids, attention_mask=mask, use_cache=False).last_hidden_state)


ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def merge_adapter(folder, model):
    """Writes a random LoRA adapter as PEFT does, and adds it to the model's matrices."""
    generator = torch.Generator().manual_seed(4)
    rank, alpha, tensors = 4, 6, {}
    for name, module in model.named_modules():
        if name.split(".")[-1] not in ADAPTED:
            continue
        a, b = (0.1 * torch.randn(shape, generator=generator) for shape in ((rank, module.in_features), (module.out_features, rank)))
        with torch.no_grad():
            # files have bf16, and so has the sum
            module.weight.copy_((module.weight + alpha / rank * (b @ a)).to(torch.bfloat16))
        tensors |= {f"base_model.model.{name}.lora_{which}.weight": t.contiguous() for which, t in (("A", a), ("B", b))}
    os.makedirs(folder)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"))
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "bias": "none", "target_modules": ADAPTED}, file, indent=1)
        file.write("\n")


class JinaV5(transformers.Qwen3Model):
    @staticmethod
    def prepare(directory, model):
        merge_adapter(os.path.join(directory, "adapters", "retrieval"), model)

    def forward(self, input_ids):
        return BaseModelOutput(last_hidden_state=super().forward(input_ids=input_ids, use_cache=False).last_hidden_state)


class JinaV5Nano(transformers.EuroBertModel):
    @staticmethod
    def prepare(directory, model):
        merge_adapter(os.path.join(directory, "adapters", "clustering"), model)


class SiglipText(transformers.SiglipTextModel):
    """The projection is applied to each token, of which the last one is used."""

    def forward(self, input_ids):
        return BaseModelOutput(last_hidden_state=self.head(super().forward(input_ids=input_ids).last_hidden_state))

    @staticmethod
    def publish(directory):
        rewrite(directory, lambda name: name if name.startswith("text_model.") else "text_model." + name, {"logit_bias": torch.zeros(1)},
                lambda config: dict(architectures=["SiglipModel"], model_type="siglip", text_config=config))


class NemotronVL(transformers.LlamaModel):
    def forward(self, input_ids):
        mask = torch.zeros(1, 1, *[input_ids.shape[1]] * 2)
        return BaseModelOutput(last_hidden_state=super().forward(input_ids=input_ids, attention_mask=mask, use_cache=False).last_hidden_state)

    @staticmethod
    def publish(directory):
        rewrite(directory, lambda name: "language_model." + name, {"mlp1.0.weight": torch.zeros(4)},
                lambda config: dict(architectures=["LlamaNemotronVLModel"], model_type="llama_nemotron_vl", llm_config=config))


class EmbeddingGemma2(transformers.EmbeddingGemma2Model):
    def forward(self, input_ids):
        return BaseModelOutput(last_hidden_state=super().forward(input_ids=input_ids).last_hidden_state)


class Splade(transformers.BertForMaskedLM):
    def forward(self, **inputs):
        return super().forward(**inputs).logits[0]

    @staticmethod
    def pooled(logits):
        return torch.log1p(torch.relu(logits.max(0).values))


# Architectures of these classes.
ARCHITECTURES = {"Splade": "BertSpladeSparseEmbeddingModel", "JinaV5": "JinaEmbeddingsV5Model", "JinaV5Nano": "JinaEmbeddingsV5Model", "EmbeddingGemma2": "EmbeddingGemma2Model"}


def cases(bert, decoder):
    """Returns rows for make_encoder_goldens.py. `bert` and `decoder` are fields of small models."""
    headless = {name: value for name, value in decoder.items() if name != "head_dim"}
    return {
        "splade": (Splade, transformers.BertConfig(**bert)),
        "lfm2-both-ways": (Lfm2BidirectionalModel, transformers.Lfm2Config(**headless, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False,
                                                                          conv_bias=True, attn_implementation="eager")),
        "deepseek-both-ways": (DeepseekV3BidirectionalModel, transformers.DeepseekV3Config(
            **dict(headless, num_key_value_heads=2), q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32, n_routed_experts=3,
            num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=24, n_shared_experts=1, first_k_dense_replace=1, attn_implementation="eager")),
        "jina-v5": (JinaV5, transformers.Qwen3Config(**decoder)),
        "jina-v5-nano": (JinaV5Nano, transformers.EuroBertConfig(**decoder, bos_token_id=1, eos_token_id=2, mask_token_id=3, is_decoder=False, jina_task="clustering")),
        "siglip-text": (SiglipText, transformers.SiglipTextConfig(vocab_size=97, hidden_size=72, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
                                                                  max_position_embeddings=320, projection_size=20, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
        "nemotron-vl-text": (NemotronVL, transformers.LlamaConfig(**decoder, pooling="avg", attn_implementation="eager")),
        "embedding_gemma2": (EmbeddingGemma2, transformers.EmbeddingGemma2Config(vision_config=None, audio_config=None, text_config=dict(
            decoder, num_hidden_layers=3, sliding_window=24, layer_types=["sliding_attention", "full_attention", "full_attention"], global_head_dim=40,
            num_global_key_value_heads=2, hidden_size_per_layer_input=16, embedding_dim=20))),
    }
