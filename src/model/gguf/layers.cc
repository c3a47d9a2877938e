// Translates decoders whose layers differ in dimensions or sliding windows.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <tuple>
#include <utility>

#include "model/gguf/rotation.h"
#include "model/gguf/translate.h"

namespace octavo {

namespace json = boost::json;

std::size_t first_layer(std::span<const double> slides, bool sliding) {
  const auto found = std::ranges::find_if(slides, [=](double one) { return (one != 0) == sliding; });
  return static_cast<std::size_t>(found - slides.begin());
}

Result<> add_windows(GgufFields& fields) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const std::string pattern = fields.key(kPattern);
  const GgufMetadata& metadata = fields.gguf().metadata;
  if (!metadata.is_list(pattern)) return fields.copy({{kPattern, "sliding_window_pattern"}});
  TRY(const std::vector<double> sliding, metadata.numbers(pattern));
  if (sliding.size() > kGgufLayersMax)
    return field_failure(pattern, ErrorCode::corrupt,
                         "{}: {} has {} items, but a network may have at most {} layers", fields.what(),
                         pattern, sliding.size(), kGgufLayersMax);
  // number of layers, not counting multi-token prediction layers
  const double own = fields.number("num_hidden_layers").value_or(0);
  json::array types;
  for (std::size_t i = 0; i < sliding.size() && static_cast<double>(i) < own; ++i)
    types.emplace_back(sliding[i] != 0 ? "sliding_attention" : "full_attention");
  fields["layer_types"] = std::move(types);
  return {};
}

// A layer with 0 heads has no attention; a layer with width 0 has no MLP.
Result<> translate_deci(GgufFields& fields) {
  TRY(const std::int64_t layers, fields.layer_count("block_count"));
  json::array blocks;
  for (std::size_t i = 0; std::cmp_less(i, layers); ++i) {
    const double heads = fields.of_layer(kGgufHeads, i, "num_attention_heads").value_or(0);
    const double key_heads = fields.of_layer(kGgufKeyHeads, i, "num_key_value_heads").value_or(heads);
    const double width = fields.of_layer(kGgufHidden, i, "intermediate_size").value_or(0);
    json::object attention{{"n_heads_in_group", heads / key_heads}}, mlp{{"intermediate_size", width}};
    if (key_heads == 0) attention = {{"replace_with_linear", true}};
    if (heads == 0) attention = {{"no_op", true}};
    if (width == 0) mlp = {{"no_op", true}};
    blocks.push_back({{"attention", std::move(attention)}, {"ffn", std::move(mlp)}});
  }
  fields["block_configs"] = std::move(blocks);
  return {};
}

Result<> translate_granite_windows(GgufFields& fields) {
  if (fields.number("num_local_experts").value_or(0) > 0)
    fields["architectures"] = json::array{"GraniteMoeSWAForCausalLM"};
  if (!fields.number("shared_intermediate_size")) fields["shared_intermediate_size"] = 0.0;
  constexpr std::string_view kPattern = "attention.rope_pattern";
  if (!fields.gguf().metadata.is_list(fields.key(kPattern))) return {};
  TRY(const std::vector<double> rotary, fields.layer_numbers(kPattern));
  json::array bases;
  for (const double rotated : rotary)
    bases.emplace_back(rotated != 0 ? fields.number("rope_theta").value_or(10000) : 0.0);
  fields["layer_rope_theta"] = std::move(bases);
  return {};
}

Result<> translate_mellum(GgufFields& fields) {
  set_ropes(fields);
  return {};
}

// Layers with sliding windows have another number of KV heads. The weights of the selected experts are always
// divided by their sum.
Result<> translate_mimo2(GgufFields& fields) {
  TRY(const std::vector<double> slides, fields.layer_numbers("attention.sliding_window_pattern"));
  TRY(const auto value_dim, fields.stored("attention.value_length"));
  TRY(const auto scale, fields.stored("attention.value_scale"));
  const auto key_heads = [&](bool sliding) {
    return fields.of_layer(kGgufKeyHeads, first_layer(slides, sliding), "num_key_value_heads");
  };
  const auto full = key_heads(false), local = key_heads(true);
  fields.set("num_key_value_heads", full, kGgufKeyHeads);
  fields.set("swa_num_key_value_heads", local, kGgufKeyHeads);
  fields.set("v_head_dim", value_dim.value_or(fields.head_dim()), "attention.value_length");
  fields.set("attention_value_scale", scale.value_or(1), "attention.value_scale");
  fields["add_swa_attention_sink_bias"] = fields.some_have("attn_sinks.weight");
  set_ropes(fields);
  return add_expert_layers(fields);
}

// The RoPE base of layers with sliding windows has another name.
Result<> translate_plamo3(GgufFields& fields) {
  const auto local = fields.number("rope_local_base_freq");
  fields.set("rope_local_theta", local ? local : fields.number("rope_theta"), "rope.freq_base_swa");
  return {};
}

// Layers with sliding windows have another number of heads, and RoPE rotates complete heads. In other layers,
// RoPE rotates half of each head.
Result<> translate_step35(GgufFields& fields) {
  TRY(const std::vector<double> slides, fields.layer_numbers("attention.sliding_window_pattern"));
  TRY(const auto rotary, fields.stored("rope.dimension_count"));
  TRY(const auto local_rotary, fields.stored("rope.dimension_count_swa"));
  const std::size_t full = first_layer(slides, false), local = first_layer(slides, true);
  json::object other;
  for (const auto& [stored, name, others_name] :
       {std::tuple(kGgufHeads, "num_attention_heads", "num_attention_heads"),
        std::tuple(kGgufKeyHeads, "num_key_value_heads", "num_attention_groups")}) {
    if (const auto heads = fields.of_layer(stored, local, name)) other[others_name] = *heads;
    fields.set(name, fields.of_layer(stored, full, name), stored);
  }
  fields["attention_other_setting"] = std::move(other);
  fields["yarn_only_types"] = json::array{"full_attention"};
  fields["use_head_wise_attn_gate"] = fields.some_have("attn_gate.weight");
  fields.set("share_expert_dim", fields.number("shared_expert_intermediate_size"),
             "expert_shared_feed_forward_length");
  fields.set("moe_router_scaling_factor", fields.number("routed_scaling_factor").value_or(1),
             "expert_weights_scale");
  if (const auto* normed = fields.find("norm_topk_prob")) {
    const json::value same = *normed;
    fields["norm_expert_weight"] = same;
  }
  for (const auto& [stored, name] : {std::pair("swiglu_clamp_exp", "swiglu_limits"),
                                     std::pair("swiglu_clamp_shexp", "swiglu_limits_shared")})
    if (fields.gguf().metadata.is_list(fields.key(stored))) {
      TRY(const std::vector<double> limits, fields.layer_numbers(stored));
      fields[name] = json::array(limits.begin(), limits.end());
    }
  const double all = rotary.value_or(fields.head_dim());
  cut_divisors(fields, all / 4);
  set_ropes(fields, {{"partial_rotary_factor", share_of_head(fields, all / 2)}},
            {{"partial_rotary_factor", share_of_head(fields, local_rotary.value_or(all))}});
  return add_expert_layers(fields);
}

}  // namespace octavo
