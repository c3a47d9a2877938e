// Nemotron-4 and Minitron (NVIDIA, 2024): layer norms by 1 + w, half of each head turns, squared relu without
// a gate.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_nemotron(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.eps = "norm_eps",
                              .norm = {.kind = NormKind::layer, .bias = true, .weight_offset = 1},
                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(const bool mlp_bias, config.boolean("mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = layer.attention().out_bias = bias;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  spec.names.up = {"mlp.up_proj"};
  return spec;
}

}  // namespace octavo
