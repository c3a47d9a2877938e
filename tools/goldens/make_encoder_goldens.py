#!/usr/bin/env python3
"""Makes tests/data/encoders/: for each family of encoders a small random checkpoint, and transformers' results with it.

Needs torch and transformers (made with 2.13 and 5.23). Usage: make_encoder_goldens.py OUT_DIR [CASE ...]

A case is a directory with config.json, model.safetensors and golden.safetensors:

    ids     I32 [n]              the tokens of several sequences, one after the other
    types   I32 [n]              their token types
    starts  I32 [sequences + 1]  the start of each sequence
    first, last, mean, max, mean_sqrt_len_tokens, weightedmean F32 [sequences, dim]
                                 for models without labels: the vector of the first token, of the last one, the mean of all, and
                                 sentence-transformers' poolings of these names
    tokens      F32 [n, dim]             ColBERT: vectors of all tokens, with length 1; reward models, token classifiers: logits of the labels
    vectors, weights F32 [n, dim], [n, 1]   BGE-M3: of all tokens; vectors have length 1
    scores      F32 [sequences, labels]  classifiers: logits; rerankers by words: logit of token 7 ("yes") minus logit of token 11 ("no")
    words       F32 [sequences, vocab]   SPLADE: weights of the vocabulary's tokens
    adapted     F32 [sequences, dim]     for a case with a folder `adapter`: the means with that LoRA adapter

Everything is computed in f32, one sequence at a time. Weights are stored in bf16.
"""
import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import make_model_goldens
import own_readers

LENGTHS = [1, 7, 40, 33, 290]
OF_TOKENS = ("tokens", "vectors", "weights")
YES, NO = 7, 11  # tokens of rerankers by words

# Odd sizes: heads of 24, an odd number of heads and labels.
BERT = dict(vocab_size=97, hidden_size=72, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
            max_position_embeddings=320, type_vocab_size=2, pad_token_id=0)
ROBERTA = dict(BERT, hidden_size=64, num_attention_heads=4, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5)

MODERN = dict(vocab_size=97, hidden_size=72, intermediate_size=56, num_hidden_layers=4, num_attention_heads=3, max_position_embeddings=320,
              local_attention=24, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, layer_types=None)
ROTARY = {name: value for name, value in BERT.items() if name != "max_position_embeddings"} | dict(max_position_embeddings=320)
DECODER = dict(vocab_size=97, hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
               head_dim=24, max_position_embeddings=320, pad_token_id=0)


class ColBert(transformers.BertPreTrainedModel):
    """Like colbert-ai's files."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = transformers.BertModel(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.dim, bias=False)
        self.post_init()

    def forward(self, **inputs):
        return torch.nn.functional.normalize(self.linear(self.bert(**inputs).last_hidden_state), dim=-1)


class BgeM3(transformers.XLMRobertaModel):
    """BGE-M3 as in FlagEmbedding. The token heads are in separate files."""

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
        self.colbert_linear = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.sparse_linear = torch.nn.Linear(config.hidden_size, 1)
        self.post_init()

    def of_tokens(self, hidden):
        """Returns vectors and weights, also of the tokens that begin and end a text."""
        return torch.nn.functional.normalize(self.colbert_linear(hidden), dim=-1), torch.relu(self.sparse_linear(hidden))


class NomicExperts(torch.nn.Module):
    """Nomic v2's experts: the softmax is over all experts, and one bias is added to the sum."""

    def __init__(self, dim, hidden, count, chosen):
        super().__init__()
        self.shape, self.chosen = (count, hidden, dim), chosen
        self.router = torch.nn.Linear(dim, count, bias=False)
        self.w1, self.w2 = (torch.nn.Parameter(torch.empty(count * hidden, dim)) for _ in range(2))
        self.bias = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(self.chosen)
        up, down = self.w1.view(self.shape), self.w2.view(self.shape)
        out = sum((weights * (chosen == e)).sum(-1, keepdim=True) * (torch.nn.functional.gelu(x @ up[e].T) @ down[e]) for e in range(self.shape[0]))
        return out + self.bias


