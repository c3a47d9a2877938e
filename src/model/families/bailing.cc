// Ling and Ring (Ant Group, 2025): DeepSeek's experts beside plain attention whose queries, keys and values are
// one matrix. The first ones choose by softmax; version 2 by sigmoid with a learned bias, norms queries and keys,
// and turns half of each head.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// The width of the shared experts, where it is not that of the others.
Result<> set_shared_width(ModelSpec& spec, const Config& config) {
  if (!config.has("moe_shared_expert_intermediate_size")) return {};
  TRY(const int width, config.integer("moe_shared_expert_intermediate_size", {1, 1 << 20}));
  TRY(const int shared, config.integer("n_shared_experts", {0, kMaxExperts}, 0));
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward); experts && experts->shared)
      experts->shared->hidden = width * shared;
  return {};
}

}  // namespace

Result<ModelSpec> describe_bailing(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"scoring_func", "score_function"}});
  for (const char* field : {"norm_head", "multi_gate"}) TRY_VOID(refuse(config, field, true));
  TRY(ModelSpec spec, describe_dense(config, {.rotary_fraction = "partial_rotary_factor"}));
  TRY_VOID(set_rotary_dim(spec, config, spec.layers[0].attention().head_dim));
  TRY(const bool out_bias, config.boolean("use_bias", false));
  TRY(const bool qkv_bias, config.boolean("use_qkv_bias", false));
  TRY(const bool normed, config.boolean("use_qk_norm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = qkv_bias || out_bias;
    layer.attention().out_bias = out_bias;
    layer.mlp().up_bias = layer.mlp().down_bias = out_bias;
    if (!normed) continue;
    layer.attention().qk_norm = QkNorm::shared;
    layer.attention().qk_norm_spec = layer.pre_norm;
  }
  TRY(const std::string scores, config.text("scoring_func", "softmax"));
  TRY_VOID(set_deepseek_experts(
      spec, config, scores == "sigmoid" ? RouterScores::sigmoid : RouterScores::softmax));
  TRY_VOID(set_shared_width(spec, config));
  spec.predictor.reset();
  Names& names = spec.names;
  names.embedding = "word_embeddings";
  names.qkv = {"attention.query_key_value"};
  names.out = "attention.dense";
  names.q_norm = "attention.query_layernorm";
  names.k_norm = "attention.key_layernorm";
  names.choice_bias = "mlp.gate.expert_bias";
  return spec;
}

}  // namespace octavo
