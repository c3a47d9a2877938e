// Kimi Linear (Moonshot AI, 2025): three layers with Kimi delta attention, then one layer with latent
// attention without RoPE, and so on. The experts are DeepSeek-V3's, with Mixtral's names.
#include "model/families/bases.h"
#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 2> kKimiKinds{"linear_attention", "full_attention"};

// Returns the layers with Kimi delta attention. config.json lists their numbers, counted from 1, or the type
// of each layer.
Result<std::vector<bool>> delta_layers(const Config& config, const std::optional<Config>& linear,
                                       std::size_t layers) {
  TRY(const std::vector<std::string> kinds, read_layer_kinds(config, "layer_types", kKimiKinds, layers));
  std::vector<bool> delta;
  for (std::size_t i = 0; i < layers; ++i)
    delta.push_back(kinds.empty() ? i == 0 || i % 4 != 0 : kinds[i] == kKimiKinds[0]);
  if (!kinds.empty() || !linear || !linear->has("kda_layers")) return delta;
  TRY(const std::vector<int> listed, linear->integers("kda_layers", {1, static_cast<int>(layers)}));
  delta.assign(layers, false);
  for (const int layer : listed) delta[static_cast<std::size_t>(layer - 1)] = true;
  return delta;
}

}  // namespace

static Result<ModelSpec> describe_kimi_linear(const Config& file) {
  const Config config = file.with_names({{"max_position_embeddings", "model_max_length"},
                                         {"n_group", "num_expert_group"},
                                         {"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"norm_topk_prob", "moe_renormalize"},
                                         {"num_experts_per_tok", "num_experts_per_token"},
                                         {"scoring_func", "moe_router_activation_func"}});
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  TRY_VOID(refuse(config, "mla_use_nope", false));
  spec.ropes[0].scaling = {.kind = RopeScalingKind::proportional, .share = 0};
  TRY(const std::optional<Config> nested, config.object("linear_attn_config"));
  const Config& linear = nested ? *nested : config;
  const auto field = [&](std::string_view in_nested, std::string_view in_file) {
    return nested ? in_nested : in_file;
  };
  KimiDelta delta{.norm = spec.final_norm};
  TRY(delta.heads, linear.integer(field("num_heads", "linear_num_heads"), {1, 4096}));
  TRY(delta.head_dim, linear.integer(field("head_dim", "linear_head_dim"), {1, kMaxStateDim}));
  TRY(delta.conv_width,
      linear.integer(field("short_conv_kernel_size", "linear_conv_kernel_dim"), {2, kMaxConvWidth}));
  TRY(const std::vector<bool> forgets, delta_layers(config, nested, spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (forgets[i]) spec.layers[i].mixer = delta;
  spec.names.of<Experts>().router = "block_sparse_moe.gate";
  spec.names.of<Experts>().choice_bias = "block_sparse_moe.gate.e_score_correction_bias";
  spec.names.of<Experts>().up = {"block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3"};
  spec.names.of<Experts>().down = "block_sparse_moe.experts.{}.w2";
  spec.names.of<Experts>().shared_up = {"block_sparse_moe.shared_experts.gate_proj",
                                        "block_sparse_moe.shared_experts.up_proj"};
  spec.names.of<Experts>().shared_down = "block_sparse_moe.shared_experts.down_proj";
  // transformers uses the experts' names for dense layers too.
  spec.other_names = spec.names;
  spec.other_names->mlp.up = {"block_sparse_moe.gate_proj", "block_sparse_moe.up_proj"};
  spec.other_names->mlp.down = "block_sparse_moe.down_proj";
  return spec;
}

std::span<const Family> kimi_linear_families() {
  static constexpr Family kRows[] = {{"KimiLinearForCausalLM", describe_kimi_linear}};
  return kRows;
}

}  // namespace octavo