class NomicMoe(transformers.JinaEmbeddingsV3Model):
    """Nomic v2. Except for experts and names, Jina v3 computes the same."""

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
        for layer in self.layers[1::2]:
            layer.mlp = NomicExperts(config.hidden_size, config.intermediate_size, config.num_experts, config.moe_top_k)
        self.post_init()


class PublishedJina(transformers.JinaEmbeddingsV3Model):
    """Jina v3 as published: each matrix has a low-rank change for each task."""


def name_as_nomic(directory):
    """Writes a NomicMoe with the names of Nomic's files."""
    path = os.path.join(directory, "model.safetensors")
    tensors = load_file(path)
    renamed = {}
    for name, tensor in tensors.items():
        if "self_attn.q_proj" in name:
            renamed[name.replace("self_attn.q_proj", "attn.Wqkv")] = torch.cat([tensors[name.replace("q_proj", p)] for p in ("q_proj", "k_proj", "v_proj")])
        elif "self_attn.k_proj" not in name and "self_attn.v_proj" not in name:
            renamed[name] = tensor
    for old, new in (("embeddings.LayerNorm", "emb_ln"), ("self_attn.o_proj", "attn.out_proj"), ("post_attention_layernorm", "norm1"), ("post_mlp_layernorm", "norm2"),
                     ("mlp.router", "mlp.router.layer"), ("mlp.w1", "mlp.experts.mlp.w1"), ("mlp.w2", "mlp.experts.mlp.w2"), ("mlp.bias", "mlp.experts.bias")):
        renamed = {name.replace(old, new): tensor for name, tensor in renamed.items()}
    renamed = {f"encoder.{name}" if name.startswith("layers.") else name: tensor for name, tensor in renamed.items()}
    save_file(renamed, path, {"format": "pt"})
    with open(os.path.join(directory, "config.json")) as file:
        old = json.load(file)
    config = dict(architectures=["NomicBertModel"], model_type="nomic_bert", activation_function="gelu", n_embd=old["hidden_size"], n_head=old["num_attention_heads"],
                  n_inner=old["intermediate_size"], n_layer=old["num_hidden_layers"], n_positions=old["max_position_embeddings"],
                  layer_norm_epsilon=old["layer_norm_eps"], rotary_emb_base=old["rope_parameters"]["rope_theta"], rotary_emb_fraction=1.0,
                  rotary_emb_interleaved=False, prenorm=False, use_rms_norm=None, parallel_block=False, qkv_proj_bias=True, mlp_fc1_bias=True,
                  mlp_fc2_bias=True, moe_every_n_layers=2, moe_top_k=old["moe_top_k"], num_experts=old["num_experts"], num_shared_experts=0,
                  moe_normalize_expert_weights=False, expert_choice_router=False, type_vocab_size=1, vocab_size=old["vocab_size"], pad_token_id=1)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


class ColBertOfModernBert(transformers.ModernBertPreTrainedModel):
    """Like PyLate's files, except that the matrix is in a separate folder."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.ModernBertModel(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.dim, bias=False)
        self.post_init()

    def forward(self, **inputs):
        return torch.nn.functional.normalize(self.linear(self.model(**inputs).last_hidden_state), dim=-1)


class ColModernV(ColBertOfModernBert):
    """The texts of ColModernVBERT, whose matrix has a bias."""

    def __init__(self, config):
        super().__init__(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.dim)
        self.post_init()


def publish_colmodernvbert(directory):
    path = os.path.join(directory, "model.safetensors")
    tensors = {name.replace("model.", "model.text_model.").replace("linear.", "model.custom_text_proj."): tensor for name, tensor in load_file(path).items()}
    save_file(tensors | {"model.connector.modality_projection.weight": torch.zeros(4)}, path)
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        text = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(architectures=["ColModernVBertForRetrieval"], model_type="modernvbert", embedding_dim=text.pop("dim"), text_config=text), file, indent=2)
        file.write("\n")


class ColBertOfLfm2(transformers.Lfm2PreTrainedModel):
    """Like PyLate's files, except that the matrix is in a separate folder."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.Lfm2Model(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.dim, bias=False)
        self.post_init()

    def forward(self, input_ids):
        return torch.nn.functional.normalize(self.linear(self.model(input_ids=input_ids, use_cache=False).last_hidden_state), dim=-1)


