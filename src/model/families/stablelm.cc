// StableLM 2 (Bellagente et al., 2024): layer norms, and RoPE on a quarter of each head. The 12B model also
// has norms of queries and keys, and runs attention and MLP in parallel. The first files (StableLM 3B-4E1T,
// Zephyr 3B, 2023) have other names for two fields.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_stablelm(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.head_dim = "",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool bias, config.boolean("use_qkv_bias", false));
  TRY(const bool parallel, config.boolean("use_parallel_residual", false));
  TRY(const bool qk_norm, config.boolean("qk_layernorm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases.qkv = bias;
    if (parallel) layer.residual = Residual::parallel_shared;
    if (!qk_norm) continue;
    layer.attention().norms.qk_kind = QkNorm::per_head;
    layer.attention().norms.qk = {.kind = NormKind::layer, .eps = layer.pre_norm.eps};
  }
  spec.names.attention.q_norm = "self_attn.q_layernorm.norms.{}";
  spec.names.attention.k_norm = "self_attn.k_layernorm.norms.{}";
  return spec;
}

static Result<ModelSpec> describe_stablelm_epoch(const Config& config) {
  return describe_stablelm(
      config.with_names({{"layer_norm_eps", "norm_eps"}, {"partial_rotary_factor", "rope_pct"}}));
}

std::span<const Family> stablelm_families() {
  static constexpr Family kRows[] = {
      {"StableLMEpochForCausalLM", describe_stablelm_epoch},
      {"StableLmForCausalLM", describe_stablelm},
  };
  return kRows;
}

}  // namespace octavo
