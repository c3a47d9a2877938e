// Functions that most families share, so that a family's file has only the differences.
#pragma once

#include <functional>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Ranges that any family may use.
inline constexpr Config::Range kDim{1, 1 << 20};
inline constexpr Config::Range kHeads{1, 4096};

// A family's names of fields; "" if it has no such field. field_defaults() has the values of missing
// fields.
struct Dialect {
  std::string_view dim = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view hidden = "intermediate_size";  // "" without hidden_to_dim: the family's own
  int hidden_to_dim = 0;                          // if `hidden` is null: the hidden size is this times `dim`
  std::string_view head_dim = "head_dim";  // null: dim over heads
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";  // "": silu, until the family says otherwise
  std::string_view eps = "rms_norm_eps";       // "": as `norm` says
  NormSpec norm = {.kind = NormKind::rms};
  bool rotary = true;
  std::string_view theta = "rope_theta";  // null: 10,000
  std::string_view rotary_fraction = "";  // of a head; "": all of it rotates
  bool yarn_is_longrope = false;          // rope type "yarn" means "longrope"
};

// A dense decoder as Llama has it: serial layers, norms before both halves, gated MLP, no biases, full
// attention with grouped queries, rotary embeddings.
Result<ModelSpec> describe_dense(const Config& config, const Dialect& dialect = {});

// config.num_local_experts (or num_experts, as some call it) MLPs like this one, each as wide as the field
// `hidden` says, of which num_experts_per_tok are chosen.
Result<Experts> read_experts(const Config& config, const Mlp& like, std::string_view hidden);

// Which layers have experts: as mlp_layer_types lists them or, with 0 and 1, moe_layer_freq; else each
// moe_layer_freq-th one from first_k_dense_replace on.
Result<std::vector<bool>> sparse_layers(const Config& config, std::size_t layers);

// Experts as DeepSeek's models have them, in the layers from config.first_k_dense_replace on:
// n_routed_experts, of which a token goes to num_experts_per_tok in topk_group of n_group groups, and
// n_shared_experts that are one MLP. Nothing changes where n_routed_experts is null.
Result<> set_deepseek_experts(ModelSpec& spec, const Config& config, RouterScores scores);

// For shared experts with another width than the others: moe_shared_expert_intermediate_size each.
Result<> set_shared_width(ModelSpec& spec, const Config& config);

// A dense network with DeepSeek's latent attention.
Result<ModelSpec> describe_latent(const Config& config);

// Limit of queries, keys and values: clip_qkv, 0 if it is null.
Result<float> read_clip(const Config& config);

// The head of a sequence classifier: its labels, and what their scores become, as vLLM and Sentence
// Transformers read it. `dense` is the family's.
Result<Head> read_classifier(const Config& config);

// Rotary embedding of the whole model, or of one kind of its layers ("full_attention", "sliding_attention").
// Reads rope_parameters, or the older rope_scaling beside the dialect's fields. Where these are not given by
// kind of layer, they stretch the layers with full attention only.
Result<RopeSpec> read_rope(const Config& config, const Dialect& dialect, int head_dim, int positions,
                           std::string_view layer_type = {});

// Input of a prompt encoder, and the first output tokens of the language model: decoder_start_token_id and,
// if present, forced_bos_token_id.
Result<SourceInput> read_source(const Config& config, const ModelSpec& encoder);

// Gives every layer a window of config.sliding_window tokens; none when the field is null.
Result<> set_window(ModelSpec& spec, const Config& config);
// The same. Error: layer_types says otherwise, which transformers ignores and vLLM does not.
Result<> set_window_of_all(ModelSpec& spec, const Config& config);
// The same for those layers that config.layer_types calls "sliding_attention", or, when there is no such
// list, those for which sliding(layer) holds.
Result<> set_windows(ModelSpec& spec, const Config& config, const std::function<bool(int layer)>& sliding);

// Rotates config.rotary_dim elements of each head, if the field exists.
Result<> set_rotary_dim(ModelSpec& spec, const Config& config, int head_dim);

// One rotary embedding for the layers that see everything, and one for those with windows.
Result<> set_ropes_by_kind(ModelSpec& spec, const Config& config, const Dialect& dialect = {});

// MLPs have one matrix before the activation, "mlp.up_proj". attention_bias and mlp_bias say whether there are biases;
// where config leaves them out, `biases`.
Result<> leave_out_gates(ModelSpec& spec, const Config& config, bool biases);

// The temperature that rope_parameters ask for (Ministral 3, 2025); none where they do not.
Result<Temperature> read_temperature(const Config& config);

// Leaves the rotary embedding out of the layers that config.no_rope_layers has a 0 for or, without such a
// list, of every no_rope_layer_interval-th.
Result<> set_rope_layers(ModelSpec& spec, const Config& config);

// ALiBi's slopes (AttentionArgs::slopes) for the number of heads: powers of 2 from 2^(-most / heads) down
// to 2^-most. Press et al. extend them to numbers of heads that are not powers of 2.
std::vector<float> alibi_slopes(int heads, double most);

// An error naming the field where it has this value.
Result<> refuse(const Config& config, std::string_view field, bool unsupported);

// An error naming the field if it exists with another value.
Result<> support(const Config& config, std::string_view field, std::string_view only);

// The number of a multiplier: finite, not zero.
Result<float> multiplier(const Config& config, std::string_view field);

// A cap on logits or scores; 0 when it is null.
Result<float> soft_cap(const Config& config, std::string_view field);

}  // namespace octavo
