// Granite 3 (IBM, 2024): Llama with multipliers on embeddings, scores, residuals and logits; also with
// experts.
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
    layer.attention().scale = score_scale;
  }
  return spec;
}

Result<ModelSpec> describe_granite_moe(const Config& config) {
  TRY(ModelSpec spec, describe_granite(config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  experts.router.renormalise = true;
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.names.router = "block_sparse_moe.router.layer";
  spec.names.expert_storage = ExpertStorage::stacked;
  spec.names.expert_up = {"block_sparse_moe.input_linear.weight"};
  spec.names.expert_down = "block_sparse_moe.output_linear.weight";
  return spec;
}

Result<ModelSpec> describe_granite_moe_shared(const Config& config) {
  TRY(ModelSpec spec, describe_granite_moe(config));
  TRY(const int hidden, config.integer("shared_intermediate_size", {0, 1 << 20}));
  if (hidden == 0) return spec;
  for (LayerSpec& layer : spec.layers) {
    auto& experts = std::get<Experts>(layer.feed_forward);
    experts.shared = experts.expert;
    experts.shared->hidden = hidden;
  }
  spec.names.shared_up = {"shared_mlp.input_linear"};
  spec.names.shared_down = "shared_mlp.output_linear";
  return spec;
}

}  // namespace octavo
