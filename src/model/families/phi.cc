// Phi-1 and Phi-2 (Gunasekar et al., 2023): attention and MLP in parallel after one norm, RoPE on a part of
// each head, biases everywhere. Phi-3.5-MoE (Abdin et al., 2024): layer norms, and experts that sparsemixer
// selects.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_phi(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool normed, config.boolean("qk_layernorm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::parallel_shared;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
    if (!normed) continue;
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  spec.logits.bias = true;
  spec.names.final_norm = "final_layernorm";
  spec.names.attention.q_norm = "self_attn.q_layernorm";
  spec.names.attention.k_norm = "self_attn.k_layernorm";
  spec.names.attention.out = "self_attn.dense";
  spec.names.mlp.up = {"mlp.fc1"};
  spec.names.mlp.down = "mlp.fc2";
  return spec;
}

static Result<ModelSpec> describe_phimoe(const Config& config) {
  TRY(ModelSpec spec, describe_mixtral(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(spec.logits.bias, config.boolean("lm_head_bias", false));
  TRY(const double jitter, config.number("router_jitter_noise", {0, 1}));
  for (LayerSpec& layer : spec.layers) {
    layer.pre_norm.kind = NormKind::layer;
    layer.pre_norm.bias = true;
    layer.attention().biases = {.qkv = bias, .out = bias};
    auto& experts = std::get<Experts>(layer.feed_forward);
    experts.router.scores = RouterScores::sparsemixer;
    experts.router.renormalise = false;
    experts.router.jitter = static_cast<float>(jitter);
  }
  spec.final_norm = spec.layers[0].pre_norm;
  TRY(std::optional<Config> rope, config.object("rope_scaling"));
  if (!rope) {
    TRY(rope, config.object("rope_parameters"));
  }
  if (!rope || !rope->has("short_mscale")) return spec;
  TRY(const double in_short, rope->number("short_mscale", {1e-3, 1e3}));
  TRY(const double in_long, rope->number("long_mscale", {1e-3, 1e3}));
  if (in_short != in_long)
    return field_failure("rope_scaling", ErrorCode::unsupported, "{} {} and long_mscale {} must be equal",
                         rope->where("short_mscale"), in_short, in_long);
  spec.ropes[0].scaling.attention_factor = in_short;
  return spec;
}

std::span<const Family> phi_families() {
  static constexpr Family kRows[] = {
      {"PhiForCausalLM", describe_phi},
      {"PhiMoEForCausalLM", describe_phimoe},
      {"PhimoeForCausalLM", describe_phimoe},
  };
  return kRows;
}

}  // namespace octavo
