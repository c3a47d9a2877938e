#!/usr/bin/env python3
"""Makes tests/data/gguf/: small random models as GGUF files, and transformers' results with their numbers.

A case is a directory with model.gguf (or its parts) and golden.safetensors, which make_model_goldens.py describes.

Usage: make_gguf_goldens.py OUT_DIR [CASE ...]
"""
import os
import pathlib
import sys

import gguf
import torch
import transformers
from safetensors.torch import save_file

import gguf_files
import own_models

VOCAB = 48
TOKENS = 12
MANY_TOKENS = {"deepseek4": 140}  # its entries represent up to 128 tokens
BASE = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WIDE = dict(BASE, hidden_size=256, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, tie_word_embeddings=True)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=2.5,
              original_max_position_embeddings=64, rope_theta=10000.0)
LONGROPE = dict(rope_type="longrope", short_factor=[1.0, 1.1, 1.3], long_factor=[1.5, 2.0, 2.5], rope_theta=10000.0,
                original_max_position_embeddings=64, partial_rotary_factor=0.75)
GEMMA3 = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
              sliding_attention=dict(rope_type="default", rope_theta=10000.0))
GPT2 = dict(vocab_size=VOCAB, n_embd=32, n_inner=32, n_layer=2, n_head=4, n_positions=128)
NEOX = {k: v for k, v in BASE.items() if k not in ("num_key_value_heads", "head_dim")}
EXPERTS = dict(num_local_experts=3, num_experts_per_tok=2)
DEEPSEEK = dict(BASE, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1,
                norm_topk_prob=True, routed_scaling_factor=1.5)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0, truncate=False)
LATENT = dict(NEOX, hidden_size=64, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, first_k_dense_replace=1,
              kv_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=8, v_head_dim=32)
DELTA = dict(BASE, num_hidden_layers=3, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16)
HYBRID_EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32)
MAMBA2 = dict(mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2)
FALCON = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)

