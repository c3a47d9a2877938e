// Command R (Cohere, 2024): attention and MLP in parallel after one layer norm, RoPE on adjacent elements,
// scaled logits. Command A and R7B (Cohere2, 2025) have sliding windows in three of four layers, and no RoPE
// in the fourth. Cohere2Moe (2026) also has experts.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_cohere(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.eps = "layer_norm_eps", .norm = {.kind = NormKind::layer}}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(const bool normed, config.boolean("use_qk_norm", false));
  TRY(spec.logits.scale, multiplier(config, "logit_scale"));
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::parallel_shared;
    layer.attention().biases = {.qkv = bias, .out = bias};
    if (!normed) continue;
    layer.attention().norms = {QkNorm::per_head, layer.pre_norm};
  }
  spec.ropes[0].interleaved = true;
  return spec;
}

Result<ModelSpec> describe_cohere2(const Config& config) {
  TRY(ModelSpec spec, describe_cohere(config));
  TRY(const int pattern, config.integer("sliding_window_pattern", {1, 1024}, 4));
  TRY_VOID(set_windows(spec, config, [pattern](int layer) { return (layer + 1) % pattern != 0; }));
  for (LayerSpec& layer : spec.layers)
    if (layer.attention().mask.window == 0) layer.attention().rope = -1;
  return spec;
}

static Result<ModelSpec> describe_cohere2_moe(const Config& config) {
  TRY(ModelSpec spec, describe_cohere2(config));
  if (config.has("rms_norm_eps")) {
    TRY(const double eps, config.number("rms_norm_eps", {0, 1}));
    spec.final_norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)};
    for (LayerSpec& layer : spec.layers) layer.pre_norm = spec.final_norm;
  }
  Mlp dense = spec.layers[0].mlp();
  TRY(dense.hidden, config.integer("prefix_dense_intermediate_size", kDim, dense.hidden));
  TRY(Experts experts, read_experts(config, dense, "intermediate_size"));
  TRY(const std::string scores, config.text("expert_selection_fn", "softmax"));
  if (scores != "softmax" && scores != "sigmoid")
    return field_failure("expert_selection_fn", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be softmax or sigmoid",
                         config.where("expert_selection_fn"), scores);
  experts.router.renormalise = true;  // the softmax is computed only over the selected experts
  if (scores == "sigmoid") {
    experts.router.scores = RouterScores::sigmoid;
    TRY(experts.router.renormalise, config.boolean("norm_topk_prob", true));
  }
  TRY(const int shared, config.integer("num_shared_experts", {0, kMaxExperts}, 0));
  TRY(const std::string joined, config.text("shared_expert_combination_strategy", "average"));
  if (joined != "average" && joined != "sum")
    return field_failure("shared_expert_combination_strategy", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be average or sum",
                         config.where("shared_expert_combination_strategy"), joined);
  if (shared > 0) {
    experts.shared = experts.expert;
    experts.shared->hidden *= shared;
  }
  TRY(const int pattern, config.integer("prefix_dense_sliding_window_pattern", {1, 1024}, 1));
  TRY(const std::vector<bool> sparse, sparse_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (!sparse[i]) {
      layer.feed_forward = dense;
      if (pattern == 1) layer.attention().rope = 0;
      continue;
    }
    layer.feed_forward = experts;
    if (shared > 0 && joined == "average") layer.scales.feed_forward = 0.5F;
  }
  spec.names.of<Experts>().shared_up = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  spec.names.of<Experts>().shared_down = "mlp.shared_experts.down_proj";
  return spec;
}

std::span<const Family> cohere_families() {
  static constexpr Family kRows[] = {
      {"Cohere2ForCausalLM", describe_cohere2},
      {"Cohere2MoeForCausalLM", describe_cohere2_moe},
      {"CohereForCausalLM", describe_cohere},
  };
  return kRows;
}

}  // namespace octavo
