// What most families have in common, so that each of them says only what is its own.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// What a family calls a field, and what it takes for granted when the field is not there.
struct Dialect {
  std::string_view dim = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view hidden = "intermediate_size";
  std::optional<int> hidden_default = {};
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";
  std::string_view activation_default = "silu";
  std::string_view eps = "rms_norm_eps";
  double eps_default = 1e-6;
  NormSpec norm = {.kind = NormKind::rms};
  bool tied_default = false;
  bool rotary = true;
  std::string_view theta = "rope_theta";
  double theta_default = 10000;
  std::string_view rotary_fraction = "partial_rotary_factor";
  double rotary_fraction_default = 1;
};

// A dense decoder as Llama has it: serial layers, norms before both halves, gated MLP, no biases, full
// attention with grouped queries, rotary embeddings.
Result<ModelSpec> describe_dense(const Config& config, const Dialect& dialect = {});

// Rotary embedding of the whole model, or of one kind of its layers ("full_attention", "sliding_attention").
// Reads rope_parameters, or the older rope_scaling beside the dialect's fields. Where these are not given by
// kind of layer, they stretch the layers with full attention only.
Result<RopeSpec> read_rope(const Config& config, const Dialect& dialect, int head_dim, int positions,
                           std::string_view layer_type = {});

// Gives layers a window of config.sliding_window tokens: those that config.layer_types calls
// "sliding_attention", or, when there is no such list, those for which sliding(layer) holds. No window when
// the field is not there.
Result<> set_windows(ModelSpec& spec, const Config& config, const std::function<bool(int layer)>& sliding);

// The number of a multiplier: finite, not zero.
Result<float> multiplier(const Config& config, std::string_view field, float fallback = 1);

// A cap on logits or scores; 0 when it is not there.
Result<float> soft_cap(const Config& config, std::string_view field);

}  // namespace octavo
