// Translates encoders and encoder-decoder networks.
#include "model/gguf/translate.h"

namespace octavo {

// The file contains the width of the windows (the sum of both sides) and a period: one layer in each period
// has no window.
Result<> translate_modernbert(GgufFields& fields) {
  fields.set("local_attention", fields.number("sliding_window"), "attention.sliding_window");
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (!fields.gguf().metadata.is_list(fields.key(kPattern))) {
    TRY(const auto period, fields.stored(kPattern));
    fields.set("global_attn_every_n_layers", period.value_or(3), kPattern);
  }
  fields.set("global_rope_theta", fields.number("rope_theta"), "rope.freq_base");
  fields.set("local_rope_theta", fields.number("rope_local_base_freq").value_or(10000), "rope.freq_base_swa");
  TRY(const auto activation, fields.gguf().metadata.text(fields.key("hidden_activation")));
  if (activation) fields["hidden_activation"] = GgufFields::text_of(*activation);
  fields["norm_bias"] = fields.gguf().find("output_norm.bias") != nullptr;
  return {};
}

// The field names are those in Nomic v2's original config.json.
Result<> translate_nomic_moe(GgufFields& fields) {
  fields["activation_function"] = "gelu";
  return fields.copy({{"moe_every_n_layers", "moe_every_n_layers"}, {"expert_used_count", "moe_top_k"}});
}

// Encoder and decoder number their layers separately.
Result<> translate_t5(GgufFields& fields) {
  TRY_VOID(fields.copy({{kGgufHeads, "num_heads"},
                        {"attention.key_length", "d_kv"},
                        {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
                        {"attention.relative_buckets_count", "relative_attention_num_buckets"},
                        {"decoder_block_count", "num_decoder_layers"},
                        {"decoder_start_token_id", "decoder_start_token_id"},
                        {kGgufHidden, "d_ff"}}));
  const bool gated = fields.gguf().find("enc.blk.0.ffn_gate.weight") != nullptr;
  fields["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
  return {};
}

}  // namespace octavo
