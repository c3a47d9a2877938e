// Granite 3 (IBM, 2024): Llama with multipliers on embeddings, scores, residuals and logits.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_granite(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(spec.embed_scale, multiplier(config, "embedding_multiplier"));
  TRY(const float logits_divisor, multiplier(config, "logits_scaling"));
  TRY(const float residual_scale, multiplier(config, "residual_multiplier"));
  TRY(const float score_scale, multiplier(config, "attention_multiplier"));
  spec.logits_scale = 1 / logits_divisor;
  for (LayerSpec& layer : spec.layers) {
    layer.residual_scale = residual_scale;
    layer.attention.scale = score_scale;
  }
  return spec;
}

}  // namespace octavo
