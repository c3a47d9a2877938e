// OLMo 2 (OLMo team, 2024): norms behind both halves instead of before them, and over whole queries and keys.
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_olmo2(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.eps_default = 1e-5}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = std::exchange(layer.pre_norm, {});
    layer.attention.qkv_bias = layer.attention.out_bias = bias;
    layer.attention.qk_norm = QkNorm::whole_row;
    layer.attention.qk_norm_spec = layer.post_norm;
  }
  spec.names.attention_post_norm = "post_attention_layernorm";
  spec.names.mlp_post_norm = "post_feedforward_layernorm";
  return spec;
}

}  // namespace octavo
