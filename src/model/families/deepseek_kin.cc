// Networks that differ little from DeepSeek-V3. A.X K1 (SK Telecom, 2026) has a norm after the experts.
// Sarvam 105B (2026) has Ling's field names. openPangu Ultra (Huawei, 2025) has norms before and after
// attention and the MLP.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Unlike in DeepSeek's models, the norms of the latents have the same epsilon as all norms.
void share_epsilon(ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) std::get<LatentAttention>(layer.mixer).norm = spec.final_norm;
}

void set_choice_bias(ModelSpec& spec, bool biased) {
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->choice_bias = biased;
}

}  // namespace

static Result<ModelSpec> describe_axk1(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  TRY(const std::string method, config.text("topk_method", "noaux_tc"));
  set_choice_bias(spec, std::string_view(method) == "noaux_tc");
  for (LayerSpec& layer : spec.layers)
    if (std::holds_alternative<Experts>(layer.feed_forward)) layer.post_norm = layer.pre_norm;
  spec.names.mlp.post_norm = "post_mlp_layernorm";
  // Dense layers also have this tensor, which is unused.
  spec.names.ignorable.emplace_back("*.post_mlp_layernorm.weight");
  return spec;
}

static Result<ModelSpec> describe_sarvam_mla(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"scoring_func", "score_function"}});
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  share_epsilon(spec);
  TRY(const bool biased, config.boolean("moe_router_enable_expert_bias", true));
  set_choice_bias(spec, biased);
  TRY_VOID(set_shared_width(spec, config));
  return spec;
}

static Result<ModelSpec> describe_pangu_ultra(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  share_epsilon(spec);
  TRY(const bool biased, config.boolean("router_enable_expert_bias", false));
  set_choice_bias(spec, biased);
  spec.names.of<Experts>().choice_bias = "mlp.e_score_correction_bias";
  TRY(const bool sandwich, config.boolean("sandwich_norm", false));
  if (!sandwich) return spec;
  for (LayerSpec& layer : spec.layers) layer.post_norm = layer.pre_norm;
  spec.names.attention.post_norm = "post_attention_layernorm";
  spec.names.mlp.norm = "pre_mlp_layernorm";
  spec.names.mlp.post_norm = "post_mlp_layernorm";
  return spec;
}

std::span<const Family> deepseek_kin_families() {
  static constexpr Family kRows[] = {
      {"AXK1ForCausalLM", describe_axk1},
      {"PanguUltraMoEForCausalLM", describe_pangu_ultra},
      {"SarvamMLAForCausalLM", describe_sarvam_mla},
  };
  return kRows;
}

}  // namespace octavo
