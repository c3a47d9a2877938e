// Functions for most families. A family's file contains only the differences.
#pragma once

#include <functional>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Ranges that any family may use.
inline constexpr Config::Range kDim{1, 1 << 20};
inline constexpr Config::Range kHeads{1, 4096};

// Field names of a family; "": the family has no such field. field_defaults() has the values of missing
// fields.
struct Dialect {
  std::string_view dim = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view hidden = "intermediate_size";  // "" without hidden_to_dim: the family's own
  int hidden_to_dim = 0;                          // if `hidden` is null, the hidden size is dim times this
  std::string_view head_dim = "head_dim";         // if null: dim / heads
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";  // "": silu, unless the family changes it
  std::string_view eps = "rms_norm_eps";       // "": the epsilon of `norm`
  NormSpec norm = {.kind = NormKind::rms};
  bool rotary = true;
  std::string_view theta = "rope_theta";  // if null: 10,000
  std::string_view rotary_fraction = "";  // rotated fraction of a head; with "", the whole head rotates
  bool yarn_is_longrope = false;          // rope type "yarn" means "longrope"
};

// A dense decoder like Llama: serial layers, norms before both halves, a gated MLP, no biases, full
// grouped-query attention, rotary embeddings.
Result<ModelSpec> describe_dense(const Config& config, const Dialect& dialect = {});

// Reads num_local_experts (or num_experts) MLPs like `like`; a token uses num_experts_per_tok of them.
// hidden: the field with the width of each.
Result<Experts> read_experts(const Config& config, const Mlp& like, std::string_view hidden);

// For each layer, whether it has experts: listed in mlp_layer_types, or in moe_layer_freq as 0 and 1; else
// every moe_layer_freq-th layer from first_k_dense_replace on.
Result<std::vector<bool>> sparse_layers(const Config& config, std::size_t layers);

// Sets experts as in DeepSeek's models, in the layers from config.first_k_dense_replace on. A token uses
// num_experts_per_tok of n_routed_experts, from topk_group of n_group groups; the n_shared_experts form one
// MLP. Does nothing if n_routed_experts is null.
Result<> set_deepseek_experts(ModelSpec& spec, const Config& config, RouterScores scores);

// Sets the width of shared experts if it differs: moe_shared_expert_intermediate_size each.
Result<> set_shared_width(ModelSpec& spec, const Config& config);

// A dense network with DeepSeek's latent attention.
Result<ModelSpec> describe_latent(const Config& config);

// Limit of queries, keys and values: clip_qkv; 0 if null.
Result<float> read_clip(const Config& config);

// The head of a sequence classifier: its labels, and the activation of their scores, as in vLLM and Sentence
// Transformers. The family sets `dense`.
Result<Head> read_classifier(const Config& config);

// Rotary embedding of the whole model, or of one layer type ("full_attention", "sliding_attention"). Reads
// rope_parameters, or the older rope_scaling and the dialect's fields. If scaling is not given per layer
// type, it applies only to layers with full attention.
Result<RopeSpec> read_rope(const Config& config, const Dialect& dialect, int head_dim, int positions,
                           std::string_view layer_type = {});

// Input of a prompt encoder, and the language model's first output tokens: decoder_start_token_id and, if
// present, forced_bos_token_id.
Result<SourceInput> read_source(const Config& config, const ModelSpec& encoder);

// Sets a window of config.sliding_window tokens in every layer, unless the field is null.
Result<> set_window(ModelSpec& spec, const Config& config);
// Like set_window(). Error if layer_types says otherwise: transformers ignores it then, vLLM does not.
Result<> set_window_of_all(ModelSpec& spec, const Config& config);
// Sets the window in the layers that config.layer_types calls "sliding_attention" or, without such a list, in
// those for which sliding(layer) is true.
Result<> set_windows(ModelSpec& spec, const Config& config, const std::function<bool(int layer)>& sliding);

// Rotates config.rotary_dim elements of each head, if the field exists.
Result<> set_rotary_dim(ModelSpec& spec, const Config& config, int head_dim);

// Sets one rotary embedding for layers with full attention, and one for layers with windows.
Result<> set_ropes_by_kind(ModelSpec& spec, const Config& config, const Dialect& dialect = {});

// Removes the gates: an MLP has one matrix before the activation, "mlp.up_proj". The fields attention_bias
// and mlp_bias enable biases; their default is `biases`.
Result<> leave_out_gates(ModelSpec& spec, const Config& config, bool biases);

// The temperature in rope_parameters, if any (Ministral 3, 2025).
Result<Temperature> read_temperature(const Config& config);

// Removes the rotary embedding from the layers with a 0 in config.no_rope_layers or, without such a list,
// from every no_rope_layer_interval-th layer.
Result<> set_rope_layers(ModelSpec& spec, const Config& config);

// ALiBi's slopes (AttentionArgs::slopes) for this number of heads: powers of 2 from 2^(-most / heads) down to
// 2^-most. If `heads` is not a power of 2, the extension of Press et al. applies.
std::vector<float> alibi_slopes(int heads, double most);

// Error with the field's name, if it has the value `unsupported`.
Result<> refuse(const Config& config, std::string_view field, bool unsupported);

// Error with the field's name, if it exists and is not `only`.
Result<> support(const Config& config, std::string_view field, std::string_view only);

// A multiplier: finite, not zero.
Result<float> multiplier(const Config& config, std::string_view field);

// A cap on logits or scores; 0 if null.
Result<float> soft_cap(const Config& config, std::string_view field);

}  // namespace octavo
