// Qwen language models.
// Qwen2 (Yang et al., 2024): biases on queries, keys and values. Variants have experts and a shared expert.
// Qwen3 (Yang et al., 2025): norms of queries and keys instead of biases. Variants have experts.
// Qwen3-Next and Qwen3.5 (2025, 2026): three of four layers are gated delta nets, and attention has gates.
#include <algorithm>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

Result<ModelSpec> describe_qwen(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool windows, config.boolean("use_sliding_window", false));
  if (!windows) return spec;
  TRY(const int first, config.integer("max_window_layers", {0, 1 << 27}));
  TRY_VOID(set_windows(spec, config, [first](int layer) { return layer >= first; }));
  return spec;
}

// Sets experts in every decoder_sparse_step-th layer, except in mlp_only_layers.
Result<> set_experts(ModelSpec& spec, const Config& config, const Experts& experts) {
  TRY(const std::vector<int> dense, config.integers("mlp_only_layers", {0, 1024}));
  TRY(const int step, config.integer("decoder_sparse_step", {1, 1024}, 1));
  for (int i = 0; i < std::ssize(spec.layers); ++i)
    if ((i + 1) % step == 0 && std::ranges::count(dense, i) == 0)
      spec.layers[static_cast<std::size_t>(i)].feed_forward = experts;
  return {};
}

Result<Experts> read_shared_experts(const Config& config, const Mlp& like) {
  TRY(Experts experts, read_experts(config, like, "moe_intermediate_size"));
  experts.shared = like;
  TRY(experts.shared->hidden, config.integer("shared_expert_intermediate_size", {1, 1 << 20}));
  experts.shared_gate = true;
  return experts;
}

// Sets a multi-token prediction layer with the spec of the last layer with attention.
Result<> set_hybrid_predictor(ModelSpec& spec, const Config& config) {
  TRY(const int count, config.integer("mtp_num_hidden_layers", {0, 64}, 1));
  if (count == 0) return {};
  std::size_t like = spec.layers.size() - 1;
  while (!std::holds_alternative<Attention>(spec.layers[like].mixer)) --like;
  spec.predictor = {
      .prefixes = {"mtp."},
      .like = like,
      .layer = "layers.0.",
      .names = {.token_norm = "pre_fc_norm_embedding", .hidden_norm = "pre_fc_norm_hidden", .joint = "fc"},
      .final_norm = "norm",
      .normed_output = true};
  return {};
}

// `hidden` is the field with the width of the MLP.
Result<ModelSpec> describe_hybrid(const Config& config, std::string_view hidden) {
  TRY(ModelSpec spec, describe_dense(config, {.hidden = hidden,
                                              .norm = {.kind = NormKind::rms, .weight_offset = 1},
                                              .rotary_fraction = "partial_rotary_factor"}));
  if (spec.layers[0].mlp().activation != Activation::silu)
    return field_failure("hidden_act", ErrorCode::unsupported, "{} must be silu for this model",
                         config.where("hidden_act"));
  TRY_VOID(refuse(config, "attn_output_gate", false));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.biases = {.qkv = bias, .out = bias};
    attention.norms = {QkNorm::shared, layer.pre_norm};
    attention.output_gate = true;
  }
  TRY(const DeltaNet net, read_delta_net(config, spec.final_norm.eps));
  TRY_VOID(set_delta_nets(spec, config, net));
  spec.names.prefixes = {"model.", "model.language_model."};
  for (const char* other : {"mtp.*", "model.visual.*"}) spec.names.ignorable.emplace_back(other);
  TRY_VOID(set_hybrid_predictor(spec, config));
  return spec;
}

}  // namespace

Result<ModelSpec> describe_qwen2(const Config& config) {
  TRY(ModelSpec spec, describe_qwen(config));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = true;
  return spec;
}

// MiMo 7B (Xiaomi, 2025): Qwen2 with multi-token prediction layers.
static Result<ModelSpec> describe_mimo(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  spec.names.ignorable.emplace_back("model.mtp_layers.*");
  const std::string layer = "mtp_layers.0.";
  spec.predictor = {.like = spec.layers.size() - 1,
                    .layer = layer,
                    .names = {.token_norm = layer + "token_layernorm",
                              .hidden_norm = layer + "hidden_layernorm",
                              .joint = layer + "input_proj"},
                    .final_norm = layer + "final_layernorm",
                    .hidden_first = true,
                    .normed_output = true};
  return spec;
}