# name: (class, configuration, format of the matrices). For networks that transformers lacks, also the
# architecture that this equivalent class replaces.
CASES = {
    "exaone": ("Llama", dict(BASE, rope_parameters=LLAMA3), "Q4_0", "exaone"),
    "xverse": ("Llama", BASE, "Q4_0", "xverse"),
    "internlm3": ("Llama", dict(BASE, attention_bias=True, mlp_bias=True), "Q4_0"),
    "pangu-embedded": ("Llama", dict(BASE, attention_bias=True), "Q4_0", "pangu-embedded"),
    "orion": ("StableLm", dict(NEOX, num_key_value_heads=2, use_qkv_bias=False, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)),
              "Q4_0", "orion"),
    "minicpm": ("Granite", dict(BASE, attention_multiplier=8 ** -0.5, embedding_multiplier=12.0, logits_scaling=4.0, residual_multiplier=0.9), "Q4_0", "minicpm"),
    "minicpm3": ("MiniCPM3", dict(NEOX, hidden_size=128, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32, scale_emb=12,
                                  scale_depth=1.4, dim_model_base=256, tie_word_embeddings=True), "Q4_0"),
    "jais2": ("Jais2", BASE, "Q4_0"),
    "apertus": ("Apertus", dict(BASE, rope_parameters=LLAMA3), "Q4_0"),
    "qwen2vl": ("Qwen2", BASE, "Q4_0", "qwen2vl"),
    "qwen3vl": ("Qwen3", BASE, "Q4_0", "qwen3vl"),
    "qwen3vlmoe": ("Qwen3Moe", dict(BASE, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True), "Q4_0", "qwen3vlmoe"),
    "bailingmoe": ("Qwen2Moe", dict(NEOX, num_key_value_heads=2, qkv_bias=False, moe_intermediate_size=32, shared_expert_intermediate_size=64, num_experts=3,
                                    num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[0]), "Q4_0", "bailingmoe"),
    "bailingmoe2": ("Glm4Moe", dict(DEEPSEEK, use_qk_norm=True, n_routed_experts=6, n_group=3, topk_group=2,
                                    rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), "Q4_0", "bailingmoe2"),
    "deepseek": ("Qwen2Moe", dict(NEOX, num_key_value_heads=2, qkv_bias=False, moe_intermediate_size=32, shared_expert_intermediate_size=64, num_experts=5,
                                  num_experts_per_tok=3, mlp_only_layers=[0]), "Q4_0", "deepseek"),
    "cohere2moe": ("Cohere2Moe", dict(BASE, num_hidden_layers=4, logit_scale=0.5, sliding_window=6, num_experts=4, num_experts_per_tok=2, num_shared_experts=2,
                                      first_k_dense_replace=1, prefix_dense_intermediate_size=64, expert_selection_fn="sigmoid"), "Q4_0"),
    "hy_v3": ("HYV3", dict(BASE, num_hidden_layers=3, moe_intermediate_size=32, num_experts=5, num_experts_per_tok=2, num_shared_experts=2), "F16"),
    "mellum": ("Mellum", dict(BASE, num_hidden_layers=3, moe_intermediate_size=32, num_experts=5, num_experts_per_tok=2, sliding_window=6,
                              layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                              rope_parameters=dict(full_attention=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=1e4),
                                                   sliding_attention=dict(rope_type="default", rope_theta=5e4))), "F16"),
    "granite_swa": ("GraniteSWA", dict(BASE, num_hidden_layers=4, sliding_window=6, layer_rope_theta=[0, 1e4, 1e4, 1e4], attention_multiplier=0.2, embedding_multiplier=12.0,
                                       logits_scaling=8.0, residual_multiplier=0.22), "Q4_0"),
    "granite_swa-moe": ("GraniteMoeSWA", dict(BASE, num_hidden_layers=3, sliding_window=6, shared_intermediate_size=32, attention_multiplier=0.2, embedding_multiplier=12.0,
                                              logits_scaling=8.0, residual_multiplier=0.22, **EXPERTS), "Q4_0"),
    "deepseek4": ("DeepseekV4", dict({name: value for name, value in BASE.items() if name != "intermediate_size"}, num_key_value_heads=1, head_dim=32, max_position_embeddings=256,
                                     partial_rotary_factor=0.25, q_lora_rank=32, num_hidden_layers=4, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2,
                                     sliding_window=9, o_groups=2, o_lora_rank=32, index_n_heads=16, index_head_dim=32, index_topk=3, hc_mult=2, hc_sinkhorn_iters=5,
                                     swiglu_limit=1.5, rope_parameters=dict(YARN, factor=16.0, original_max_position_embeddings=16, truncate=True),
                                     layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"],
                                     compress_rates=dict(compressed_sparse_attention=4, heavily_compressed_attention=128), mlp_layer_types=["hash_moe"] + ["moe"] * 3),
                  "F32"),
    "dbrx": ("Dbrx", dict(vocab_size=VOCAB, d_model=32, n_heads=4, n_layers=2, max_seq_len=128, rope_parameters=dict(rope_type="default", rope_theta=5e5),
                          attn_config=dict(kv_n_heads=2, clip_qkv=0.8, rope_theta=5e5), ffn_config=dict(ffn_hidden_size=64, moe_num_experts=4, moe_top_k=2)), "F16"),
    "deci": ("DeciLM", dict(NEOX, num_hidden_layers=4, rope_parameters=LLAMA3, block_configs=[
        dict(attention=dict(n_heads_in_group=2), ffn=dict(ffn_mult=1.3)), dict(attention=dict(no_op=True), ffn=dict(ffn_mult=0.4)),
        dict(attention=dict(n_heads_in_group=4), ffn=dict(no_op=True)), dict(attention=dict(n_heads_in_group=1), ffn=dict(ffn_mult=13.0))]), "Q4_0"),
    "mimo2": ("MiMoV2Flash", dict(BASE, num_hidden_layers=3, head_dim=24, v_head_dim=16, moe_intermediate_size=32, n_routed_experts=5, num_experts_per_tok=2,
                                  sliding_window=6, layer_types=["full_attention", "sliding_attention", "sliding_attention"], rope_parameters=dict(
                                      full_attention=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.334),
                                      sliding_attention=dict(rope_type="default", rope_theta=5e3, partial_rotary_factor=0.334))), "Q8_0"),
    "plamo3": ("Gemma3Text", dict(BASE, num_hidden_layers=3, query_pre_attn_scalar=8, sliding_window=6, hidden_activation="silu", rms_norm_eps=1e-6, tie_word_embeddings=False,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=dict(
                                      full_attention=dict(rope_type="default", rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=5e3))),
               "Q4_0", "plamo3"),
    "step35": ("Step3p5", dict(BASE, num_hidden_layers=3, num_sliding_attention_heads=6, sliding_window=6, moe_intermediate_size=32, n_routed_experts=5, num_experts_per_tok=2,
                               share_expert_dim=64, moe_router_scaling_factor=1.7, layer_types=["full_attention", "sliding_attention", "sliding_attention"],
                               mlp_layer_types=["dense", "sparse", "sparse"], swiglu_limits=[0.0, 0.5, 0.0], swiglu_limits_shared=[0.4, 0.0, 1.0], rope_parameters=dict(
                                   full_attention=dict(LLAMA3, partial_rotary_factor=0.5), sliding_attention=dict(rope_type="default", rope_theta=5e3, partial_rotary_factor=1.0))),
               "F16"),
    "minimax-01": ("MiniMax", dict(BASE, num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"], full_attn_alpha_factor=1.5,
                                   linear_attn_alpha_factor=1.5, mlp_alpha_factor=1.5, full_attn_beta_factor=1.0, linear_attn_beta_factor=1.0, mlp_beta_factor=1.0,
                                   **EXPERTS), "Q4_0"),
    "kimi-linear": ("KimiLinear", dict(LATENT, num_hidden_layers=4, q_lora_rank=None, linear_num_heads=4, linear_head_dim=32, n_shared_experts=1, norm_topk_prob=True,
                                       routed_scaling_factor=2.5, n_group=1, topk_group=1, num_local_experts=4,
                                       layer_types=["linear_attention", "full_attention", "linear_attention", "full_attention"]), "F16"),
    "rwkv7": ("RWKV7", dict(vocab_size=VOCAB, hidden_size=128, head_dim=64, num_hidden_layers=2, intermediate_size=96, decay_low_rank_dim=32,
                            a_low_rank_dim=64, v_low_rank_dim=32, gate_low_rank_dim=32, norm_eps=1e-5, norm_first=True, norm_bias=True, fuse_norm=False,
                            tie_word_embeddings=False), "Q8_0"),
    "llama-q8_0": ("Llama", dict(BASE, tie_word_embeddings=True, rope_parameters=LLAMA3), "Q8_0"),
    "llama-q4_k_m": ("Llama", WIDE, "Q4_K_M"),
    "llama-mixed": ("Llama", dict(BASE, num_hidden_layers=1, attention_bias=True), "mixed"),
    "llama-iq": ("Llama", dict(WIDE, intermediate_size=256, num_hidden_layers=2), "iq"),
    "llama-float4": ("Llama", dict(WIDE, intermediate_size=256), "float4"),
    "qwen3moe-nvfp4": ("Qwen3Moe", dict(BASE, num_hidden_layers=1, hidden_size=64, head_dim=16, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2,
                                        norm_topk_prob=True), "NVFP4"),
    "mistral-split": ("Mistral", dict(BASE, sliding_window=8), "Q4_0"),
    "mistral3": ("Ministral3", dict(BASE, sliding_window=None, rope_parameters=dict(YARN, original_max_position_embeddings=8, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0,
                                                                                     beta_slow=1.0, llama_4_scaling_beta=0.3, truncate=True)), "Q4_0"),
    "qwen2": ("Qwen2", BASE, "Q5_1"),
    "qwen3": ("Qwen3", dict(BASE, tie_word_embeddings=True), "Q4_0"),
    "gemma": ("Gemma", dict(BASE, num_hidden_layers=1), "BF16"),
    "gemma2": ("Gemma2", dict(BASE, sliding_window=8, query_pre_attn_scalar=8), "Q4_1"),
    "gemma3": ("Gemma3Text", dict(BASE, num_hidden_layers=3, sliding_window=8, query_pre_attn_scalar=8,
                                  rope_parameters=GEMMA3, layer_types=["sliding_attention", "full_attention",
                                                                       "sliding_attention"]), "Q4_0"),
    "gemma3n": ("Gemma3nText", dict(BASE, num_hidden_layers=5, num_kv_shared_layers=2, hidden_size_per_layer_input=32, vocab_size_per_layer_input=VOCAB,
                                    laurel_rank=32, sliding_window=8, intermediate_size=32, activation_sparsity_pattern=[0.6, 0.0, 0.3, 0.0, 0.9],
                                    layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]), "Q8_0"),
    "gemma4": ("Gemma4Text", dict(BASE, num_hidden_layers=5, global_head_dim=16, num_kv_shared_layers=2, hidden_size_per_layer_input=32,
                                  vocab_size_per_layer_input=VOCAB, use_double_wide_mlp=True, sliding_window=8, final_logit_softcapping=30.0,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]), "Q8_0"),
    "gemma4-moe": ("Gemma4Text", dict(BASE, num_hidden_layers=3, global_head_dim=16, hidden_size_per_layer_input=0, attention_k_eq_v=True,
                                      num_global_key_value_heads=1, enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=32,
                                      sliding_window=8, layer_types=["sliding_attention", "sliding_attention", "full_attention"]), "Q8_0"),
    "phi3": ("Phi3", dict(BASE, rope_parameters=LONGROPE, sliding_window=None,
                          original_max_position_embeddings=64), "Q5_0"),
    "olmo2": ("Olmo2", BASE, "Q4_0"),
    "granite": ("Granite", dict(BASE, attention_multiplier=0.2, embedding_multiplier=12.0, logits_scaling=8.0,
                                residual_multiplier=0.22, tie_word_embeddings=True), "Q4_0"),
    "glm": ("Glm", dict(BASE, partial_rotary_factor=0.5, attention_bias=True), "Q4_0"),
    "glm4": ("Glm4", dict(BASE, partial_rotary_factor=0.5), "Q4_0"),
    "stablelm": ("StableLm", dict(NEOX, num_key_value_heads=2, use_qkv_bias=True), "Q4_0"),
    "gpt_neox": ("GPTNeoX", NEOX, "Q4_0"),
    "lfm2": ("Lfm2", dict(NEOX, num_key_value_heads=2, num_hidden_layers=3, block_auto_adjust_ff_dim=False,
                          layer_types=["conv", "full_attention", "conv"]), "Q4_0"),
    "granitehybrid": ("GraniteMoeHybrid", dict(NEOX, **MAMBA2, num_key_value_heads=2, num_hidden_layers=3, shared_intermediate_size=32, attention_multiplier=0.2,
                                               embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22,
                                               layer_types=["mamba", "attention", "mamba"], **EXPERTS), "Q4_0"),
    "granitehybrid-dense": ("GraniteMoeHybrid", dict(NEOX, **dict(MAMBA2, mamba_n_groups=1), num_key_value_heads=2, shared_intermediate_size=32, num_local_experts=0,
                                                     num_experts_per_tok=0, position_embedding_type="rope", tie_word_embeddings=True,
                                                     layer_types=["mamba", "attention"]), "Q4_0"),
    "nemotron_h": ("NemotronH", dict(BASE, mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=16, n_groups=2,
                                     layers_block_type=["mamba", "mlp", "attention", "mlp"]), "Q4_0"),
    "nemotron_h_moe": ("NemotronH", dict(BASE, mamba_num_heads=4, mamba_head_dim=16, ssm_state_size=16, n_groups=2, moe_intermediate_size=32,
                                         moe_shared_expert_intermediate_size=64, n_routed_experts=4, num_experts_per_tok=2, routed_scaling_factor=1.5,
                                         layers_block_type=["mamba", "moe", "attention"]), "Q4_0"),
    "falcon-h1": ("FalconH1", dict(BASE, **MAMBA2, num_hidden_layers=2, mamba_d_ssm=64, mamba_rms_norm=True, mamba_norm_before_gate=False, embedding_multiplier=5.0,
                                   lm_head_multiplier=0.3, key_multiplier=0.5, attention_in_multiplier=0.9, attention_out_multiplier=0.7,
                                   ssm_in_multiplier=1.3, ssm_out_multiplier=0.4, ssm_multipliers=[0.35, 0.25, 0.7, 0.5, 0.8],
                                   mlp_multipliers=[0.6, 0.4]), "Q8_0"),
    "jamba": ("Jamba", dict(NEOX, num_key_value_heads=2, num_hidden_layers=4, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                            num_experts=3, num_experts_per_tok=2, mamba_d_state=16, mamba_dt_rank=32), "Q8_0"),
    "mamba": ("Mamba", dict(vocab_size=VOCAB, hidden_size=32, state_size=16, num_hidden_layers=2, time_step_rank=32), "Q8_0"),
    "mamba-normed": ("FalconMamba", dict(vocab_size=VOCAB, hidden_size=32, state_size=16, num_hidden_layers=2, time_step_rank=32), "Q4_0"),
    "mamba2": ("Mamba2", dict(vocab_size=VOCAB, hidden_size=32, num_heads=4, head_dim=16, state_size=16, n_groups=2, num_hidden_layers=2), "Q4_0"),
    "gpt2": ("GPT2", GPT2, "Q4_0"),
    "smollm3": ("SmolLM3", dict(BASE, num_hidden_layers=4), "Q4_0"),
    "arcee": ("Arcee", BASE, "Q4_0"),
    "command-r": ("Cohere", dict(NEOX, num_key_value_heads=2, logit_scale=0.5, use_qk_norm=True), "Q4_0"),
    "cohere2": ("Cohere2", dict(NEOX, num_hidden_layers=4, logit_scale=0.5, sliding_window=6), "Q4_0"),
    "olmo": ("Olmo", dict(NEOX, num_key_value_heads=2), "Q4_0"),
    "exaone4": ("Exaone4", dict(BASE, num_hidden_layers=4, sliding_window=6), "Q4_0"),
    "ernie4_5": ("Ernie4_5", BASE, "Q4_0"),
    "hunyuan": ("HunYuanDenseV1", BASE, "Q4_0"),
    "seed_oss": ("SeedOss", BASE, "Q4_0"),
    "phi2": ("Phi", dict(NEOX, num_key_value_heads=4, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), "Q4_0"),
    "starcoder": ("GPTBigCode", GPT2, "Q4_0"),
    "starcoder2": ("Starcoder2", dict(NEOX, num_key_value_heads=2), "Q4_0"),
    "falcon": ("Falcon", FALCON, "Q4_0"),
    "falcon-new": ("Falcon", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2), "Q4_0"),
    "bloom": ("Bloom", dict(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4), "Q4_0"),
    "mpt": ("Mpt", dict(vocab_size=VOCAB, d_model=32, n_layers=2, n_heads=4, max_seq_len=128), "Q4_0"),
    "nemotron": ("Nemotron", BASE, "Q4_0"),
    "mixtral": ("Mixtral", dict(NEOX, num_key_value_heads=2, sliding_window=None, **EXPERTS), "Q4_0"),
    "qwen2moe": ("Qwen2Moe", dict(NEOX, num_key_value_heads=2, moe_intermediate_size=32, shared_expert_intermediate_size=64,
                                  num_experts=3, num_experts_per_tok=2), "Q8_0"),
    "qwen3moe": ("Qwen3Moe", dict(BASE, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True), "Q8_0"),
    "gpt-oss": ("GptOss", dict(BASE, sliding_window=6, rope_parameters=YARN, **EXPERTS), "MXFP4"),
    "gpt-oss-f16": ("GptOss", dict(BASE, num_hidden_layers=1, intermediate_size=40, rope_parameters=YARN, **EXPERTS), "F16"),
    "olmoe": ("Olmoe", dict(NEOX, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2), "Q4_0"),
    "granitemoe": ("GraniteMoeShared", dict(NEOX, num_key_value_heads=2, shared_intermediate_size=32, attention_multiplier=0.2,
                                            embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, **EXPERTS), "Q4_0"),
    "ernie4_5-moe": ("Ernie4_5_Moe", dict(NEOX, num_key_value_heads=2, moe_intermediate_size=32, moe_num_experts=4, moe_k=2,
                                          moe_num_shared_experts=2, moe_layer_start_index=1), "Q4_0"),
    "hunyuan-moe": ("HunYuanMoEV1", dict(BASE, num_experts=3, moe_topk=2), "Q4_0"),
    "glm4moe": ("Glm4Moe", dict(DEEPSEEK, use_qk_norm=True, attention_bias=True,
                                rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), "Q4_0"),
    "dots1": ("Dots1", dict(DEEPSEEK, n_group=1, topk_group=1), "Q4_0"),
    "minimax-m2": ("MiniMaxM2", dict(BASE, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5), **EXPERTS), "Q4_0"),
    "lfm2moe": ("Lfm2Moe", dict(NEOX, num_key_value_heads=2, num_hidden_layers=3, moe_intermediate_size=32, num_experts=4,
                                num_experts_per_tok=2, num_dense_layers=1, layer_types=["conv", "full_attention", "conv"]), "Q4_0"),
    "deepseek2": ("DeepseekV3", dict(LATENT, q_lora_rank=32, n_shared_experts=1, n_group=2, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                                     rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0, truncate=True)), "Q4_0"),
    "glm-dsa": ("GlmMoeDsa", dict(LATENT, q_lora_rank=32, n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, num_key_value_heads=4,
                                  index_topk=5, index_head_dim=32, index_n_heads=8), "F16"),
    "deepseek32": ("DeepseekV32", dict(LATENT, q_lora_rank=32, n_shared_experts=1, n_group=2, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, num_key_value_heads=4,
                                       index_topk=5, index_head_dim=32, index_n_heads=8), "F16"),
    "afmoe": ("Afmoe", dict(BASE, num_hidden_layers=4, moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2, num_shared_experts=1, num_dense_layers=1,
                            sliding_window=6, route_norm=True, route_scale=1.5, mup_enabled=True), "Q8_0"),
    "deepseek2-older": ("DeepseekV2", dict(LATENT, q_lora_rank=None, n_shared_experts=2, n_group=1, topk_group=1, topk_method="greedy",
                                           norm_topk_prob=False, routed_scaling_factor=1.0), "Q4_0"),
    "mistral4": ("Mistral4", dict(LATENT, q_lora_rank=32, n_shared_experts=1, n_group=2, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.0,
                                  rope_parameters=dict(YARN, original_max_position_embeddings=8, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0, beta_slow=1.0,
                                                       llama_4_scaling_beta=0.3, truncate=True)), "Q4_0"),
    "exaone-moe": ("ExaoneMoe", dict(BASE, num_hidden_layers=4, moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2, num_shared_experts=1,
                                     n_group=1, topk_group=1, sliding_window=6, routed_scaling_factor=1.5), "Q4_0"),
    "llama4": ("Llama4Text", dict(BASE, num_hidden_layers=4, intermediate_size=32, intermediate_size_mlp=64, num_local_experts=3, num_experts_per_tok=1,
                                  interleave_moe_layer_step=2), "Q4_0"),
    "phimoe": ("Phimoe", dict(NEOX, num_hidden_layers=1, num_key_value_heads=2, attention_bias=True, lm_head_bias=True, sliding_window=None, **EXPERTS), "Q4_0"),
    "qwen3next": ("Qwen3Next", dict(DELTA, layer_types=["linear_attention", "full_attention", "linear_attention"], **HYBRID_EXPERTS), "Q4_0"),
    "qwen35": ("Qwen3_5Text", dict(DELTA, layer_types=["linear_attention", "full_attention", "linear_attention"], tie_word_embeddings=True), "Q4_0"),
    "qwen35moe": ("Qwen3_5MoeText", dict(DELTA, num_hidden_layers=2, layer_types=["linear_attention", "full_attention"], **HYBRID_EXPERTS), "Q8_0"),
}
MODEL_CLASSES = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM", "Gemma3nText": "Gemma3nForCausalLM", "Gemma4Text": "Gemma4ForCausalLM", "Llama4Text": "Llama4ForCausalLM", "Qwen3_5Text": "Qwen3_5ForCausalLM",
                 "Qwen3_5MoeText": "Qwen3_5MoeForCausalLM"}
