// Functions that most families call, so that a family's file contains only the differences.
#pragma once

#include <functional>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

inline constexpr Config::Range kDim{1, 1 << 20};
inline constexpr Config::Range kHeads{1, 4096};

// Names of the fields in a family's config.json. An empty name means that the family has no such field.
// field_defaults() has the values of missing fields.
struct Dialect {
  std::string_view dim = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  // Hidden size of the MLP. If the name is empty and hidden_to_dim is 0, the family sets the size.
  std::string_view hidden = "intermediate_size";
  int hidden_to_dim = 0;                   // if the field is null, the hidden size is hidden_to_dim * dim
  std::string_view head_dim = "head_dim";  // if the field is null, the size is dim / heads
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";  // "": silu, unless the family sets an activation
  std::string_view eps = "rms_norm_eps";       // "": the epsilon of `norm`
  NormSpec norm = {.kind = NormKind::rms};
  bool rotary = true;
  std::string_view theta = "rope_theta";  // if the field is null, theta is 10,000
  std::string_view rotary_fraction = "";  // field with the rotated fraction of a head; "": 1
  bool yarn_is_longrope = false;          // true: rope type "yarn" means "longrope"
};

// Describes a dense decoder like Llama: serial layers, norms before attention and before the MLP, a gated
// MLP, no biases, grouped-query attention without windows, rotary embeddings.
Result<ModelSpec> describe_dense(const Config& config, const Dialect& dialect = {});

// Reads num_local_experts (or num_experts) and num_experts_per_tok. Each expert is an MLP like `like`; the
// field `hidden` has its width.
Result<Experts> read_experts(const Config& config, const Mlp& like, std::string_view hidden);

// Returns for each layer whether it has experts. The list mlp_layer_types or the list moe_layer_freq (0 or 1
// per layer) says it. If moe_layer_freq is a number, every moe_layer_freq-th layer from first_k_dense_replace
// on has experts.
Result<std::vector<bool>> sparse_layers(const Config& config, std::size_t layers);

// Sets experts as in DeepSeek's models, in the layers from first_k_dense_replace on. A token uses
// num_experts_per_tok of n_routed_experts, from topk_group of n_group groups. The n_shared_experts shared
// experts become one MLP. Does nothing if n_routed_experts is null.
Result<> set_deepseek_experts(ModelSpec& spec, const Config& config, RouterScores scores);

// Sets the width of shared experts from moe_shared_expert_intermediate_size, if the field exists.
Result<> set_shared_width(ModelSpec& spec, const Config& config);

// Describes a dense network with DeepSeek's latent attention (MLA).
Result<ModelSpec> describe_latent(const Config& config);

// Reads clip_qkv, the limit of queries, keys and values. The result is 0 if the field is null.
Result<float> read_clip(const Config& config);

// Reads the head of a sequence classifier: its labels, and the activation of their scores, as in vLLM and
// Sentence Transformers. The family adds the layers.
Result<Head> read_classifier(const Config& config);
// Adds a head that scores each token: the last layer of the classifier, without the layers before it, which
// read only pooled texts. vLLM computes token_classify so.
void score_each_token(ModelSpec& spec);

// Reads the rotary embedding of the model, or of one layer type ("full_attention", "sliding_attention"), from
// rope_parameters, or from the older rope_scaling and the dialect's fields. Scaling that is not given per
// layer type applies only to layers with full attention.
Result<RopeSpec> read_rope(const Config& config, const Dialect& dialect, int head_dim, int positions,
                           std::string_view layer_type = {});

// Reads the size of a prompt encoder's output, and the first output tokens of the language model:
// decoder_start_token_id and, if present, forced_bos_token_id.
Result<SourceInput> read_source(const Config& config, const ModelSpec& encoder);

// Sets a sliding window of config.sliding_window tokens in every layer, unless the field is null.
Result<> set_window(ModelSpec& spec, const Config& config);
// Does the same as set_window(), but returns an error if layer_types disagrees. It is for models for which
// transformers ignores layer_types, but vLLM does not.
Result<> set_window_of_all(ModelSpec& spec, const Config& config);
// Sets the sliding window in the layers that layer_types calls "sliding_attention". Without layer_types, sets
// it in the layers for which sliding(layer) is true.
Result<> set_windows(ModelSpec& spec, const Config& config, const std::function<bool(int layer)>& sliding);

// Limits RoPE to config.rotary_dim elements of each head, if the field exists.
Result<> set_rotary_dim(ModelSpec& spec, const Config& config, int head_dim);

// Sets one rotary embedding for layers with full attention, and one for layers with sliding windows.
Result<> set_ropes_by_kind(ModelSpec& spec, const Config& config, const Dialect& dialect = {});

// Makes MLPs ungated: one matrix, "mlp.up_proj", precedes the activation. The fields attention_bias and
// mlp_bias enable biases; `biases` is their default.
Result<> leave_out_gates(ModelSpec& spec, const Config& config, bool biases);

// Reads the temperature from rope_parameters, if it exists (Ministral 3, 2025).
Result<Temperature> read_temperature(const Config& config);

// Removes RoPE from the layers with a 0 in no_rope_layers or, without this list, from every
// no_rope_layer_interval-th layer.
Result<> set_rope_layers(ModelSpec& spec, const Config& config);

// Returns ALiBi's slopes (AttentionArgs::slopes): powers of 2 from 2^(-most / heads) down to 2^-most. If
// `heads` is not a power of 2, the extension of Press et al. applies.
std::vector<float> alibi_slopes(int heads, double most);

// Returns an error if `unsupported` is true. The error names the field.
Result<> refuse(const Config& config, std::string_view field, bool unsupported);

// Returns an error if the field exists.
Result<> refuse_any(const Config& config, std::string_view field);

// Returns an error if the field exists and is not `only`.
Result<> support(const Config& config, std::string_view field, std::string_view only);

// Reads a factor, which must be above 0.
Result<float> multiplier(const Config& config, std::string_view field);

// Reads a cap on logits or scores. The result is 0 if the field is null.
Result<float> soft_cap(const Config& config, std::string_view field);

}  // namespace octavo
