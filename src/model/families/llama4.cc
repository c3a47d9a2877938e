// The language model of Llama 4 (Meta, 2025). Three of four layers have chunked attention. The fourth has
// full attention without RoPE, and a factor of queries that grows with the position. Each token uses one
// routed expert and a shared expert.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Sets experts in the layers that moe_layers lists or, without this list, in every
// interleave_moe_layer_step-th layer.
Result<> set_llama4_experts(ModelSpec& spec, const Config& config, const Experts& experts) {
  const int layers = static_cast<int>(spec.layers.size());
  TRY(std::vector<int> sparse, config.integers("moe_layers", {0, layers - 1}));
  TRY(const int step, config.integer("interleave_moe_layer_step", {1, 1024}, 1));
  if (sparse.empty())
    for (int i = step - 1; i < layers; i += step) sparse.push_back(i);
  TRY(const int dense, config.integer("intermediate_size_mlp", {1, 1 << 20}));
  for (LayerSpec& layer : spec.layers) layer.mlp().hidden = dense;
  for (const int i : sparse) spec.layers[static_cast<std::size_t>(i)].feed_forward = experts;
  return {};
}

// The first config.json files have 4 instead of true.
Result<bool> read_tuning(const Config& config) {
  constexpr std::string_view kField = "attn_temperature_tuning";
  if (const auto number = config.integer(kField, {0, 1024})) return *number != 0;
  return config.boolean(kField);
}

}  // namespace

Result<ModelSpec> describe_llama4(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_rope_layers(spec, config));
  TRY(const bool normed, config.boolean("use_qk_norm", true));
  TRY(const bool tuned, read_tuning(config));
  TRY(const int chunk, config.integer("attention_chunk_size", {1, 1 << 27}, 0));
  if (tuned) {
    TRY(spec.temperature.beta, config.number("attn_scale", {0, 100}));
    TRY(spec.temperature.length, config.integer("floor_scale", {1, 1 << 27}));
    spec.temperature.shift = 1;
  }
  for (LayerSpec& layer : spec.layers) {
    Attention& a = layer.attention();
    if (a.rope < 0) {
      a.scores.temperature = spec.temperature.length > 0;
      continue;
    }
    a.mask.window = a.mask.chunk = chunk;
    if (!normed) continue;
    a.norms.qk_kind = QkNorm::shared;
    a.norms.qk = {.kind = NormKind::rms, .eps = layer.pre_norm.eps, .stored = false};
  }
  spec.ropes[0].interleaved = true;
  Experts experts{.count = 0, .router = {}, .expert = spec.layers[0].mlp(), .shared = spec.layers[0].mlp()};
  TRY(experts.count, config.integer("num_local_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("num_experts_per_tok", {1, 1}, 1));
  experts.router.scores = RouterScores::sigmoid;
  experts.weigh_input = true;
  TRY_VOID(set_llama4_experts(spec, config, experts));

  Names& names = spec.names;
  names.prefixes = {"model.", "language_model.model."};
  names.mlp.up = {"feed_forward.gate_proj", "feed_forward.up_proj"};
  names.mlp.down = "feed_forward.down_proj";
  names.of<Experts>().router = "feed_forward.router";
  names.of<Experts>().storage = ExpertStorage::stacked_transposed;
  names.of<Experts>().up = {"feed_forward.experts.gate_up_proj"};
  names.of<Experts>().down = "feed_forward.experts.down_proj";
  names.of<Experts>().shared_up = {"feed_forward.shared_expert.gate_proj",
                                   "feed_forward.shared_expert.up_proj"};
  names.of<Experts>().shared_down = "feed_forward.shared_expert.down_proj";
  for (const char* other : {"vision_model.*", "multi_modal_projector.*"}) names.ignorable.emplace_back(other);
  spec.other_names = names;  // names in checkpoints with a vision encoder
  spec.other_names->lm_head = "language_model.lm_head";
  return spec;
}

std::span<const Family> llama4_families() {
  static constexpr Family kRows[] = {{"Llama4ForCausalLM", describe_llama4}};
  return kRows;
}

}  // namespace octavo
