// Translates networks in which some or all layers are recurrent.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cstdint>
#include <utility>

#include "model/gguf/architectures.h"
#include "model/gguf/translate.h"

namespace octavo {
namespace {

namespace json = boost::json;

// Sets the fields of Mamba mixers. `head` is the family's field for the size of a head.
Result<> add_mixers(GgufFields& fields, std::string_view head = "mamba_d_head") {
  const auto inner = fields.number("mamba_d_ssm");
  const auto dim = fields.number("hidden_size"), heads = fields.number("mamba_n_heads");
  if (!inner) return {};
  if (dim.value_or(0) > 0)
    for (const char* expand : {"mamba_expand", "expand"}) fields.set(expand, *inner / *dim, "ssm.inner_size");
  if (heads.value_or(0) > 0)
    for (const std::string_view size : {std::string_view("mamba_head_dim"), head})
      fields.set(size, *inner / *heads, "ssm.inner_size");
  for (const char* bias : {"mamba_conv_bias", "use_conv_bias"})
    fields[bias] = fields.some_have("ssm_conv1d.bias");
  for (const char* bias : {"mamba_proj_bias", "use_bias"}) fields[bias] = fields.some_have("ssm_in.bias");
  if (const auto eps = fields.number("rms_norm_eps")) fields["layer_norm_epsilon"] = *eps;
  TRY(const auto normed, fields.stored_boolean("ssm.dt_b_c_rms"));
  if (normed.value_or(false)) fields["architectures"] = json::array{"FalconMambaForCausalLM"};
  fields["mamba_rms_norm"] = fields.some_have("ssm_norm.weight");
  fields["mamba_norm_before_gate"] = false;
  return {};
}

Result<> add_recurrent_layers(GgufFields& fields) {
  constexpr std::string_view kLayers = "attention.recurrent_layers";
  if (!fields.gguf().metadata.is_list(fields.key(kLayers))) return {};
  TRY(std::vector<double> recurrent, fields.layer_numbers(kLayers));
  // Prediction layers have the last indices, and are not counted here.
  const double layers = fields.number("num_hidden_layers").value_or(0);
  if (layers > 0 && static_cast<double>(recurrent.size()) > layers)
    recurrent.resize(static_cast<std::size_t>(layers));
  json::array types;
  for (const double one : recurrent) types.emplace_back(one != 0 ? "linear_attention" : "full_attention");
  fields["layer_types"] = std::move(types);
  return {};
}

}  // namespace

Result<> add_kinds(GgufFields& fields, bool halves) {
  TRY(const std::int64_t blocks, fields.layer_count("block_count"));
  TRY(const std::int64_t predictors, fields.layer_count("nextn_predict_layers"));
  json::array kinds;
  // Prediction layers have the last indices, and are skipped here.
  for (std::int64_t i = 0; i < blocks - predictors; ++i) {
    const auto layer = static_cast<std::size_t>(i);
    const bool attention = fields.of_layer(kGgufKeyHeads, layer, "num_key_value_heads").value_or(0) > 0;
    const bool wide = halves && fields.of_layer(kGgufHidden, layer, "intermediate_size").value_or(0) > 0;
    const bool experts = fields.gguf().find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
    kinds.emplace_back(attention         ? "full_attention"
                       : wide && experts ? "moe"
                       : wide            ? "mlp"
                                         : "linear_attention");
  }
  fields["layer_types"] = std::move(kinds);
  return {};
}

Result<> translate_mamba(GgufFields& fields) { return add_mixers(fields); }

Result<> translate_mamba2(GgufFields& fields) { return add_mixers(fields, "head_dim"); }

Result<> translate_nemotron_h(GgufFields& fields) {
  if (!fields.number("mamba_d_ssm")) return {};
  TRY_VOID(add_mixers(fields));
  return add_kinds(fields, true);
}

Result<> translate_granite_hybrid(GgufFields& fields) {
  if (!fields.number("mamba_d_ssm")) return {};
  TRY_VOID(add_mixers(fields));
  TRY(const auto tuned, fields.stored_boolean("rope.scaling.finetuned"));
  fields["position_embedding_type"] = tuned.value_or(true) ? "rope" : "nope";
  if (!fields.number("num_local_experts")) fields["num_local_experts"] = 0.0;
  if (!fields.number("shared_intermediate_size"))
    fields.set("shared_intermediate_size", fields.number("intermediate_size"), kGgufHidden);
  return add_kinds(fields);
}

// Attention layers and expert layers each have a period and an offset.
Result<> translate_jamba(GgufFields& fields) {
  TRY_VOID(add_mixers(fields));
  const std::vector<double>* heads = fields.list(kGgufKeyHeads);
  if (!fields.number("mamba_d_ssm") || heads == nullptr) return {};
  const auto layers = std::ssize(*heads);
  const auto period_of = [&](std::string_view what, std::string_view prefix,
                             auto&& is_attention) -> Result<> {
    std::int64_t first = 0, period = layers + 1;
    while (first < layers && !is_attention(first)) ++first;
    for (std::int64_t i = first + 1; i < layers && period > layers; ++i)
      if (is_attention(i)) period = i - first;
    for (std::int64_t i = 0; i < layers; ++i)
      if (is_attention(i) != (i % period == first))
        return failure(ErrorCode::unsupported, "{}: layer {}: layers with {} must repeat with a fixed period",
                       fields.what(), i, what);
    fields[fmt::format("{}_layer_period", prefix)] = static_cast<double>(period);
    fields[fmt::format("{}_layer_offset", prefix)] = static_cast<double>(first);
    return {};
  };
  TRY_VOID(period_of("attention", "attn",
                     [&](std::int64_t i) { return (*heads)[static_cast<std::size_t>(i)] != 0; }));
  return period_of("experts", "expert", [&](std::int64_t i) {
    return fields.gguf().find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
  });
}

// Layers with short convolutions have 0 KV heads.
Result<> translate_lfm2(GgufFields& fields) {
  fields["block_auto_adjust_ff_dim"] = false;  // the file contains the adjusted width
  fields["conv_bias"] = fields.gguf().find("blk.0.shortconv.conv.bias") != nullptr;
  const std::vector<double>* heads = fields.list(kGgufKeyHeads);
  if (heads == nullptr) return {};
  json::array kinds;
  for (const double each : *heads) {
    if (each != 0 && each != fields.number("num_key_value_heads"))
      return field_failure(kGgufKeyHeads, ErrorCode::unsupported, "{}: {} differs from layer to layer",
                           fields.what(), fields.key(kGgufKeyHeads));
    kinds.emplace_back(each == 0 ? "conv" : "full_attention");
  }
  fields["layer_types"] = std::move(kinds);
  return {};
}

Result<> translate_qwen_delta(GgufFields& fields) {
  TRY(const auto inner, fields.stored("ssm.inner_size"));
  if (const auto heads = fields.number("linear_num_value_heads"); inner && heads.value_or(0) > 0)
    fields.set("linear_value_head_dim", *inner / *heads, "ssm.inner_size");
  return add_recurrent_layers(fields);
}

// MiniMax-01: one number is the factor of all residuals. The factors of the outputs of mixers and MLPs are 1.
Result<> translate_minimax(GgufFields& fields) {
  TRY(const auto residual, fields.stored("residual_scale"));
  for (const char* half : {"full_attn", "linear_attn", "mlp"}) {
    fields.set(fmt::format("{}_alpha_factor", half), residual.value_or(1), "residual_scale");
    fields[fmt::format("{}_beta_factor", half)] = 1.0;
  }
  if (!fields.gguf().metadata.is_list(fields.key("attention.recurrent_layers"))) {
    const auto interval = static_cast<std::int64_t>(fields.number("full_attention_interval").value_or(8));
    json::array types;
    for (std::int64_t i = 1; static_cast<double>(i) <= fields.number("num_hidden_layers").value_or(0); ++i)
      types.emplace_back(i % std::max<std::int64_t>(interval, 1) == 0 ? "full_attention"
                                                                      : "linear_attention");
    fields["layer_types"] = std::move(types);
  }
  return add_recurrent_layers(fields);
}

Result<> translate_rwkv7(GgufFields& fields) {
  fields["fuse_norm"] = false;
  return fields.copy({{"wkv.head_size", "head_dim"},
                      {"attention.decay_lora_rank", "decay_low_rank_dim"},
                      {"attention.iclr_lora_rank", "a_low_rank_dim"},
                      {"attention.value_residual_mix_lora_rank", "v_low_rank_dim"},
                      {"attention.gate_lora_rank", "gate_low_rank_dim"}});
}

}  // namespace octavo
