// Step-3.5-Flash (StepFun, 2026): norms with weight 1 + w, also of queries and keys, and a gate for each
// head. Most layers have sliding windows, another number of query heads, and a separate RoPE base. The
// experts are DeepSeek-V3's with a shared expert. In some layers, gates are limited.
#include <cmath>
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/step3.h"

namespace octavo {
namespace {

// Returns the first `layers` numbers of a list. The rest of the list is for prediction layers. The result is
// empty if the list is missing.
Result<std::vector<double>> layer_numbers(const Config& config, std::string_view field, std::size_t layers,
                                          Config::RealRange range) {
  if (!config.is_list(field)) return std::vector<double>();
  TRY(const int predictors, config.integer("num_nextn_predict_layers", {0, 64}, 0));
  auto numbers = config.numbers(field, layers + static_cast<std::size_t>(predictors), range);
  if (!numbers && predictors > 0) numbers = config.numbers(field, layers, range);
  TRY(std::vector<double> found, std::move(numbers));
  found.resize(layers);
  return found;
}

// Returns the input for which silu is `limit`.
float before_silu(double limit) {
  double x = limit;
  for (int i = 0; i < 50; ++i) x = limit * (1 + std::exp(-x));
  return static_cast<float>(x);
}

Result<> set_heads(ModelSpec& spec, const Config& config) {
  TRY(std::vector<std::string> kinds, config.texts("layer_types"));
  if (kinds.size() < spec.layers.size())
    return invalid("layer_types", "{} has {} entries, but the model has {} layers",
                   config.where("layer_types"), kinds.size(), spec.layers.size());
  Attention full = spec.layers[0].attention();
  full.rope = 0;
  TRY(full.biases.qkv, config.boolean("attention_bias", false));
  full.biases.out = full.biases.qkv;
  full.norms = {QkNorm::shared, spec.final_norm};
  TRY(const bool gated, config.boolean("use_head_wise_attn_gate", true));
  full.head_gate = gated;
  Attention local = full;
  local.rope = 1;
  TRY(local.mask.window, config.integer("sliding_window", {1, 1 << 27}));
  TRY(local.q_heads, config.integer("num_sliding_attention_heads", {1, 4096}, full.q_heads));
  TRY(const std::optional<Config> other, config.object("attention_other_setting"));
  if (other) {
    TRY(local.q_heads, other->integer("num_attention_heads", {1, 4096}, full.q_heads));
    TRY(local.kv_heads, other->integer("num_attention_groups", {1, 4096}, full.kv_heads));
    TRY(local.head_dim, other->integer("head_dim", {2, 4096}, full.head_dim));
  }
  if (local.q_heads % local.kv_heads != 0 || local.head_dim != full.head_dim)
    return invalid("attention_other_setting",
                   "{}: {} query heads must be a multiple of {} key heads, and head_dim {} must be {}",
                   config.where("attention_other_setting"), local.q_heads, local.kv_heads, local.head_dim,
                   full.head_dim);
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].mixer = kinds[i] == "sliding_attention" ? local : full;
  return {};
}

// Sets the RoPE base and the rotated fraction of a head, which are the same in all layers of one type.
// Frequencies of layers with sliding windows are scaled only if rope_parameters has a scaling for these
// layers.
Result<> set_ropes(ModelSpec& spec, const Config& config) {
  const std::size_t layers = spec.layers.size();
  constexpr std::string_view kStretched = "yarn_only_types";
  TRY(const std::vector<std::string> stretched, config.texts(kStretched));
  if (config.has("rope_scaling") && stretched != std::vector<std::string>{"full_attention"})
    return field_failure(kStretched, ErrorCode::unsupported,
                         "{} must be [\"full_attention\"] with rope_scaling", config.where(kStretched));
  if (const auto listed = config.texts("use_rope_layers"); !listed || !listed->empty())
    return field_failure("use_rope_layers", ErrorCode::unsupported,
                         "{} must be absent: only models with RoPE in all layers are supported",
                         config.where("use_rope_layers"));
  TRY(const std::vector<double> bases, layer_numbers(config, "rope_theta", layers, {1, 1e12}));
  TRY(const std::vector<double> shares, layer_numbers(config, "partial_rotary_factors", layers, {0, 1}));
  const Dialect dialect{.theta = bases.empty() ? "rope_theta" : "",
                        .rotary_fraction = "partial_rotary_factor"};
  const int head_dim = spec.layers[0].attention().head_dim;
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    TRY(RopeSpec rope, read_rope(config, dialect, head_dim, spec.max_positions, kind));
    for (std::size_t i = 0; i < layers; ++i) {
      if (!std::cmp_equal(spec.layers[i].attention().rope, spec.ropes.size())) continue;
      if (!bases.empty()) rope.theta = bases[i];
      if (!shares.empty()) rope.rotary_dim = static_cast<int>(head_dim * shares[i]) / 2 * 2;
    }
    spec.ropes.push_back(std::move(rope));
  }
  return {};
}

}  // namespace