Result<ModelSpec> describe_qwen3(const Config& config) {
  TRY(ModelSpec spec, describe_qwen(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  return spec;
}

static Result<ModelSpec> describe_qwen2_moe(const Config& config) {
  TRY(ModelSpec spec, describe_qwen(config));
  TRY(const bool bias, config.boolean("qkv_bias", true));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = bias;
  TRY(Experts experts, read_shared_experts(config, spec.layers[0].mlp()));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", false));
  TRY_VOID(set_experts(spec, config, experts));
  return spec;
}

Result<ModelSpec> describe_qwen3_moe(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "moe_intermediate_size"));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", false));
  TRY_VOID(set_experts(spec, config, experts));
  return spec;
}

// Mellum 2 (JetBrains, 2026): some layers have sliding windows and a separate RoPE base.
static Result<ModelSpec> describe_mellum(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_moe(config));
  TRY(const int hidden, config.integer("intermediate_size", {1, 1 << 20}));
  TRY_VOID(set_windows(spec, config, [](int) { return false; }));
  TRY_VOID(set_ropes_by_kind(spec, config));
  TRY(const std::vector<bool> sparse, sparse_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < sparse.size(); ++i)
    if (!sparse[i]) spec.layers[i].feed_forward = Mlp{.hidden = hidden};
  spec.names.ignorable.emplace_back("mtp.*");
  return spec;
}

// Flint (2026): attention sinks; layers with full attention have no RoPE. The experts' scores are sigmoids.
static Result<ModelSpec> describe_flint(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  const int last = static_cast<int>(spec.layers.size()) - 1;
  TRY_VOID(
      set_windows(spec, config, [last](int layer) { return layer >= 2 && layer % 4 != 1 && layer != last; }));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "moe_intermediate_size"));
  experts.router.scores = RouterScores::sigmoid;
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", true));
  experts.shared = spec.layers[0].mlp();
  TRY(experts.shared->hidden, config.integer("shared_expert_intermediate_size", {1, 1 << 20}, 1024));
  const Mlp dense = spec.layers[0].mlp();
  TRY_VOID(set_experts(spec, config, experts));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Attention& attention = spec.layers[i].attention();
    attention.scores.sinks = true;
    if (attention.mask.window == 0) attention.rope = -1;
    if (i < 2 && !config.has("mlp_only_layers")) spec.layers[i].feed_forward = dense;
  }
  spec.names.attention.sinks = "self_attn.softmax_offset";
  return spec;
}

static Result<ModelSpec> describe_qwen3_next(const Config& config) {
  TRY(ModelSpec spec, describe_hybrid(config, "intermediate_size"));
  TRY(Experts experts, read_shared_experts(config, spec.layers[0].mlp()));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", true));
  TRY_VOID(set_experts(spec, config, experts));
  spec.names.of<DeltaNet>().in = {"linear_attn.in_proj_qkvz"};
  spec.names.of<DeltaNet>().ba = {"linear_attn.in_proj_ba"};
  return spec;
}

Result<ModelSpec> describe_qwen3_5(const Config& config) {
  return describe_hybrid(config, "intermediate_size");
}

Result<ModelSpec> describe_qwen3_5_moe(const Config& config) {
  TRY(ModelSpec spec, describe_hybrid(config, "moe_intermediate_size"));
  TRY(Experts experts, read_shared_experts(config, spec.layers[0].mlp()));
  experts.router.renormalise = true;
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.other_names = spec.names;  // experts as separate tensors, as in quantised and fine-tuned checkpoints
  spec.names.of<Experts>().storage = ExpertStorage::stacked;
  spec.names.of<Experts>().up = {"mlp.experts.gate_up_proj"};
  spec.names.of<Experts>().down = "mlp.experts.down_proj";
  return spec;
}

std::span<const Family> qwen_families() {
  static constexpr Family kRows[] = {
      {"FlintForCausalLM", describe_flint},
      {"MellumForCausalLM", describe_mellum},
      {"MiMoForCausalLM", describe_mimo},
      {"Qwen2ForCausalLM", describe_qwen2},
      {"Qwen2ForSequenceClassification", describe_decoder_classifier<describe_qwen2>},
      {"Qwen2Model", describe_embedder<describe_qwen2>},
      {"Qwen2MoeForCausalLM", describe_qwen2_moe},
      {"Qwen3ForCausalLM", describe_qwen3},
      {"Qwen3ForSequenceClassification", describe_decoder_classifier<describe_qwen3>},
      {"Qwen3Model", describe_embedder<describe_qwen3>},
      {"Qwen3MoeForCausalLM", describe_qwen3_moe},
      {"Qwen3NextForCausalLM", describe_qwen3_next},
      {"Qwen3_5ForCausalLM", describe_qwen3_5},
      {"Qwen3_5MoeForCausalLM", describe_qwen3_5_moe},
  };
  return kRows;
}

}  // namespace octavo
