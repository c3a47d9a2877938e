// Translates networks with experts.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <utility>

#include "model/gguf/translate.h"

namespace octavo {
namespace {

namespace json = boost::json;

// Sets the scoring function: softmax or sigmoid. The default is sigmoid.
Result<> add_scores(GgufFields& fields, std::string_view field) {
  constexpr double kSoftmax = 1;
  TRY(const auto scores, fields.stored("expert_gating_func"));
  fields[field] = scores == kSoftmax ? "softmax" : "sigmoid";
  return {};
}

}  // namespace

Result<> add_expert_layers(GgufFields& fields) {
  TRY(const std::int64_t layers, fields.layer_count("block_count"));
  // number of layers, not counting multi-token prediction layers
  const double own = fields.number("num_hidden_layers").value_or(0);
  json::array kinds;
  for (std::int64_t i = 0; i < layers && static_cast<double>(i) < own; ++i)
    kinds.emplace_back(fields.gguf().find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr ? "sparse"
                                                                                                   : "dense");
  fields["mlp_layer_types"] = std::move(kinds);
  return {};
}

// Trinity. The file does not say that embeddings are scaled, and that every fourth layer has full attention.
Result<> translate_afmoe(GgufFields& fields) {
  const auto* normed = fields.find("norm_topk_prob");
  fields["route_norm"] = normed != nullptr && normed->is_bool() && normed->as_bool();
  fields.set("route_scale", fields.number("routed_scaling_factor").value_or(1), "expert_weights_scale");
  fields["mup_enabled"] = true;
  fields["global_attn_every_n_layers"] = 4;
  return {};
}

Result<> translate_bailing_v2(GgufFields& fields) { return add_scores(fields, "score_function"); }

// The width of experts is in the field that other families use for dense layers.
Result<> translate_cohere2_moe(GgufFields& fields) {
  fields.set("prefix_dense_intermediate_size", fields.number("intermediate_size"), kGgufHidden);
  fields.set("intermediate_size", fields.number("moe_intermediate_size"), "expert_feed_forward_length");
  return add_scores(fields, "expert_selection_fn");
}

// Half of the fields in DBRX's config.json are in nested objects.
Result<> translate_dbrx(GgufFields& fields) {
  const auto made = [&](std::string_view field) {
    const auto* value = fields.find(field);
    return value != nullptr ? *value : json::value();
  };
  const auto heads = fields.number("num_key_value_heads");
  fields["attn_config"] = {{"kv_n_heads", heads ? json::value(*heads) : made("n_heads")},
                           {"clip_qkv", made("clip_qkv")}};
  fields["ffn_config"] = {{"moe_num_experts", made("moe_num_experts")},
                          {"moe_top_k", made("moe_k")},
                          {"ffn_hidden_size", made("ffn_hidden_size")}};
  return {};
}

// The file contains the total width of the shared experts, and the number of experts as a list.
Result<> translate_hunyuan_v3(GgufFields& fields) {
  const auto each = fields.number("moe_intermediate_size"),
             shared = fields.number("shared_intermediate_size");
  if (each.value_or(0) > 0 && shared)
    fields.set("num_shared_experts", *shared / *each, "expert_shared_feed_forward_length");
  if (const auto* normed = fields.find("norm_topk_prob")) {
    const json::value same = *normed;
    fields["route_norm"] = same;
  }
  fields.set("router_scaling_factor", fields.number("routed_scaling_factor").value_or(1),
             "expert_weights_scale");
  return add_expert_layers(fields);
}

// The file has no keys for chunked attention and for the factor of queries. The values are those of the
// published models.
Result<> translate_llama4(GgufFields& fields) {
  constexpr double kMostExperts = 128;  // Maverick has 128 experts, and no norms of queries and keys
  fields["intermediate_size_mlp"] = fields.number("intermediate_size").value_or(0);
  fields.set("intermediate_size", fields.number("moe_intermediate_size"), "expert_feed_forward_length");
  fields["use_qk_norm"] = fields.number("num_local_experts") != kMostExperts;
  TRY(const auto chunk, fields.stored("attention.sliding_window"));
  if (chunk == 0)
    return field_failure("attention.sliding_window", ErrorCode::unsupported,
                         "{}: {} is 0, but attention without chunks is not supported for this model",
                         fields.what(), fields.key("attention.sliding_window"));
  return {};
}

}  // namespace octavo
