// Translates decoders in which all layers have the same form.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <utility>

#include "model/gguf/translate.h"

namespace octavo {

namespace json = boost::json;

// Mistral and Mixtral also have the architecture llama.
Result<> translate_llama(GgufFields& fields) {
  if (fields.number("sliding_window")) fields["architectures"] = json::array{"MistralForCausalLM"};
  if (fields.number("num_local_experts").value_or(0) > 0)
    fields["architectures"] = json::array{"MixtralForCausalLM"};
  return {};
}

// Ministral 3: a factor of queries grows with the position.
Result<> translate_mistral3(GgufFields& fields) {
  const auto* stretched = fields.find("rope_scaling");
  if (stretched == nullptr || !stretched->is_object()) return {};
  json::object rope = stretched->as_object();
  TRY(const auto growth, fields.stored("rope.scaling.yarn_log_multiplier"));
  TRY(const auto beta, fields.stored("attention.temperature_scale"));
  if (growth.value_or(0) != 0) {
    rope.erase("attention_factor");
    rope["mscale"] = 1.0;
    rope["mscale_all_dim"] = *growth;
  }
  if (const auto length = fields.number("original_max_position_embeddings"))
    rope["original_max_position_embeddings"] = *length;
  if (beta.value_or(0) != 0) rope["llama_4_scaling_beta"] = *beta;
  fields["rope_parameters"] = std::move(rope);
  fields["rope_scaling"] = nullptr;
  return {};
}

// The 13B model has ALiBi, the 7B model has RoPE. As in llama.cpp, the number of layers distinguishes them.
Result<> translate_baichuan(GgufFields& fields) {
  if (fields.number("num_hidden_layers") == 40) fields["architectures"] = json::array{"BaichuanForCausalLM"};
  return {};
}

// Both GPT-NeoX and StableLM have use_parallel_residual.
Result<> translate_neox(GgufFields& fields) {
  TRY(const auto parallel, fields.stored_boolean("use_parallel_residual"));
  if (parallel) fields["use_parallel_residual"] = *parallel;
  return {};
}

Result<> translate_exaone(GgufFields& fields) {
  fields.set("layer_norm_epsilon", fields.number("rms_norm_eps"), "attention.layer_norm_rms_epsilon");
  return {};
}

Result<> translate_exaone4(GgufFields& fields) {
  if (!fields.number("sliding_window")) fields["sliding_window"] = nullptr;
  return {};
}

Result<> translate_orion(GgufFields& fields) {
  fields.set("rms_norm_eps", fields.number("layer_norm_eps"), "attention.layer_norm_epsilon");
  return {};
}

// Files of MiniCPM3, and older files of MiniCPM, lack these fields. The values are those of the published
// models.
Result<> translate_minicpm(GgufFields& fields) {
  const double layers = fields.number("num_hidden_layers").value_or(0),
               dim = fields.number("hidden_size").value_or(0);
  const auto embedding = fields.number("embedding_multiplier"),
             residual = fields.number("residual_multiplier"), logits = fields.number("logits_scaling");
  fields.set("scale_emb", embedding.value_or(12), "embedding_scale");
  fields.set("scale_depth", residual ? *residual * std::sqrt(layers) : 1.4, "residual_scale");
  fields.set("dim_model_base", logits.value_or(0) != 0 ? dim / *logits : 256.0, "logit_scale");
  return {};
}

Result<> translate_falcon(GgufFields& fields) {
  const bool two_norms = fields.gguf().find("blk.0.attn_norm_2.weight") != nullptr;
  fields["new_decoder_architecture"] = two_norms || fields.number("num_kv_heads").value_or(1) > 1;
  fields["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
  return {};
}

Result<> translate_starcoder(GgufFields& fields) {
  fields["multi_query"] = fields.number("num_kv_heads").value_or(1) == 1;
  return {};
}

Result<> translate_mpt(GgufFields& fields) {
  TRY(const auto most, fields.stored("attention.max_alibi_bias"));
  json::object attention{{"alibi", most.value_or(8) > 0}, {"alibi_bias_max", most.value_or(8)}};
  if (const auto clip = fields.number("clip_qkv")) attention["clip_qkv"] = *clip;
  fields["attn_config"] = std::move(attention);
  return {};
}

}  // namespace octavo