SPLIT_NAMES = ("model-00001-of-00002.gguf", "model-00002-of-00002.gguf")


def random_model(name, fields, stands_for=None):
    torch.manual_seed(sum(map(ord, name)) + len(fields))
    named = lambda what: getattr(own_models, what, None) or getattr(transformers, what)
    config = named(name + "Config")(**fields)
    model = named(MODEL_CLASSES.get(name, name + "ForCausalLM"))._from_config(config)
    gguf_files.stand_for(model, stands_for)
    with torch.no_grad():
        for parameter_name, p in model.named_parameters():
            norm = parameter_name.endswith("norm.weight") or "layernorm" in parameter_name or "norm_attn_norm.norm_" in parameter_name
            less_one = "gemma" in config.model_type and not config.model_type.startswith(("gemma3n", "gemma4")) or config.model_type.startswith(("qwen3_5", "qwen3_next", "step3p5")) and "linear_attn" not in parameter_name
            p.copy_(torch.randn(p.shape) * (3 / max(p.shape)) ** 0.5 + (1 if norm and not less_one and p.ndim == 1 else 0))
            if parameter_name.endswith("A_log"):
                p.sub_(2)  # states decay slowly
            if parameter_name.endswith(("mlp.gate.weight", "router.weight", "router.layer.weight", "gate.wg.weight")):
                p.mul_(4)  # rounding rarely changes a selection of experts
        for buffer_name, b in model.named_buffers():
            if buffer_name.endswith("bias"):  # bias of the selection of experts
                b.copy_(torch.randn(b.shape) * 0.3)
            if buffer_name.endswith("tid2eid"):  # each token has different experts
                b.copy_(torch.rand(len(b), config.n_routed_experts).argsort(-1)[:, :b.shape[1]])
            if buffer_name.endswith("layer_scalar"):
                b.copy_(torch.rand(b.shape) + 0.5)
    return model.eval()


