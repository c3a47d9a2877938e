// Translates networks with latent attention (MLA), or with compressed entries.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

#include "model/gguf/translate.h"

namespace octavo {
namespace {

namespace json = boost::json;

Result<> add_latents(GgufFields& fields) {
  TRY(const auto q_dim, fields.stored("attention.key_length_mla"));
  TRY(const auto value_dim, fields.stored("attention.value_length_mla"));
  TRY(const auto older_q_dim, fields.stored("attention.key_length"));
  TRY(const auto older_value_dim, fields.stored("attention.value_length"));
  TRY(const auto rotary, fields.stored("rope.dimension_count"));
  fields.set("qk_rope_head_dim", rotary, "rope.dimension_count");
  const auto whole = q_dim ? q_dim : older_q_dim;
  if (whole && rotary) fields.set("qk_nope_head_dim", *whole - *rotary, "attention.key_length_mla");
  fields.set("v_head_dim", value_dim ? value_dim : older_value_dim, "attention.value_length_mla");
  fields["num_key_value_heads"] =
      nullptr;  // files contain 1, the shared latent; null: as many as query heads
  if (!fields.number("q_lora_rank")) fields["q_lora_rank"] = nullptr;
  if (!fields.number("routed_scaling_factor")) fields["routed_scaling_factor"] = 1.0;
  if (fields.number("n_routed_experts").value_or(0) == 0) fields["n_routed_experts"] = nullptr;
  return {};
}

Result<> add_indexer(GgufFields& fields) {
  return fields.copy({{"attention.indexer.head_count", "index_n_heads"},
                      {"attention.indexer.key_length", "index_head_dim"},
                      {"attention.indexer.top_k", "index_topk"}});
}

// Mistral 4 and Mistral Large 3: a factor of queries grows with the position.
void be_mistral4(GgufFields& fields, double growth) {
  fields["architectures"] = json::array{"Mistral4ForCausalLM"};
  fields["rope_parameters"] =
      json::object{{"llama_4_scaling_beta", growth},
                   {"original_max_position_embeddings",
                    fields.number("original_max_position_embeddings")
                        .value_or(fields.number("max_position_embeddings").value_or(0))}};
}

}  // namespace

// If the file does not name the scoring function of the router, the function depends on the model's size, as
// in llama.cpp.
Result<> translate_deepseek2(GgufFields& fields) {
  TRY_VOID(add_latents(fields));
  constexpr double kSigmoid = 2;
  const double layers = fields.number("num_hidden_layers").value_or(0);
  const bool lite_glm = (layers == 47 || layers == 48) && fields.number("vocab_size") == 154880;
  TRY(const auto scores, fields.stored("expert_gating_func"));
  TRY(const auto growth, fields.stored("attention.temperature_scale"));
  if (growth.value_or(0) != 0) {
    be_mistral4(fields, *growth);
    return {};
  }
  if (scores.value_or(0) == 0 ? lite_glm : *scores == kSigmoid) return {};
  fields["architectures"] = json::array{"DeepseekV2ForCausalLM"};
  if (fields.number("n_group").value_or(1) > 1) fields["topk_method"] = "group_limited_greedy";
  return {};
}

Result<> translate_mistral4(GgufFields& fields) {
  TRY_VOID(add_latents(fields));
  TRY(const auto growth, fields.stored("attention.temperature_scale"));
  be_mistral4(fields, growth.value_or(0));
  return {};
}

Result<> translate_glm_dsa(GgufFields& fields) {
  TRY_VOID(add_latents(fields));
  return add_indexer(fields);
}

Result<> translate_minicpm3(GgufFields& fields) {
  TRY_VOID(add_latents(fields));
  return translate_minicpm(fields);
}

// Layers with KV heads have latent attention, all others Kimi delta attention.
Result<> translate_kimi_linear(GgufFields& fields) {
  TRY_VOID(add_latents(fields));
  TRY_VOID(fields.copy({{"kda.head_dim", "linear_head_dim"}}));
  fields.set("linear_num_heads", fields.number("num_attention_heads"), kGgufHeads);
  return add_kinds(fields);
}

Result<> translate_deepseek4(GgufFields& fields) {
  TRY_VOID(fields.copy({{"attention.output_group_count", "o_groups"},
                        {"attention.output_lora_rank", "o_lora_rank"},
                        {"attention.compress_rope_freq_base", "compress_rope_theta"},
                        {"rope.dimension_count", "qk_rope_head_dim"},
                        {"hash_layer_count", "num_hash_layers"},
                        {"swiglu_clamp_exp", "swiglu_limit"},
                        {"hyper_connection.count", "hc_mult"},
                        {"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
                        {"hyper_connection.epsilon", "hc_eps"}}));
  TRY(const std::vector<double> rates, fields.layer_numbers("attention.compress_ratios"));
  fields["compress_ratios"] = json::array(rates.begin(), rates.end());
  return add_indexer(fields);
}

}  // namespace octavo