class JinaColBert(transformers.JinaEmbeddingsV3Model):
    """Like Jina-ColBERT v2's files."""

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
        self.linear = torch.nn.Linear(config.hidden_size, config.dim, bias=False)
        self.post_init()

    def forward(self, **inputs):
        return torch.nn.functional.normalize(self.linear(super().forward(**inputs).last_hidden_state), dim=-1)


class ClipText(transformers.CLIPTextModelWithProjection):
    """The projection is applied to each token, of which the last one is used."""

    def forward(self, input_ids):
        rows = self.text_projection(self.text_model(input_ids=input_ids).last_hidden_state)
        return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=rows)


class ColQwen(transformers.Qwen3PreTrainedModel):
    """The language model of ColQwen3 with its matrix. Tokens of texts have the same position on all axes."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.Qwen3Model(config)
        self.custom_text_proj = torch.nn.Linear(config.hidden_size, config.dims, bias=False)
        self.post_init()

    def forward(self, input_ids):
        return torch.nn.functional.normalize(self.custom_text_proj(self.model(input_ids=input_ids, use_cache=False).last_hidden_state), dim=-1)


class ColQwen35(transformers.Qwen3_5PreTrainedModel):
    """The same for ColQwen3.5, whose matrix has a bias."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.Qwen3_5TextModel(config)
        self.custom_text_proj = torch.nn.Linear(config.hidden_size, config.dim)
        self.post_init()

    def forward(self, input_ids):
        return torch.nn.functional.normalize(self.custom_text_proj(self.model(input_ids=input_ids, use_cache=False).last_hidden_state), dim=-1)


class ProcessReward(transformers.Qwen2PreTrainedModel):
    """Qwen2ForProcessRewardModel, from the code in the repository of Qwen2.5-Math-PRM."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.Qwen2Model(config)
        self.score = torch.nn.Sequential(torch.nn.Linear(config.hidden_size, config.hidden_size), torch.nn.ReLU(),
                                         torch.nn.Linear(config.hidden_size, config.num_labels))
        self.post_init()

    def forward(self, **inputs):
        return self.score(self.model(**inputs).last_hidden_state)


class Reward(ProcessReward):
    """Qwen2ForRewardModel, from the code in the repository of Qwen2.5-Math-RM."""


class OneReward(transformers.LlamaPreTrainedModel):
    """Computes what InternLM2ForRewardModel does."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.LlamaModel(config)
        self.v_head = torch.nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def forward(self, input_ids):
        return self.v_head(self.model(input_ids=input_ids).last_hidden_state)


def seeing_both_ways(model, input_ids):
    return model(input_ids=input_ids, attention_mask=torch.zeros(1, 1, *[input_ids.shape[1]] * 2))


class LlamaBidirectionalModel(transformers.LlamaModel):
    """Like the code in the repositories of NVIDIA's retrievers."""

    def forward(self, input_ids, attention_mask=None):
        if attention_mask is None:
            return seeing_both_ways(self, input_ids)
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)


class LlamaBidirectionalForSequenceClassification(transformers.LlamaPreTrainedModel):
    """Returns scores of the mean."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.LlamaModel(config)
        self.score = torch.nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    def forward(self, input_ids):
        return transformers.modeling_outputs.SequenceClassifierOutput(logits=self.score(seeing_both_ways(self.model, input_ids).last_hidden_state.mean(1)))


class VoyageQwen3BidirectionalEmbedModel(transformers.Qwen3PreTrainedModel):
    """Like the code in Voyage AI's repository. Here the matrix is applied to each token, which is equivalent."""

    def __init__(self, config):
        super().__init__(config)
        self.model = transformers.Qwen3Model(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    def forward(self, input_ids):
        mask = torch.zeros(1, 1, *[input_ids.shape[1]] * 2)
        rows = self.model(input_ids=input_ids, attention_mask=dict(full_attention=mask)).last_hidden_state
        return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=self.linear(rows))