def mixed(name, tensor):
    """Each part of a fused projection has a different format. One part is not quantised."""
    return gguf.GGMLQuantizationType[{"attn_q": "Q8_0", "attn_k": "Q4_0", "attn_v": "F16", "ffn_gate": "Q5_0",
                                      "ffn_up": "Q8_0"}.get(name.split(".")[-2], "F16")]


def iq(name, tensor):
    """Each matrix with rows of 256 columns has another format that needs whole blocks."""
    if tensor.shape[-1] % 256:
        return gguf.GGMLQuantizationType.F16
    return gguf.GGMLQuantizationType[{"token_embd": "IQ4_XS", "blk.0.attn_q": "IQ3_S", "blk.0.attn_k": "IQ3_XXS", "blk.0.attn_v": "IQ4_XS",
                                      "blk.0.ffn_gate": "IQ2_S", "blk.0.ffn_up": "IQ2_XS", "blk.0.ffn_down": "IQ2_XXS",
                                      "blk.1.attn_q": "IQ1_S", "blk.1.attn_k": "IQ1_M", "blk.1.attn_v": "Q8_0",
                                      "blk.1.ffn_gate": "TQ1_0", "blk.1.ffn_up": "TQ2_0", "blk.1.ffn_down": "IQ1_M"}[name.removesuffix(".weight")]]


