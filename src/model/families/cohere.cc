// Command R (Cohere, 2024): parallel halves behind one layer norm, neighbours turn, scaled logits. Command A
// and R7B (Cohere2, 2025): windows in three layers of four, and no rotation in the fourth.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_cohere(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.eps = "layer_norm_eps", .norm = {.kind = NormKind::layer}}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(const bool normed, config.boolean("use_qk_norm", false));
  TRY(spec.logits_scale, multiplier(config, "logit_scale"));
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::parallel_shared;
    layer.attention().qkv_bias = layer.attention().out_bias = bias;
    if (!normed) continue;
    layer.attention().qk_norm = QkNorm::per_head;
    layer.attention().qk_norm_spec = layer.pre_norm;
  }
  spec.ropes[0].interleaved = true;
  return spec;
}

Result<ModelSpec> describe_cohere2(const Config& config) {
  TRY(ModelSpec spec, describe_cohere(config));
  TRY(const int pattern, config.integer("sliding_window_pattern", {1, 1024}, 4));
  TRY_VOID(set_windows(spec, config, [pattern](int layer) { return (layer + 1) % pattern != 0; }));
  for (LayerSpec& layer : spec.layers)
    if (layer.attention().window == 0) layer.attention().rope = -1;
  return spec;
}

}  // namespace octavo
