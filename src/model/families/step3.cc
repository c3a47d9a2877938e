// Step-3 (StepFun, 2025): attention with one KV head and queries that are computed from a normalised latent,
// routed experts, and a shared expert.
#include "model/families/step3.h"

#include <charconv>
#include <ranges>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr std::string_view kLayersField = "moe_layers_enum";

// Reads the layers with experts, in the form "1,2,3". By default, all layers except the first have experts.
Result<std::vector<int>> expert_layers(const Config& config, int layers) {
  std::vector<int> numbers;
  if (!config.has(kLayersField)) {
    for (int i = 1; i < layers; ++i) numbers.push_back(i);
    return numbers;
  }
  if (config.is_list(kLayersField)) return config.integers(kLayersField, {0, layers - 1});
  TRY(const std::string list, config.text(kLayersField));
  for (const auto part : std::views::split(list, ',')) {
    const std::string_view text(part.begin(), part.end());
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0 || number >= layers)
      return invalid(kLayersField, "{} has \"{}\", but must list layers from 0 to {}",
                     config.where(kLayersField), text, layers - 1);
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Result<std::vector<bool>> step3_expert_layers(const Config& config, std::size_t layers) {
  if (config.has("mlp_layer_types")) return sparse_layers(config, layers);
  TRY(const std::vector<int> numbers, expert_layers(config, static_cast<int>(layers)));
  std::vector<bool> sparse(layers, false);
  for (const int i : numbers) sparse[static_cast<std::size_t>(i)] = true;
  return sparse;
}

void set_step3_names(Names& names) {
  names.of<Experts>().router = "moe.gate";
  names.of<Experts>().storage = ExpertStorage::stacked;
  names.of<Experts>().up = {"moe.gate_proj.weight", "moe.up_proj.weight"};
  names.of<Experts>().down = "moe.down_proj.weight";
  names.of<Experts>().shared_up = {"share_expert.gate_proj", "share_expert.up_proj"};
  names.of<Experts>().shared_down = "share_expert.down_proj";
}

static Result<ModelSpec> describe_step3(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.kv_heads = "num_attention_groups", .positions = "max_position_embedding"}));
  Attention& attention = spec.layers[0].attention();
  if (attention.kv_heads != 1)
    return field_failure("num_attention_groups", ErrorCode::unsupported,
                         "{} is {}, which is not supported: must be 1", config.where("num_attention_groups"),
                         attention.kv_heads);
  TRY(attention.q_rank, config.integer("share_q_dim", {1, 1 << 20}, attention.head_dim));
  attention.q_latent_norm = spec.final_norm;
  const Mlp mlp = spec.layers[0].mlp();
  Experts experts{.count = 0, .router = {}, .expert = mlp, .shared = mlp};
  TRY(experts.count, config.integer("moe_num_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("moe_top_k", {1, experts.count}));
  TRY(experts.router.renormalise, config.boolean("norm_expert_weight"));
  TRY(experts.expert.hidden, config.integer("moe_intermediate_size", {1, 1 << 20}));
  TRY(experts.shared->hidden, config.integer("share_expert_dim", {1, 1 << 20}));
  spec.layers.assign(spec.layers.size(), LayerSpec(spec.layers[0]));
  TRY(const std::vector<bool> sparse, step3_expert_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < sparse.size(); ++i)
    if (sparse[i]) spec.layers[i].feed_forward = experts;
  set_step3_names(spec.names);
  spec.names.of<LatentAttention>().q_down = "self_attn.q_proj";
  spec.names.of<LatentAttention>().q_norm = "self_attn.inter_norm";
  spec.names.of<LatentAttention>().q_up = "self_attn.wq";
  return spec;
}

// Describes the published checkpoint, which also contains a vision encoder that is not loaded.
static Result<ModelSpec> describe_step3_text(const Config& config) {
  TRY(ModelSpec spec, describe_step3(config));
  for (const char* other :
       {"vision_model.*", "vit_downsampler.*", "vit_downsampler2.*", "vit_large_projector.*"})
    spec.names.ignorable.emplace_back(other);
  return spec;
}

std::span<const Family> step3_families() {
  static constexpr Family kRows[] = {
      {"Step3TextForCausalLM", describe_step3},
      {"Step3VLForConditionalGeneration", describe_step3_text, true},
  };
  return kRows;
}

}  // namespace octavo