# Architectures of classes that transformers lacks, or that have other names there.
ARCHITECTURES = {"ClipText": "CLIPModel", "ColBert": "HF_ColBERT", "ColBertOfLfm2": "ColBERTLfm2Model", "JinaColBert": "ColBERTJinaRobertaModel", "ColQwen": "OpsColQwen3Model",
                 "ColQwen35": "ColQwen3_5", "ColBertOfModernBert": "ColBERTModernBertModel", "ProcessReward": "Qwen2ForProcessRewardModel", "Reward": "Qwen2ForRewardModel",
                 "GteForSequenceClassification": "GteNewForSequenceClassification", "BgeM3": "XLMRobertaModel"} | own_readers.ARCHITECTURES

CASES = {
    "bert-filler": (transformers.BertForMaskedLM, transformers.BertConfig(**BERT)),
    "roberta-filler": (transformers.RobertaForMaskedLM, transformers.RobertaConfig(**ROBERTA)),
    "colbert-modernbert": (ColBertOfModernBert, transformers.ModernBertConfig(**MODERN, dim=20)),
    "gte-classifier": (transformers.GteForSequenceClassification, transformers.GteConfig(**dict(ROTARY, type_vocab_size=1), num_labels=3)),
    "gemma2-embedder": (transformers.Gemma2Model, transformers.Gemma2Config(**DECODER, query_pre_attn_scalar=24, sliding_window=24)),
    "gpt2-classifier": (transformers.GPT2ForSequenceClassification, transformers.GPT2Config(
        vocab_size=97, n_embd=48, n_layer=2, n_head=2, n_positions=320, pad_token_id=0, num_labels=3)),
    "jamba-classifier": (transformers.JambaForSequenceClassification, transformers.JambaConfig(
        **{name: value for name, value in DECODER.items() if name != "head_dim"} | dict(num_hidden_layers=4), attn_layer_period=3, attn_layer_offset=1,
        expert_layer_period=2, expert_layer_offset=1, num_experts=3, num_experts_per_tok=2, mamba_d_state=12, mamba_dt_rank=5, use_mamba_kernels=False, num_labels=3)),
    "qwen2-process-reward": (ProcessReward, transformers.Qwen2Config(
        **{name: value for name, value in DECODER.items() if name != "head_dim"}, num_labels=2)),
    "bge-m3": (BgeM3, transformers.XLMRobertaConfig(**ROBERTA, bos_token_id=0, eos_token_id=2)),
    "internlm2-reward": (OneReward, transformers.LlamaConfig(**DECODER)),
    "qwen2-reward": (Reward, transformers.Qwen2Config(**{name: value for name, value in DECODER.items() if name != "head_dim"}, num_labels=1)),
    "llama-both-ways": (LlamaBidirectionalModel, transformers.LlamaConfig(**DECODER, pooling="avg", attn_implementation="eager")),
    "llama-both-ways-reranker": (LlamaBidirectionalForSequenceClassification, transformers.LlamaConfig(**DECODER, pooling="avg", num_labels=1, attn_implementation="eager")),
    "voyage": (VoyageQwen3BidirectionalEmbedModel, transformers.Qwen3Config(**DECODER, num_labels=20)),
    "clip-text": (ClipText, transformers.CLIPTextConfig(vocab_size=97, hidden_size=72, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
                                                        max_position_embeddings=320, projection_dim=20, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "colbert-lfm2": (ColBertOfLfm2, transformers.Lfm2Config(**{k: v for k, v in DECODER.items() if k != "head_dim"}, dim=20, layer_types=["conv", "full_attention"],
                                                            block_auto_adjust_ff_dim=False)),
    "colbert-jina": (JinaColBert, transformers.JinaEmbeddingsV3Config(**{k: v for k, v in ROTARY.items()}, dim=20)),
    "colmodernvbert": (ColModernV, transformers.ModernBertConfig(**MODERN, dim=20)),
    "colqwen3": (ColQwen, transformers.Qwen3Config(**DECODER, dims=20)),
    "colqwen3_5": (ColQwen35, transformers.Qwen3_5TextConfig(**DECODER, dim=20, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2,
                                                             linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16)),
    "bert-tokens": (transformers.BertForTokenClassification, transformers.BertConfig(**BERT, num_labels=5)),
    "xlm-roberta-tokens": (transformers.XLMRobertaForTokenClassification, transformers.XLMRobertaConfig(**ROBERTA, num_labels=3)),
    "modernbert-tokens": (transformers.ModernBertForTokenClassification, transformers.ModernBertConfig(**MODERN, num_labels=3)),
    "colbert": (ColBert, transformers.BertConfig(**BERT, dim=20)),
    "modernbert": (transformers.ModernBertModel, transformers.ModernBertConfig(**MODERN)),
    "modernbert-classifier": (transformers.ModernBertForSequenceClassification,
                              transformers.ModernBertConfig(**MODERN, num_labels=3, classifier_pooling="mean", norm_bias=True)),
    "nomic_bert": (transformers.NomicBertModel, transformers.NomicBertConfig(**ROTARY)),
    "gte": (transformers.GteModel, transformers.GteConfig(**dict(ROTARY, type_vocab_size=1))),
    "embedding_gemma": (transformers.Gemma3TextModel, transformers.Gemma3TextConfig(
        **DECODER, query_pre_attn_scalar=24, sliding_window=24, use_bidirectional_attention=True, tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention"])),
    "jina_v3": (transformers.JinaEmbeddingsV3Model, transformers.JinaEmbeddingsV3Config(
        **dict(ROTARY, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2), rope_parameters=dict(rope_type="default", rope_theta=20000.0))),
    "jina_v3-published": (PublishedJina, transformers.JinaEmbeddingsV3Config(
        **dict(ROTARY, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2), rope_parameters=dict(rope_type="default", rope_theta=15000.0))),
    "nomic_moe": (NomicMoe, transformers.JinaEmbeddingsV3Config(
        **dict(ROTARY, hidden_size=64, num_attention_heads=4, num_hidden_layers=4, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2),
        num_experts=5, moe_top_k=2)),
    "nomic_moe-gguf": (NomicMoe, transformers.JinaEmbeddingsV3Config(
        **dict(ROTARY, hidden_size=64, num_attention_heads=4, num_hidden_layers=2, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2),
        num_experts=5, moe_top_k=2, experts_bias=False)),
    "eurobert": (transformers.EuroBertModel, transformers.EuroBertConfig(**DECODER, bos_token_id=1, eos_token_id=2, mask_token_id=3)),
    "t5-encoder": (transformers.T5EncoderModel, transformers.T5Config(
        vocab_size=97, d_model=48, d_kv=24, d_ff=56, num_layers=2, num_heads=3, n_positions=320, relative_attention_num_buckets=16, feed_forward_proj="gated-gelu", pad_token_id=0)),
    "qwen3-embedder": (transformers.Qwen3Model, transformers.Qwen3Config(**DECODER)),
    "qwen3-reranker": (transformers.Qwen3ForSequenceClassification, transformers.Qwen3Config(**DECODER, num_labels=1)),
    "qwen3-word-reranker": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**DECODER, tie_word_embeddings=True)),
    "qwen3-word-reranker-untied": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**DECODER, tie_word_embeddings=False)),
    "bert": (transformers.BertModel, transformers.BertConfig(**BERT)),
    "bert-classifier": (transformers.BertForSequenceClassification, transformers.BertConfig(**BERT, num_labels=3)),
    "bert-reranker": (transformers.BertForSequenceClassification,
                      transformers.BertConfig(**BERT, num_labels=1, hidden_act="gelu_new")),
    "roberta": (transformers.RobertaModel, transformers.RobertaConfig(**ROBERTA)),
    "xlm-roberta-classifier": (transformers.XLMRobertaForSequenceClassification,
                               transformers.XLMRobertaConfig(**ROBERTA, num_labels=5)),
} | own_readers.cases(BERT, DECODER)


