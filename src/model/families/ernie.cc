// ERNIE 4.5 (Baidu, 2025): Llama with RoPE on adjacent elements. Variants have shared experts, and experts
// that are selected with a bias.
#include <algorithm>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_ernie(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("use_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.mlp().up_bias = layer.mlp().down_bias = bias;
  }
  spec.ropes[0].interleaved = true;
  return spec;
}

static Result<ModelSpec> describe_ernie_moe(const Config& config) {
  TRY_VOID(refuse(config, "use_bias", true));
  TRY(ModelSpec spec, describe_ernie(config));
  constexpr Config::Range kLayer{-1, 1024};
  const int layers = static_cast<int>(spec.layers.size());
  TRY(const int first, config.integer("moe_layer_start_index", kLayer));
  TRY(const int last, config.integer("moe_layer_end_index", kLayer, -1));
  TRY(const int interval, config.integer("moe_layer_interval", {1, 1024}));
  TRY(const int shared, config.integer("moe_num_shared_experts", {0, kMaxExperts}));
  Experts experts{.count = 0, .router = {.renormalise = true}, .expert = spec.layers[0].mlp()};
  experts.choice_bias = true;
  TRY(experts.count, config.integer("moe_num_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("moe_k", {1, experts.count}));
  TRY(experts.expert.hidden, config.integer("moe_intermediate_size", {1, 1 << 20}));
  if (shared > 0) {
    experts.shared = experts.expert;
    experts.shared->hidden *= shared;
  }
  for (int i = std::max(first, 0); i <= (last < 0 ? layers - 1 : std::min(last, layers - 1)); ++i)
    if ((i + 1) % interval == 0) spec.layers[static_cast<std::size_t>(i)].feed_forward = experts;
  spec.names.of<Experts>().choice_bias = "mlp.moe_statics.e_score_correction_bias";
  spec.names.of<Experts>().choice_bias_row = true;
  spec.names.of<Experts>().shared_up = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  spec.names.of<Experts>().shared_down = "mlp.shared_experts.down_proj";
  spec.names.ignorable.emplace_back("model.mtp_*");
  TRY(const int predictors, config.integer("num_nextn_predict_layers", {0, 64}, 0));
  if (predictors > 0)
    spec.predictor = {.like = 0,  // layer 0 has no experts, and neither has the prediction layer
                      .layer = "mtp_block.0.",
                      .names = {.token_norm = "mtp_emb_norm.0",
                                .hidden_norm = "mtp_hidden_norm.0",
                                .joint = "mtp_linear_proj.0"}};
  return spec;
}

std::span<const Family> ernie_families() {
  static constexpr Family kRows[] = {
      {"Ernie4_5ForCausalLM", describe_ernie},
      {"Ernie4_5_ForCausalLM", describe_ernie},
      {"Ernie4_5_MoeForCausalLM", describe_ernie_moe},
  };
  return kRows;
}

}  // namespace octavo
