// Granite 3 (IBM, 2024): Llama with multipliers of embeddings, scores, residuals and logits. Variants have
// experts. GraniteSWA (2026) has attention sinks, sliding windows, and a RoPE base per layer. In Granite 4
// (2025), most layers are Mamba2. HyperCLOVA X SEED Think (NAVER, 2025) has Granite's multipliers, and norms
// after attention and the MLP.
#include <algorithm>

#include "model/families/bases.h"
#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

// Sets attention sinks, sliding windows in three of four layers, and a RoPE base for each layer. Base 0 means
// no RoPE.
Result<> set_granite_windows(ModelSpec& spec, const Config& config) {
  TRY_VOID(set_windows(spec, config, [](int layer) { return layer % 4 != 0; }));
  for (LayerSpec& layer : spec.layers) layer.attention().scores.sinks = true;
  if (!config.has("layer_rope_theta")) return {};
  TRY(const std::vector<double> bases, config.numbers("layer_rope_theta", spec.layers.size(), {0, 1e12}));
  const RopeSpec like = spec.ropes[0];
  spec.ropes.clear();
  for (std::size_t i = 0; i < bases.size(); ++i) {
    int& rope = spec.layers[i].attention().rope;
    rope = -1;
    if (bases[i] == 0) continue;
    const auto found = std::ranges::find(spec.ropes, bases[i], &RopeSpec::theta);
    rope = static_cast<int>(found - spec.ropes.begin());
    if (found != spec.ropes.end()) continue;
    spec.ropes.push_back(like);
    spec.ropes.back().theta = bases[i];
  }
  return {};
}

}  // namespace

static Result<ModelSpec> describe_granite(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(spec.embedding.scale, multiplier(config, "embedding_multiplier"));
  TRY(const float logits_divisor, multiplier(config, "logits_scaling"));
  TRY(const float residual_scale, multiplier(config, "residual_multiplier"));
  TRY(const float score_scale, multiplier(config, "attention_multiplier"));
  spec.logits.scale = 1 / logits_divisor;
  for (LayerSpec& layer : spec.layers) {
    layer.scales.residual = residual_scale;
    layer.attention().scores.scale = score_scale;
  }
  return spec;
}

static Result<ModelSpec> describe_granite_moe(const Config& config) {
  TRY(ModelSpec spec, describe_granite(config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  experts.router.renormalise = true;
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.names.of<Experts>().router = "block_sparse_moe.router.layer";
  spec.names.of<Experts>().storage = ExpertStorage::stacked;
  spec.names.of<Experts>().up = {"block_sparse_moe.input_linear.weight"};
  spec.names.of<Experts>().down = "block_sparse_moe.output_linear.weight";
  return spec;
}

static Result<ModelSpec> describe_granite_moe_shared(const Config& config) {
  TRY(ModelSpec spec, describe_granite_moe(config));
  TRY(const int hidden, config.integer("shared_intermediate_size", {0, 1 << 20}));
  if (hidden == 0) return spec;
  for (LayerSpec& layer : spec.layers) {
    auto& experts = std::get<Experts>(layer.feed_forward);
    experts.shared = experts.expert;
    experts.shared->hidden = hidden;
  }
  spec.names.of<Experts>().shared_up = {"shared_mlp.input_linear"};
  spec.names.of<Experts>().shared_down = "shared_mlp.output_linear";
  return spec;
}

static Result<ModelSpec> describe_granite_moe_swa(const Config& config) {
  TRY(ModelSpec spec, describe_granite_moe_shared(config));
  TRY_VOID(set_granite_windows(spec, config));
  spec.other_names = spec.names;  // names in Granite 3's files
  spec.names.of<Experts>().router = "block_sparse_moe.router";
  spec.names.of<Experts>().up = {"block_sparse_moe.experts.gate_up_proj"};
  spec.names.of<Experts>().down = "block_sparse_moe.experts.down_proj";
  return spec;
}

static Result<ModelSpec> describe_granite_swa(const Config& config) {
  TRY(ModelSpec spec, describe_granite(config));
  TRY_VOID(set_granite_windows(spec, config));
  return spec;
}

Result<ModelSpec> describe_hyperclovax(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(spec.embedding.scale, multiplier(config, "embedding_multiplier"));
  TRY(spec.logits.scale, multiplier(config, "logits_scaling"));
  TRY(const float residual_scale, multiplier(config, "residual_multiplier"));
  TRY(const bool norms_behind, config.boolean("use_post_norm", true));
  for (LayerSpec& layer : spec.layers) {
    layer.scales.residual = residual_scale;
    if (norms_behind) layer.post_norm = layer.pre_norm;
    if (!config.has("attention_multiplier")) continue;
    TRY(layer.attention().scores.scale, multiplier(config, "attention_multiplier"));
  }
  spec.names.attention.post_norm = "post_norm1";
  spec.names.mlp.post_norm = "post_norm2";
  return spec;
}

static Result<ModelSpec> describe_granite_moe_hybrid(const Config& config) {
  TRY(const int experts, config.integer("num_local_experts", {0, 1024}));
  TRY(ModelSpec spec, describe_granite(config));
  Mlp shared = spec.layers[0].mlp();
  if (experts > 0) {
    TRY(spec, describe_granite_moe(config));
  }
  TRY(shared.hidden, config.integer("shared_intermediate_size", {1, 1 << 20}));
  constexpr std::string_view kKinds[] = {"linear_attention", "full_attention"};
  TRY(const std::vector<std::string> kinds,
      read_layer_kinds(config, "layer_types", kKinds, spec.layers.size()));
  TRY(const std::int64_t inner, read_mamba_inner(config, spec.dim));
  TRY(const Mamba2 mamba, read_mamba2(config, {}, inner, spec.final_norm));
  TRY(const std::string positions, config.text("position_embedding_type", "nope"));
  const bool rotates = positions == "rope";
  if (!rotates) spec.ropes.clear();
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (!rotates) layer.attention().rope = -1;
    if (kinds.empty() || kinds[i] == "linear_attention") layer.mixer = mamba;
    if (experts > 0) {
      std::get<Experts>(layer.feed_forward).shared = shared;
    } else {
      layer.feed_forward = shared;
    }
  }
  spec.names.mlp.up = spec.names.of<Experts>().shared_up = {"shared_mlp.input_linear"};
  spec.names.mlp.down = spec.names.of<Experts>().shared_down = "shared_mlp.output_linear";
  return spec;
}

std::span<const Family> granite_families() {
  static constexpr Family kRows[] = {
      {"GraniteForCausalLM", describe_granite},
      {"GraniteMoeForCausalLM", describe_granite_moe},
      {"GraniteMoeHybridForCausalLM", describe_granite_moe_hybrid},
      {"GraniteMoeSWAForCausalLM", describe_granite_moe_swa},
      {"GraniteMoeSharedForCausalLM", describe_granite_moe_shared},
      {"GraniteSWAForCausalLM", describe_granite_swa},
      {"HyperCLOVAXForCausalLM", describe_hyperclovax},
  };
  return kRows;
}

}  // namespace octavo
