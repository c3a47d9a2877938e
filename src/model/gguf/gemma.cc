// Translates Gemma.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "model/gguf/rotation.h"
#include "model/gguf/translate.h"

namespace octavo {
namespace {

namespace json = boost::json;

// In all models except 27B, the scale of scores depends on head_dim. The number of layers identifies the 27B
// models.
void add_score_scale(GgufFields& fields, double layers_of_largest) {
  const bool largest = fields.number("num_hidden_layers") == layers_of_largest;
  fields["query_pre_attn_scalar"] =
      largest ? fields.number("hidden_size").value_or(0) / fields.number("num_attention_heads").value_or(1)
              : fields.head_dim();
}

void add_layer_inputs(GgufFields& fields) {
  if (const StoredTensor* table = fields.gguf().find("per_layer_token_embd.weight"); table != nullptr)
    fields.set_from("vocab_size_per_layer_input", static_cast<double>(table->shape[0]),
                    "the rows of per_layer_token_embd.weight");
  for (const char* field : {"hidden_size_per_layer_input", "num_kv_shared_layers"})
    if (!fields.number(field)) fields[field] = 0.0;
}

// A pair is not rotated if its frequency is divided by a huge number.
Result<> add_gemma4_rotation(GgufFields& fields) {
  constexpr double kHuge = 1e20;
  fields["rope_scaling"] = nullptr;
  json::object full{{"rope_type", "proportional"}}, slides{{"rope_type", "default"}};
  if (fields.gguf().find("rope_freqs.weight") != nullptr) {
    TRY(const json::array by, angle_divisors(fields.gguf(), "rope_freqs.weight"));
    double rotary = 0;
    for (std::size_t i = 0; i < by.size(); ++i) {
      const double one = by[i].as_double();
      if (one == 1 && rotary == static_cast<double>(i))
        ++rotary;
      else if (one < kHuge)
        return failure(ErrorCode::unsupported,
                       "{}: rope_freqs.weight divides the angle of pair {} by {}, but must be 1 for the "
                       "first pairs and at least 1e20 for the others",
                       fields.what(), i, one);
    }
    full["partial_rotary_factor"] = rotary / static_cast<double>(by.size());
  }
  if (const auto theta = fields.number("rope_theta")) full["rope_theta"] = *theta;
  slides["rope_theta"] = fields.number("rope_local_base_freq").value_or(10000.0);
  fields["rope_parameters"] =
      json::object{{"full_attention", std::move(full)}, {"sliding_attention", std::move(slides)}};
  return {};
}

}  // namespace

Result<> translate_gemma2(GgufFields& fields) {
  add_score_scale(fields, 46);
  return {};
}

Result<> translate_gemma3(GgufFields& fields) {
  add_score_scale(fields, 62);
  return {};
}

Result<> translate_gemma_embedding(GgufFields& fields) {
  fields["use_bidirectional_attention"] = true;
  return translate_gemma3(fields);
}

Result<> translate_gemma3n(GgufFields& fields) {
  add_layer_inputs(fields);
  if (const auto* widths = fields.list(kGgufHidden))
    fields["intermediate_size"] = json::array(widths->begin(), widths->end());
  fields["altup_correct_scale"] = fields.gguf().find("blk.0.altup_correct_scale.weight") != nullptr;
  if (const StoredTensor* left = fields.gguf().find("blk.0.laurel_l.weight"); left != nullptr)
    fields.set_from("laurel_rank", static_cast<double>(left->shape[0]), "the rows of blk.0.laurel_l.weight");
  // The file has the gates' threshold, in standard deviations above the mean. The field in config.json is the
  // fraction of gates below the threshold.
  constexpr std::string_view kSparsity = "activation_sparsity_scale";
  if (!fields.gguf().metadata.is_list(fields.key(kSparsity))) return {};
  TRY(const std::vector<double> deviations, fields.layer_numbers(kSparsity));
  json::array shares;
  for (const double each : deviations) shares.emplace_back(0.5 * std::erfc(-each / std::numbers::sqrt2));
  fields["activation_sparsity_pattern"] = std::move(shares);
  return {};
}

// Layers with full attention have another head size, and RoPE rotates only a part of each head.
Result<> translate_gemma4(GgufFields& fields) {
  add_layer_inputs(fields);
  TRY(const auto full_dim, fields.stored("attention.key_length"));
  TRY(const auto dim, fields.stored("attention.key_length_swa"));
  TRY(const auto rotary, fields.stored("rope.dimension_count_swa"));
  TRY(const std::vector<double> slides, fields.layer_numbers("attention.sliding_window_pattern"));
  const std::size_t full = first_layer(slides, false);
  if (rotary && rotary != dim)
    return field_failure("rope.dimension_count_swa", ErrorCode::unsupported,
                         "{}: {} is {}, but in layers with windows RoPE must rotate the whole head",
                         fields.what(), fields.key("rope.dimension_count_swa"), *rotary);
  json::object own;
  if (full_dim) own["head_dim"] = *full_dim;
  if (const auto heads = fields.of_layer(kGgufKeyHeads, full, "num_key_value_heads"))
    own["num_key_value_heads"] = *heads;
  fields["per_layer_config"] = json::object{{fmt::format("{}", full), std::move(own)}};
  fields.set("head_dim", dim, "attention.key_length_swa");
  fields.set("num_key_value_heads",
             fields.of_layer(kGgufKeyHeads, first_layer(slides, true), "num_key_value_heads"), kGgufKeyHeads);
  fields["attention_k_eq_v"] = fields.gguf().find(fmt::format("blk.{}.attn_v.weight", full)) == nullptr;
  if (const auto* widths = fields.list(kGgufHidden)) {
    const auto [least, most] = std::ranges::minmax(*widths);
    fields["intermediate_size"] = least;
    fields["use_double_wide_mlp"] = most == 2 * least;
  }
  fields["enable_moe_block"] = fields.number("num_experts").value_or(0) > 0;
  fields.set("top_k_experts", fields.number("num_experts_per_tok"), "expert_used_count");
  return add_gemma4_rotation(fields);
}

}  // namespace octavo