def move_linear(directory):
    """Moves the matrix after the encoder into a folder, as Sentence Transformers does."""
    path = os.path.join(directory, "model.safetensors")
    tensors = load_file(path)
    linear = tensors.pop("linear.weight")
    save_file(tensors, path)
    folder = os.path.join(directory, "1_Dense")
    os.makedirs(folder)
    save_file({"linear.weight": linear}, os.path.join(folder, "model.safetensors"))
    dense = {"in_features": linear.shape[1], "out_features": linear.shape[0], "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}]
    for name, content in ((os.path.join(folder, "config.json"), dense), (os.path.join(directory, "modules.json"), modules)):
        with open(name, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")


def move_heads(directory):
    """Moves BGE-M3's token heads to the files that its authors use."""
    path = os.path.join(directory, "model.safetensors")
    tensors = load_file(path)
    for name in ("colbert_linear", "sparse_linear"):
        torch.save({part: tensors.pop(f"{name}.{part}") for part in ("weight", "bias")}, os.path.join(directory, f"{name}.pt"))
    save_file(tensors, path, {"format": "pt"})


def rename_internlm2(directory):
    """Renames Llama's tensors to those of InternLM2's files."""
    path = os.path.join(directory, "model.safetensors")
    tensors = make_model_goldens.internlm2_tensors(load_file(path))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = make_model_goldens.INTERNLM2[0](json.load(file))
    with open(path, "w") as file:
        json.dump(dict(config, architectures=["InternLM2ForRewardModel"]), file, indent=2)


ADAPTED = ["word_embeddings", "q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"]


def adapt(directory, model):
    """Writes a random LoRA adapter as PEFT does, and adds it to the model's matrices."""
    generator = torch.Generator().manual_seed(2)
    rank, alpha, tensors = 4, 6, {}
    for name, module in model.named_modules():
        if name.split(".")[-1] not in ADAPTED:
            continue
        table = isinstance(module, torch.nn.Embedding)
        rows, cols = (module.embedding_dim, module.num_embeddings) if table else (module.out_features, module.in_features)
        a, b = (0.2 * torch.randn(shape, generator=generator) for shape in ((rank, cols), (rows, rank)))
        with torch.no_grad():
            change = alpha / rank * b @ a
            module.weight += change.T if table else change
        kind = "embedding_{}" if table else "{}.weight"
        tensors |= {f"base_model.model.{name}.lora_{kind.format(which)}": t.contiguous() for which, t in (("A", a), ("B", b))}
    os.makedirs(directory)
    save_file(tensors, os.path.join(directory, "adapter_model.safetensors"))
    with open(os.path.join(directory, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "bias": "none", "target_modules": ADAPTED}, file, indent=1)
        file.write("\n")


TASKS = ["retrieval.query", "separation", "text-matching"]
JINA_NAMES = {"embeddings.LayerNorm": "emb_ln", "self_attn.q_proj": "mixer.Wqkv", "self_attn.o_proj": "mixer.out_proj", "post_attention_layernorm": "norm1",
              "post_mlp_layernorm": "norm2"}


def publish_jina(directory, model):
    """Writes random changes, and adds those of the last task to the model."""
    generator = torch.Generator().manual_seed(3)
    rank, alpha, parts = 4, 2, ("q_proj", "k_proj", "v_proj")

    def published(name):
        for part in parts:
            name = name.replace(part, "q_proj")
        for ours, theirs in JINA_NAMES.items():
            name = name.replace(ours, theirs)
        return "roberta." + ("encoder." if name.startswith("layers.") else "") + name

    path = os.path.join(directory, "model.safetensors")
    stored, files, merged = load_file(path), {}, {}
    for name, tensor in stored.items():
        if any(part in name for part in parts[1:]):
            continue
        if parts[0] in name:
            tensor = torch.cat([stored[name.replace(parts[0], part)] for part in parts])
        name = published(name)
        merged[name] = files[name] = tensor
        if tensor.dim() < 2:
            continue
        (rows, cols), table = files.pop(name).shape, "embeddings" in name
        a, b = (0.1 * torch.randn(len(TASKS), *shape, generator=generator).to(torch.bfloat16) for shape in (((rows, rank), (rank, cols)) if table else ((rank, cols), (rows, rank))))
        before = name.replace(".weight", ".parametrizations.weight")
        files |= {f"{before}.original": tensor, f"{before}.0.lora_A": a, f"{before}.0.lora_B": b}
        change = a[-1].float() @ b[-1].float() if table else b[-1].float() @ a[-1].float()
        merged[name] = (tensor.float() + alpha / rank * change).to(tensor.dtype)
    save_file(files, path, {"format": "pt"})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor, own = merged[published(name)], [i for i, part in enumerate(parts) if part in name]
            parameter.copy_(tensor.chunk(len(parts))[own[0]] if own else tensor)
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    config |= dict(architectures=["XLMRobertaModel"], model_type="xlm-roberta", position_embedding_type="rotary", rotary_emb_base=config.pop("rope_parameters")["rope_theta"],
                   lora_adaptations=TASKS, lora_alpha=alpha, lora_rank=rank)
    with open(path, "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def publish_colbert_jina(directory):
    path = os.path.join(directory, "model.safetensors")
    stored, tensors = load_file(path), {}
    for name, tensor in stored.items():
        if "k_proj" in name or "v_proj" in name:
            continue
        if "q_proj" in name:
            tensor = torch.cat([stored[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
        for ours, theirs in JINA_NAMES.items():
            name = name.replace(ours, theirs)
        tensors[name if name.startswith("linear") else "roberta." + ("encoder." if name.startswith("layers.") else "") + name] = tensor
    save_file(tensors, path, {"format": "pt"})
    path = os.path.join(directory, "config.json")
    with open(path) as file:
        config = json.load(file)
    config |= dict(model_type="xlm-roberta", position_embedding_type="rotary", rotary_emb_base=config.pop("rope_parameters")["rope_theta"])
    with open(path, "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def make(directory, kind, config):
    torch.manual_seed(0)
    model = kind(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name.lower() and name.endswith("weight"):
                p.copy_(1 + 0.3 * torch.randn_like(p))
            else:
                p.copy_((0.3 if p.dim() == 1 else 0.12) * torch.randn_like(p))
            # for NomicExperts; GGUF files omit it
            if name.endswith("mlp.bias") and not getattr(config, "experts_bias", True):
                p.zero_()
    model = model.to(torch.bfloat16)
    model.save_pretrained(directory)
    if kind.__name__ in ARCHITECTURES:
        path = os.path.join(directory, "config.json")
        with open(path) as file:
            saved = json.load(file)
        with open(path, "w") as file:
            json.dump(saved | {"architectures": [ARCHITECTURES[kind.__name__]]}, file, indent=2)
    # its rotary frequencies were never rounded
    model = kind.from_pretrained(directory, dtype=torch.float32).eval()
    if kind.__name__.endswith("MaskedLM"):
        model = model.base_model
    if kind is PublishedJina:
        publish_jina(directory, model)
    if hasattr(kind, "prepare"):
        kind.prepare(directory, model)
    vocab = config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(1)
    golden = {"ids": [], "types": [], "starts": [0]}
    rows = {}
    for length in LENGTHS:
        # Excludes the padding token, from which RoBERTa counts positions differently.
        ids = torch.randint(3, vocab, (1, length), generator=generator)
        types = (torch.arange(length) >= length // 2).long()[None] * (getattr(config, "type_vocab_size", 0) > 1)
        with torch.no_grad():
            out = model(input_ids=ids, **({"token_type_ids": types} if hasattr(config, "type_vocab_size") else {}))
        if isinstance(model, (ColBert, ColBertOfLfm2, ColBertOfModernBert, ColQwen, ColQwen35, JinaColBert, OneReward, ProcessReward)):
            rows.setdefault("tokens", []).append(out[0])
        elif hasattr(kind, "pooled"):
            rows.setdefault("words", []).append(kind.pooled(out))
        elif isinstance(model, transformers.Qwen3ForCausalLM):
            rows.setdefault("scores", []).append((out.logits[0, -1, YES] - out.logits[0, -1, NO])[None])
        elif type(model).__name__.endswith("ForTokenClassification"):
            rows.setdefault("tokens", []).append(out.logits[0])
        elif hasattr(out, "logits"):
            rows.setdefault("scores", []).append(out.logits[0])
        else:
            if isinstance(model, BgeM3):
                for kind_of, made in zip(("vectors", "weights"), model.of_tokens(out.last_hidden_state[0])):
                    rows.setdefault(kind_of, []).append(made.detach())
            rows.setdefault("first", []).append(out.last_hidden_state[0, 0])
            rows.setdefault("last", []).append(out.last_hidden_state[0, -1])
            rows.setdefault("mean", []).append(out.last_hidden_state[0].mean(0))
            # Poolings of one text as in the Pooling module of sentence-transformers.
            x, counts = out.last_hidden_state[0], torch.arange(1, length + 1).float()
            rows.setdefault("max", []).append(x.max(0).values)
            rows.setdefault("mean_sqrt_len_tokens", []).append(x.sum(0) / length**0.5)
            rows.setdefault("weightedmean", []).append((x * counts[:, None]).sum(0) / counts.sum())
        golden["ids"] += ids[0].tolist()
        golden["types"] += types[0].tolist()
        golden["starts"].append(golden["starts"][-1] + length)
    if kind is transformers.JinaEmbeddingsV3Model:
        adapt(os.path.join(directory, "adapter"), model)
        starts = golden["starts"]
        with torch.no_grad():
            rows["adapted"] = [model(input_ids=torch.tensor([golden["ids"][begin:end]])).last_hidden_state[0].mean(0)
                               for begin, end in zip(starts, starts[1:])]
    tensors = {name: torch.tensor(values, dtype=torch.int32) for name, values in golden.items()}
    tensors |= {name: (torch.cat if name in OF_TOKENS else torch.stack)(values).contiguous() for name, values in rows.items()}
    save_file(tensors, os.path.join(directory, "golden.safetensors"))
    if hasattr(kind, "publish"):
        kind.publish(directory)
    if kind in (ColBertOfModernBert, ColBertOfLfm2):
        move_linear(directory)
    if kind is ColModernV:
        publish_colmodernvbert(directory)
    if kind is JinaColBert:
        publish_colbert_jina(directory)
    if kind in (ColQwen, ColQwen35):
        path = os.path.join(directory, "model.safetensors")
        save_file({name.replace("model.", "language_model.", 1): tensor for name, tensor in load_file(path).items()} |
                  {"visual.merger.norm.weight": torch.zeros(4)}, path)
    if kind is BgeM3:
        move_heads(directory)
    if kind is NomicMoe:
        name_as_nomic(directory)
    if kind is OneReward:
        rename_internlm2(directory)
    if kind is transformers.GteForSequenceClassification:  # with the names of Alibaba's files
        path = os.path.join(directory, "model.safetensors")
        save_file({name.replace("gte.", "new."): tensor for name, tensor in load_file(path).items()}, path)


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or CASES
    for name in wanted:
        directory = os.path.join(out, name)
        shutil.rmtree(directory, ignore_errors=True)
        make(directory, *CASES[name])


if __name__ == "__main__":
    main()
