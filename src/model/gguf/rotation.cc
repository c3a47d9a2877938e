#include "model/gguf/rotation.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <utility>

#include "model/gguf/architectures.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::int64_t kPairsMax = 2048;

Result<> add_share(GgufFields& fields) {
  TRY(const auto rotary, fields.stored("rope.dimension_count"));
  const GgufArchitecture& architecture = fields.architecture();
  if (!rotary || !(fields.head_dim() > 0) || architecture.traits.latent || architecture.name == "deepseek4")
    return {};
  for (const char* name : {"partial_rotary_factor", "rotary_pct", "rotary_share"})
    fields.set(name, share_of_head(fields, *rotary), "rope.dimension_count");
  return {};
}

Result<json::object> yarn(const GgufFields& fields, double factor, double attention) {
  TRY(const auto fast, fields.stored("rope.scaling.yarn_beta_fast"));
  TRY(const auto slow, fields.stored("rope.scaling.yarn_beta_slow"));
  // Latent attention scales the scores, not cos and sin. The file contains mscale_all_dim / 10.
  TRY(const auto tenth, fields.stored("rope.scaling.yarn_log_multiplier"));
  const bool latent = fields.architecture().traits.latent;
  json::object scaling{
      {"rope_type", "yarn"},
      {"factor", factor},
      {"beta_fast", fast.value_or(32)},
      {"beta_slow", slow.value_or(1)},
      {"truncate", fields.architecture().name != "gpt-oss"},
      {"attention_factor", latent ? 1.0 : attention * (1 + 0.1 * std::log(std::max(factor, 1.0)))}};
  if (latent) scaling["mscale_all_dim"] = 10 * tenth.value_or(0);
  return scaling;
}

Result<> add_scaling(GgufFields& fields) {
  const Gguf& gguf = fields.gguf();
  const std::string type_key = fields.key("rope.scaling.type");
  TRY(const auto stored_type, gguf.metadata.text(type_key));
  TRY(const auto factor, fields.stored("rope.scaling.factor"));
  TRY(const auto attention, fields.stored("rope.scaling.attn_factor"));
  const std::string_view type = stored_type.value_or("none");
  json::object scaling;
  if (gguf.find("rope_factors_long.weight") != nullptr) {
    TRY(scaling["long_factor"], angle_divisors(gguf, "rope_factors_long.weight"));
    TRY(scaling["short_factor"], angle_divisors(gguf, "rope_factors_short.weight"));
  } else if (gguf.find("rope_freqs.weight") != nullptr) {
    TRY(const json::array by, angle_divisors(gguf, "rope_freqs.weight"));
    scaling = {{"long_factor", by}, {"short_factor", by}};
  }
  if (!scaling.empty()) {
    scaling["rope_type"] = "longrope";
    scaling["attention_factor"] = attention.value_or(1);
  } else if (type == "linear") {
    scaling = {{"rope_type", "linear"}, {"factor", factor.value_or(1)}};
  } else if (type == "yarn") {
    TRY(scaling, yarn(fields, factor.value_or(1), attention.value_or(1)));
  } else if (type != "none") {
    return field_failure(
        "rope.scaling.type", ErrorCode::unsupported,
        "{}: {} is \"{}\", which is not supported: must be none, linear, yarn, or factors in tensors",
        fields.what(), type_key, type);
  }
  if (!scaling.empty()) fields["rope_scaling"] = std::move(scaling);
  fields["rope_parameters"] = nullptr;  // null prevents the family's defaults
  return {};
}

}  // namespace

Result<> add_rotation(GgufFields& fields) {
  TRY_VOID(add_share(fields));
  return add_scaling(fields);
}

double share_of_head(const GgufFields& fields, double rotary) {
  const double share = rotary / fields.head_dim();
  return share < 1 ? std::nextafter(share, 1.0) : share;
}

Result<json::array> angle_divisors(const Gguf& gguf, std::string_view name) {
  const StoredTensor* tensor = gguf.find(name);
  if (tensor == nullptr || tensor->dtype != DType::f32 || tensor->shape.size() != 1)
    return failure(ErrorCode::corrupt, "{}: {} must be a vector in F32", gguf.metadata.what(), name);
  if (tensor->shape[0] > kPairsMax)
    return failure(ErrorCode::corrupt, "{}: {} has {} numbers, but a head has at most {} RoPE pairs",
                   gguf.metadata.what(), name, tensor->shape[0], kPairsMax);
  json::array list;
  for (std::int64_t i = 0; i < tensor->shape[0]; ++i) list.emplace_back(double{number_at(*tensor, i)});
  return list;
}

void cut_divisors(GgufFields& fields, double pairs) {
  auto* scaling = fields.find("rope_scaling");
  if (scaling == nullptr || !scaling->is_object() || !(pairs >= 1 && pairs <= kPairsMax)) return;
  for (const char* name : {"long_factor", "short_factor"})
    if (auto* list = scaling->as_object().if_contains(name); list != nullptr && list->is_array())
      if (const auto count = static_cast<std::size_t>(pairs); list->as_array().size() > count)
        list->as_array().resize(count);
}

void set_ropes(GgufFields& fields, json::object whole, json::object sliding) {
  if (const auto* stretched = fields.find("rope_scaling"); stretched && stretched->is_object())
    whole.insert(stretched->as_object().begin(), stretched->as_object().end());
  const auto theta = fields.number("rope_theta"), local = fields.number("rope_local_base_freq");
  if (theta) whole["rope_theta"] = *theta;
  if (local || theta) sliding["rope_theta"] = local ? *local : *theta;
  for (json::object* rope : {&whole, &sliding}) rope->emplace("rope_type", "default");
  fields["rope_scaling"] = nullptr;
  fields["rope_parameters"] =
      json::object{{"full_attention", std::move(whole)}, {"sliding_attention", std::move(sliding)}};
}

}  // namespace octavo
