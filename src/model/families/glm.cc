// GLM-4 (GLM team, 2024): RoPE rotates half of each head, in adjacent pairs. The 0414 models (Glm4) add norms
// after attention and MLP. GLM-4.5 (Glm4Moe, 2025) has DeepSeek-V3's experts, and RoPE pairs the two halves
// of a head instead of adjacent elements. Solar Open (Upstage, 2025) has experts in every layer.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_glm(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = bias;
  spec.ropes[0].interleaved = true;
  spec.names.mlp.up = {"mlp.gate_up_proj"};
  return spec;
}

Result<ModelSpec> describe_glm4(const Config& config) {
  TRY(ModelSpec spec, describe_glm(config));
  for (LayerSpec& layer : spec.layers) layer.post_norm = layer.pre_norm;
  spec.names.attention.post_norm = "post_self_attn_layernorm";
  spec.names.mlp.post_norm = "post_mlp_layernorm";
  return spec;
}

Result<ModelSpec> describe_glm4_moe(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(const bool normed, config.boolean("use_qk_norm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases.qkv = bias;
    if (!normed) continue;
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  return spec;
}

static Result<ModelSpec> describe_solar_open(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.hidden = "moe_intermediate_size",
                                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = bias;
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  return spec;
}

std::span<const Family> glm_families() {
  static constexpr Family kRows[] = {
      {"Glm4ForCausalLM", describe_glm4},
      {"Glm4MoeForCausalLM", describe_glm4_moe},
      {"GlmForCausalLM", describe_glm},
      {"SolarOpenForCausalLM", describe_solar_open},
  };
  return kRows;
}

}  // namespace octavo