// Because silu increases above 0, limiting its input to before_silu(limit) has the same effect.
void set_silu_limit(Mlp& mlp, double limit) {
  if (limit == 0) return;
  mlp.limit = static_cast<float>(limit);
  mlp.gate_limit = before_silu(limit);
}

static Result<ModelSpec> describe_step3p5(const Config& file) {
  const Config config = file.with_names({{"num_key_value_heads", "num_attention_groups"},
                                         {"n_routed_experts", "moe_num_experts"},
                                         {"num_experts_per_tok", "moe_top_k"}});
  TRY(ModelSpec spec,
      describe_dense(config, {.norm = {.kind = NormKind::rms, .weight_offset = 1}, .rotary = false}));
  const std::size_t layers = spec.layers.size();
  TRY_VOID(set_heads(spec, config));
  TRY_VOID(set_ropes(spec, config));
  const Mlp mlp = spec.layers[0].mlp();
  Experts experts{
      .count = 0, .router = {.renormalise = true, .scores = RouterScores::sigmoid}, .expert = mlp};
  experts.choice_bias = true;
  for (const char* on : {"norm_expert_weight", "use_moe_router_bias"}) TRY_VOID(refuse(config, on, false));
  TRY_VOID(support(config, "moe_router_activation", "sigmoid"));
  TRY(experts.count, config.integer("n_routed_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("num_experts_per_tok", {1, experts.count}));
  TRY(experts.router.scale, multiplier(config, "moe_router_scaling_factor"));
  TRY(experts.expert.hidden, config.integer("moe_intermediate_size", {1, 1 << 20}));
  experts.shared = mlp;
  TRY(experts.shared->hidden, config.integer("share_expert_dim", {1, 1 << 20}));
  TRY(const std::vector<double> limits, layer_numbers(config, "swiglu_limits", layers, {0, 1e6}));
  TRY(const std::vector<double> shared_limits,
      layer_numbers(config, "swiglu_limits_shared", layers, {0, 1e6}));
  TRY(const std::vector<bool> sparse, step3_expert_layers(config, layers));
  for (std::size_t i = 0; i < layers; ++i) {
    LayerSpec& layer = spec.layers[i];
    Experts own = experts;
    if (!limits.empty()) set_silu_limit(own.expert, limits[i]);
    if (!shared_limits.empty()) {
      set_silu_limit(*own.shared, shared_limits[i]);
      set_silu_limit(layer.mlp(), shared_limits[i]);
    }
    if (sparse[i]) layer.feed_forward = std::move(own);
  }
  set_step3_names(spec.names);
  spec.names.of<Experts>().choice_bias = "moe.router_bias";
  for (const char* other : {"vision_model.*", "vit_large_projector.*"})
    spec.names.ignorable.emplace_back(other);
  for (int i = 0; i < 8; ++i)
    spec.names.ignorable.push_back(fmt::format("model.layers.{}.*", layers + static_cast<std::size_t>(i)));
  return spec;
}

std::span<const Family> step3p5_families() {
  static constexpr Family kRows[] = {
      {"Step3p5ForCausalLM", describe_step3p5},
      {"Step3p7ForConditionalGeneration", describe_step3p5, true},
  };
  return kRows;
}

}  // namespace octavo
