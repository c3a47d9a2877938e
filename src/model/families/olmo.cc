// OLMo and models with its norms.
// OLMo (Groeneveld et al., 2024): layer norms without weights.
// OLMo 2 (OLMo team, 2024): norms after attention and MLP instead of before them, and norms over whole rows
// of queries and keys. OLMo 3 (2025): sliding windows in three of four layers; only the RoPE of layers with
// full attention is scaled. OLMoE (Muennighoff et al., 2024): norms of queries and keys as in OLMo 2, and
// experts. FlexOlmo (Shi et al., 2025): OLMoE's experts with OLMo 2's norms. EXAONE 4 (LG AI Research, 2025):
// norms after attention and MLP, and norms of each head; if some layers have sliding windows, layers with
// full attention have no RoPE. K-EXAONE (ExaoneMoe, 2025): norms before attention and MLP, and DeepSeek-V3's
// experts.
#include <algorithm>
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

// OLMoE clips after the norms of queries and keys, which is not supported.
Result<> refuse_clipping(const Config& config) {
  if (!config.has("clip_qkv")) return {};
  return field_failure("clip_qkv", ErrorCode::unsupported,
                       "{} is set, but clipping is not supported for normalised queries and keys",
                       config.where("clip_qkv"));
}

Result<> set_clip(ModelSpec& spec, const Config& config) {
  TRY(const float clip, read_clip(config));
  for (LayerSpec& layer : spec.layers) layer.attention().clip = clip;
  return {};
}

// Describes a dense network with norms after attention and MLP.
Result<ModelSpec> describe_with_norms_behind(const Config& config, QkNorm qk_norm) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = std::exchange(layer.pre_norm, {});
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().norms = {qk_norm, layer.post_norm};
  }
  spec.names.attention.post_norm = "post_attention_layernorm";
  spec.names.mlp.post_norm = "post_feedforward_layernorm";
  return spec;
}

// If some layers have sliding windows, layers with full attention have no RoPE.
Result<> set_exaone_windows(ModelSpec& spec, const Config& config) {
  if (!config.has("sliding_window")) return {};
  int pattern = 4;
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  if (types.empty()) {
    TRY(pattern, config.integer("sliding_window_pattern", {1, 1024}, pattern));
  }
  TRY_VOID(set_windows(spec, config, [pattern](int layer) { return (layer + 1) % pattern != 0; }));
  for (LayerSpec& layer : spec.layers)
    if (layer.attention().mask.window == 0) layer.attention().rope = -1;
  return {};
}

// K-EXAONE 2 (2026): sets each layer's window and, if the number in swiglu_limits is not 0, the limit of its
// gates.
Result<> set_exaone_layers(ModelSpec& spec, const Config& config) {
  constexpr std::string_view kWindows = "sliding_windows", kLimits = "swiglu_limits";
  const std::size_t layers = spec.layers.size();
  TRY(const std::vector<int> windows, config.integers(kWindows, {0, 1 << 27}));
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  if (!windows.empty() && (windows.size() != layers || types.size() != layers))
    return invalid(kWindows, "{} has {} entries and layer_types has {}, but the model has {} layers",
                   config.where(kWindows), windows.size(), types.size(), layers);
  const bool slides = std::ranges::count(types, "sliding_attention") > 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    Attention& attention = spec.layers[i].attention();
    attention.mask.window = types[i] == "sliding_attention" ? windows[i] : 0;
    attention.rope = attention.mask.window > 0 || !slides ? 0 : -1;
  }
  if (!config.has(kLimits)) return {};
  TRY(const std::vector<double> limits, config.numbers(kLimits, layers, {0, 1e9}));
  for (std::size_t i = 0; i < layers; ++i) {
    const auto limit = static_cast<float>(limits[i]);
    if (auto* experts = std::get_if<Experts>(&spec.layers[i].feed_forward)) {
      experts->expert.limit = limit;
      if (experts->shared) experts->shared->limit = limit;
    } else {
      spec.layers[i].mlp().limit = limit;
    }
  }
  return {};
}

}  // namespace

static Result<ModelSpec> describe_olmo(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.eps = "", .norm = {.kind = NormKind::layer, .eps = 1e-5F, .stored = false}}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) layer.attention().biases = {.qkv = bias, .out = bias};
  TRY_VOID(set_clip(spec, config));
  return spec;
}

static Result<ModelSpec> describe_olmo2(const Config& config) {
  return describe_with_norms_behind(config, QkNorm::whole_row);
}

