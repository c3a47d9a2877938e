#include "model/gguf/config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "model/gguf/rotation.h"
#include "model/gguf/translate.h"

namespace octavo {
namespace {

namespace json = boost::json;

// A metadata key, and its field in config.json, which has a different name in each family.
struct Key {
  std::string_view name;  // without the architecture's prefix
  std::array<std::string_view, 6> fields;
  // true: the key is required, unless other keys imply its value. The family's default must not be used.
  bool of_shape = false;
};
constexpr Key kKeys[] = {
    {"embedding_length", {"hidden_size", "n_embd", "d_model"}, true},
    {"block_count", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, true},
    {kGgufHeads, {"num_attention_heads", "n_head", "n_heads"}, true},
    {kGgufKeyHeads, {"num_key_value_heads", "num_kv_heads"}, true},
    {"attention.key_length", {"head_dim"}, true},
    {kGgufHidden, {"intermediate_size", "n_inner", "ffn_hidden_size"}, true},
    {"context_length",
     {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"},
     true},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"}},
    {"attention.shared_kv_layers", {"num_kv_shared_layers"}},
    {"embedding_length_per_layer_input", {"hidden_size_per_layer_input"}},
    {"altup.num_inputs", {"altup_num_inputs"}},
    {"altup.active_idx", {"altup_active_idx"}},
    {"attention.q_lora_rank", {"q_lora_rank"}},
    {"attention.kv_lora_rank", {"kv_lora_rank"}},
    {"shortconv.l_cache", {"conv_L_cache"}},
    {"ssm.conv_kernel", {"linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"}},
    {"ssm.state_size", {"linear_key_head_dim", "mamba_d_state", "state_size", "ssm_state_size"}},
    {"ssm.group_count", {"linear_num_key_heads", "mamba_n_groups", "n_groups"}},
    {"ssm.time_step_rank",
     {"linear_num_value_heads", "mamba_n_heads", "mamba_num_heads", "num_heads", "time_step_rank",
      "mamba_dt_rank"}},
    {"ssm.inner_size", {"mamba_d_ssm"}},
    {"full_attention_interval", {"full_attention_interval"}},
    {"attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}},
    {"attention.clamp_kqv", {"clip_qkv"}},
    {"rope.freq_base", {"rope_theta", "rotary_emb_base"}},
    {"rope.freq_base_swa", {"rope_local_base_freq"}},
    {"rope.scaling.original_context_length", {"original_max_position_embeddings"}},
    {"attention.sliding_window", {"sliding_window"}},
    {"attn_logit_softcapping", {"attn_logit_softcapping"}},
    {"final_logit_softcapping", {"final_logit_softcapping"}},
    {"attention.scale", {"attention_multiplier"}},
    {"embedding_scale", {"embedding_multiplier"}},
    {"residual_scale", {"residual_multiplier"}},
    {"logit_scale", {"logits_scaling", "logit_scale"}},
    {"expert_count", {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}},
    {"expert_used_count", {"num_experts_per_tok", "moe_k", "moe_topk"}},
    {"expert_feed_forward_length", {"moe_intermediate_size"}},
    {"expert_shared_count", {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}},
    {"expert_shared_feed_forward_length",
     {"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"}},
    {"moe_latent_size", {"moe_latent_size"}},
    {"expert_group_count", {"n_group"}},
    {"expert_group_used_count", {"topk_group"}},
    {"expert_weights_scale", {"routed_scaling_factor"}},
    {"leading_dense_block_count", {"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}},
    {"interleave_moe_layer_step", {"moe_layer_interval", "interleave_moe_layer_step"}},
};

// If the value is a list, the field becomes the largest number.
Result<> add_key(GgufFields& fields, const Key& key) {
  const bool may_be_list = fields.architecture().traits.lists &&
                           (key.name == kGgufHeads || key.name == kGgufKeyHeads || key.name == kGgufHidden);
  std::optional<double> value;
  if (may_be_list && fields.gguf().metadata.is_list(fields.key(key.name))) {
    TRY(value, fields.keep_list(key.name));
  } else {
    TRY(value, fields.stored(key.name));
  }
  for (const std::string_view field : key.fields)
    if (!field.empty()) fields.set(field, value, key.name);
  return {};
}

// If the file does not say whether the weights of selected experts are divided by their sum, llama.cpp's rule
// for the architecture applies.
Result<> add_experts(GgufFields& fields) {
  TRY(const auto normed, fields.stored_boolean("expert_weights_norm"));
  const GgufTraits& traits = fields.architecture().traits;
  if (normed || traits.experts_normed || traits.latent)
    fields["norm_topk_prob"] = normed.value_or(traits.experts_normed);
  TRY(const std::int64_t predictors, fields.layer_count("nextn_predict_layers"));
  fields["num_nextn_predict_layers"] = predictors;
  const auto layers = fields.number("num_hidden_layers");
  // DeepSeek-V4's files always have the number of prediction layers, even if the layers are missing.
  if (fields.architecture().name == "deepseek4" && !fields.some_have("nextn.eh_proj.weight")) return {};
  if (layers) fields["num_hidden_layers"] = *layers - static_cast<double>(predictors);
  return {};
}

Result<> add_vocabulary(GgufFields& fields) {
  const StoredTensor* embedding = fields.gguf().find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    return failure(ErrorCode::corrupt, "{}: token_embd.weight is missing or is not a matrix", fields.what());
  fields.set_from("vocab_size", static_cast<double>(embedding->shape[0]), "the rows of token_embd.weight");
  if (const StoredTensor* types = fields.gguf().find("token_types.weight");
      types != nullptr && types->shape.size() == 2)
    fields.set_from("type_vocab_size", static_cast<double>(types->shape[0]),
                    "the rows of token_types.weight");
  return {};
}

}  // namespace

Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture) {
  GgufFields fields(gguf, architecture);
  fields["architectures"] = json::array{GgufFields::text_of(architecture.family)};
  for (const Key& key : kKeys) TRY_VOID(add_key(fields, key));
  for (const Key& key : kKeys)
    for (const std::string_view field : key.fields)
      if (key.of_shape && !field.empty() && fields.find(field) == nullptr) fields[field] = nullptr;
  if (fields.number("sliding_window") == 0) fields["sliding_window"] = nullptr;
  fields["tie_word_embeddings"] = gguf.find("output.weight") == nullptr;
  for (const char* field : {"use_qk_norm", "qk_layernorm"})  // names in Command R and in StableLM
    fields[field] = gguf.find("blk.0.attn_q_norm.weight") != nullptr;
  TRY_VOID(add_experts(fields));
  TRY_VOID(add_vocabulary(fields));
  TRY_VOID(add_rotation(fields));
  if (architecture.translate != nullptr) TRY_VOID(architecture.translate(fields));
  TRY_VOID(add_windows(fields));
  return std::move(fields).config();
}

}  // namespace octavo
