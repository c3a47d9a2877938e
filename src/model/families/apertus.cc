// Apertus (Swiss AI, 2025): xIELU without a gate, norms of queries and keys.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_apertus(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qk_norm = QkNorm::shared;
    layer.attention().qk_norm_spec = layer.pre_norm;
    layer.mlp().gated = false;
  }
  spec.names.attention_norm = "attention_layernorm";
  spec.names.mlp_norm = "feedforward_layernorm";
  spec.names.up = {"mlp.up_proj"};
  for (const char* constant : {"*.mlp.act_fn.beta", "*.mlp.act_fn.eps"})  // 1/2 and -1e-6 in all files
    spec.names.ignorable.emplace_back(constant);
  return spec;
}

}  // namespace octavo
