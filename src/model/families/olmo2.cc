// OLMo 2 (OLMo team, 2024): norms behind both halves instead of before them, and over whole queries and keys.
// OLMoE (Muennighoff et al., 2024): such norms of queries and keys, and experts.
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_olmo2(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = std::exchange(layer.pre_norm, {});
    layer.attention().qkv_bias = layer.attention().out_bias = bias;
    layer.attention().qk_norm = QkNorm::whole_row;
    layer.attention().qk_norm_spec = layer.post_norm;
  }
  spec.names.attention_post_norm = "post_attention_layernorm";
  spec.names.mlp_post_norm = "post_feedforward_layernorm";
  return spec;
}

Result<ModelSpec> describe_olmoe(const Config& config) {
  if (config.has("clip_qkv")) {
    return field_failure("clip_qkv", ErrorCode::unsupported, "{} is set; queries and keys are not clipped",
                         config.where("clip_qkv"));
  }
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = layer.attention().out_bias = bias;
    layer.attention().qk_norm = QkNorm::whole_row;
    layer.attention().qk_norm_spec = layer.pre_norm;
    layer.feed_forward = experts;
  }
  return spec;
}

}  // namespace octavo