static Result<ModelSpec> describe_olmo3(const Config& config) {
  TRY(ModelSpec spec, describe_olmo2(config));
  TRY_VOID(set_windows(spec, config, [](int layer) { return (layer + 1) % 4 != 0; }));
  TRY_VOID(set_ropes_by_kind(spec, config));
  return spec;
}

// OLMo Hybrid (2026): every fourth layer has OLMo 3's full attention. All other layers are gated delta nets,
// with norms before the delta net and the MLP.
static Result<ModelSpec> describe_olmo_hybrid(const Config& config) {
  TRY(ModelSpec spec, describe_olmo2(config));
  TRY(const std::optional<Config> rope, config.object("rope_parameters"));
  if (rope && !rope->has("rope_theta"))  // without rope_theta, there is no RoPE
    for (LayerSpec& layer : spec.layers) layer.attention().rope = -1;
  const int heads = spec.layers[0].attention().q_heads;
  TRY(const int key_dim, config.integer("linear_key_head_dim", {1, kMaxStateDim}, 3 * spec.dim / (4 * heads)));
  const DeltaNet usual{.key_heads = heads, .value_heads = heads, .key_dim = key_dim, .value_dim = 2 * key_dim};
  TRY(DeltaNet net, read_delta_net(config, 1e-5F, usual));
  TRY(const bool negative, config.boolean("linear_allow_neg_eigval", true));
  if (negative) net.beta_scale = 2;
  TRY_VOID(set_delta_nets(spec, config, net));
  for (LayerSpec& layer : spec.layers)
    if (std::holds_alternative<DeltaNet>(layer.mixer)) layer.pre_norm = std::exchange(layer.post_norm, {});
  Names& names = spec.names;
  names.of<DeltaNet>().in = {"linear_attn.q_proj", "linear_attn.k_proj", "linear_attn.v_proj",
                             "linear_attn.g_proj"};
  names.of<DeltaNet>().ba = {"linear_attn.b_proj", "linear_attn.a_proj"};
  names.of<DeltaNet>().norm = "linear_attn.o_norm";
  names.of<DeltaNet>().out = "linear_attn.o_proj";
  names.attention.norm = "attention_layer_norm";
  names.mlp.norm = "feedforward_layer_norm";
  names.of<DeltaNet>().conv = {"linear_attn.q_conv1d", "linear_attn.k_conv1d", "linear_attn.v_conv1d"};
  return spec;
}

static Result<ModelSpec> describe_olmoe(const Config& config) {
  TRY_VOID(refuse_clipping(config));
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().norms = {QkNorm::whole_row, layer.pre_norm};
    layer.feed_forward = experts;
  }
  return spec;
}

// OLMo 2's norms and OLMoE's experts.
static Result<ModelSpec> describe_flex_olmo(const Config& config) {
  TRY(ModelSpec spec, describe_olmo2(config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", false));
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  return spec;
}

Result<ModelSpec> describe_exaone4(const Config& config) {
  TRY(ModelSpec spec, describe_with_norms_behind(config, QkNorm::shared));
  TRY_VOID(set_exaone_windows(spec, config));
  return spec;
}

static Result<ModelSpec> describe_exaone_moe(const Config& file) {
  const Config config =
      file.with_names({{"n_routed_experts", "num_experts"}, {"n_shared_experts", "num_shared_experts"}});
  TRY(ModelSpec spec, describe_dense(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  TRY_VOID(set_exaone_windows(spec, config));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  TRY_VOID(set_exaone_layers(spec, config));
  spec.names.of<Experts>().choice_bias = "mlp.e_score_correction_bias";
  spec.names.ignorable.emplace_back("mtp.*");
  return spec;
}

std::span<const Family> olmo_families() {
  static constexpr Family kRows[] = {
      {"Exaone4ForCausalLM", describe_exaone4},
      {"ExaoneMoEForCausalLM", describe_exaone_moe},
      {"ExaoneMoeForCausalLM", describe_exaone_moe},
      {"FlexOlmoForCausalLM", describe_flex_olmo},
      {"Olmo2ForCausalLM", describe_olmo2},
      {"Olmo3ForCausalLM", describe_olmo3},
      {"OlmoForCausalLM", describe_olmo},
      {"OlmoHybridForCausalLM", describe_olmo_hybrid},
      {"OlmoeForCausalLM", describe_olmoe},
  };
  return kRows;
}

}  // namespace octavo