def float4(name, tensor):
    """Matrices in NVFP4, which have scales, beside MXFP4 and Q1_0."""
    return gguf.GGMLQuantizationType[{"attn_q": "NVFP4", "attn_k": "Q1_0", "attn_v": "MXFP4", "ffn_gate": "NVFP4", "ffn_up": "Q1_0",
                                      "ffn_down": "NVFP4"}.get(name.split(".")[-2], "F16")]


def split(path):
    """Splits the file in two. The metadata is in the first one."""
    reader = gguf.GGUFReader(str(path))
    middle = len(reader.tensors) // 2
    for number, tensors in enumerate((reader.tensors[:middle], reader.tensors[middle:])):
        writer = gguf.GGUFWriter(str(path.parent / SPLIT_NAMES[number]), "llama")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for field in reader.fields.values() if number == 0 else ():
            if not field.name.startswith(("GGUF.", "general.architecture")):
                writer.add_key_value(field.name, field.contents(), field.types[0])
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    path.unlink()


def make(out, name):
    family, fields, kind, *stands_for = CASES[name]
    directory = out / name
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "model.gguf"
    model = random_model(family, fields, *stands_for)
    if kind.endswith("_K_M"):
        gguf_files.write(model, directory / "plain.gguf", lambda *_: gguf.GGMLQuantizationType.F32)
        gguf_files.requantize(directory / "plain.gguf", path, kind)
        os.unlink(directory / "plain.gguf")
    else:
        format_of = {"mixed": mixed, "iq": iq, "float4": float4}.get(kind) or (lambda *_: gguf.GGMLQuantizationType[kind])
        gguf_files.write(model, path, format_of)
    gguf_files.load_back(model, path)
    ids = torch.randint(3, VOCAB, (1, MANY_TOKENS.get(name, TOKENS)))
    with torch.no_grad():
        logits = model(ids).logits[0].float().contiguous()
    golden = {"ids": ids[0].to(torch.int32), "logits": logits}
    if family == "Phi3":
        golden["max_model_len"] = torch.tensor([64], dtype=torch.int32)
    save_file(golden, directory / "golden.safetensors")
    if name.endswith("split"):
        split(path)


if __name__ == "__main__":
    for case in sys.argv[2:] or CASES:
        make(pathlib.Path(sys.argv[1]), case)
