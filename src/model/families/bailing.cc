// Ling and Ring (Ant Group, 2025): DeepSeek's experts, and a fused query, key and value matrix. Version 1
// selects experts by softmax. Version 2 uses sigmoid with a learned bias, norms of queries and keys, and RoPE
// on half of each head; Sarvam 30B (2026) and Param 2 (BharatGen, 2026) have the same network. Version 2.5
// (2026) has lightning attention in most layers and latent attention in the remaining layers.
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Gives the fields DeepSeek's names.
Config named(const Config& file) {
  return file.with_names({{"n_routed_experts", "num_experts"},
                          {"n_shared_experts", "num_shared_experts"},
                          {"scoring_func", "score_function"}});
}

void set_bailing_names(Names& names) {
  names.embedding.tokens = "word_embeddings";
  names.attention.qkv = {"attention.query_key_value"};
  names.attention.out = "attention.dense";
  names.attention.q_norm = "attention.query_layernorm";
  names.attention.k_norm = "attention.key_layernorm";
  names.of<Experts>().choice_bias = "mlp.gate.expert_bias";
}

}  // namespace

static Result<ModelSpec> describe_bailing(const Config& file) {
  const Config config = named(file);
  for (const char* field : {"norm_head", "multi_gate"}) TRY_VOID(refuse(config, field, true));
  TRY(ModelSpec spec, describe_dense(config, {.rotary_fraction = "partial_rotary_factor"}));
  TRY_VOID(set_rotary_dim(spec, config, spec.layers[0].attention().head_dim));
  TRY(const bool out_bias, config.boolean("use_bias", false));
  TRY(const bool qkv_bias, config.boolean("use_qkv_bias", false));
  TRY(const bool normed, config.boolean("use_qk_norm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases.qkv = qkv_bias || out_bias;
    layer.attention().biases.out = out_bias;
    layer.mlp().up_bias = layer.mlp().down_bias = out_bias;
    if (!normed) continue;
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  TRY(const std::string scores, config.text("scoring_func", "softmax"));
  TRY_VOID(set_deepseek_experts(
      spec, config, scores == "sigmoid" ? RouterScores::sigmoid : RouterScores::softmax));
  TRY_VOID(set_shared_width(spec, config));
  spec.predictor.reset();
  set_bailing_names(spec.names);
  return spec;
}

static Result<ModelSpec> describe_bailing_hybrid(const Config& file) {
  const Config config = named(file);
  for (const char* field : {"norm_head", "multi_gate", "use_bias", "use_qkv_bias"}) TRY_VOID(refuse(config, field, true));
  TRY_VOID(refuse(config, "use_qk_norm", false));
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  TRY_VOID(set_shared_width(spec, config));
  spec.predictor.reset();
  LightningAttention lightning{.heads = std::get<LatentAttention>(spec.layers[0].mixer).heads,
                               .head_dim = 0,
                               .rates = {},
                               .norm = spec.final_norm,
                               .qk_norm = spec.final_norm,
                               .rope = 1};
  TRY(lightning.head_dim, config.integer("head_dim", {2, kMaxStateDim}, spec.dim / lightning.heads));
  TRY(lightning.norm_groups, config.integer("group_norm_size", {1, lightning.heads}, 1));
  if (lightning.heads % lightning.norm_groups != 0 || lightning.inner() > kMaxGateDim)
    return invalid(
        "group_norm_size", "{}: {} heads of {} elements cannot be divided into {} groups for the norm",
        config.where("group_norm_size"), lightning.heads, lightning.head_dim, lightning.norm_groups);
  lightning.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(lightning.head_dim)));
  TRY(lightning.silu, config.boolean("linear_silu", false));
  TRY(lightning.silu, config.boolean("use_linear_silu", lightning.silu));
  TRY(const RopeSpec rope, read_rope(config, {.rotary_fraction = "partial_rotary_factor"}, lightning.head_dim,
                                     spec.max_positions));
  spec.ropes.push_back(rope);
  TRY(const bool rotates, config.boolean("linear_rope", true));
  if (!rotates) lightning.rope = -1;
  TRY(const int period, config.integer("layer_group_size", {1, 1024}, 1));
  const std::vector<float> slopes = alibi_slopes(lightning.heads, 8);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    std::get<LatentAttention>(spec.layers[i].mixer).norm = spec.final_norm;
    if ((i + 1) % static_cast<std::size_t>(period) == 0) continue;
    const double depth = spec.layers.size() > 1 ? static_cast<double>(i) / static_cast<double>(spec.layers.size() - 1) : 0;
    lightning.rates.clear();
    for (const float slope : slopes) lightning.rates.push_back(static_cast<float>(slope * (1 - depth + 1e-5)));
    spec.layers[i].mixer = lightning;
  }
  set_bailing_names(spec.names);
  Names& names = spec.names;
  for (std::string* name : {&names.of<LatentAttention>().q, &names.of<LatentAttention>().q_down,
                            &names.of<LatentAttention>().q_norm, &names.of<LatentAttention>().q_up,
                            &names.of<LatentAttention>().down, &names.of<LatentAttention>().norm,
                            &names.of<LatentAttention>().up})
    name->replace(0, std::string_view("self_attn").size(), "attention");
  names.of<LightningAttention>().in = "attention.query_key_value";
  names.of<LightningAttention>().order = QkvOrder::by_kind;
  names.of<LightningAttention>().gate = "attention.g_proj";
  names.of<LightningAttention>().norm = "attention.g_norm";
  names.of<LightningAttention>().out = "attention.dense";
  names.ignorable.emplace_back("model.mtp*");
  return spec;
}

static Result<ModelSpec> describe_param2(const Config& config) {
  TRY(ModelSpec spec, describe_bailing(config));
  if (!config.has("moe_shared_expert_intermediate_size")) return spec;
  // In Param 2, the field is the total width of all shared experts, not the width of one.
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward); experts && experts->shared) {
      TRY(experts->shared->hidden, config.integer("moe_shared_expert_intermediate_size", {1, 1 << 20}));
    }
  return spec;
}

std::span<const Family> bailing_families() {
  static constexpr Family kRows[] = {
      {"BailingMoeForCausalLM", describe_bailing},
      {"BailingMoeV2ForCausalLM", describe_bailing},
      {"BailingMoeV2_5ForCausalLM", describe_bailing_hybrid},
      {"Param2MoEForCausalLM", describe_param2},
      {"SarvamMoEForCausalLM", describe_bailing},
  };
  return kRows;
}

}  // namespace octavo
