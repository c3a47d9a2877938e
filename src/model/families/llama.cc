// Llama 2 and 3 (Touvron et al., 2023; Grattafiori et al., 2024).
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_llama(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool attention_bias, config.boolean("attention_bias", false));
  TRY(const bool mlp_bias, config.boolean("mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = layer.attention().out_bias = attention_bias;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  return spec;
}

}  // namespace octavo
