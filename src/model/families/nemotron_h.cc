// Nemotron-H and Nemotron 3 (NVIDIA, 2025). Each layer has only one block: Mamba2, attention, an MLP or
// experts. In networks that Puzzle shrank, blocks of the same type differ.
#include <algorithm>

#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

constexpr std::size_t kLayersMax = 1024;
constexpr std::string_view kKinds[] = {"linear_attention", "full_attention", "moe", "mlp"};

// Returns the type of each layer. Older files have a string with one letter per layer.
Result<std::vector<std::string>> list_kinds(const Config& config) {
  TRY(std::vector<std::string> kinds, read_layer_kinds(config, "layers_block_type", kKinds, std::nullopt));
  if (kinds.empty()) {
    TRY(kinds, read_layer_kinds(config, "layer_types", kKinds, std::nullopt));
  }
  if (!kinds.empty()) return kinds;
  constexpr std::string_view kField = "hybrid_override_pattern", kLetters = "M*E-";
  TRY(const std::string pattern, config.text(kField, "ME*-"));  // default of transformers
  for (const char letter : pattern) {
    const std::size_t kind = kLetters.find(letter);
    if (kind == std::string_view::npos)
      return field_failure(kField, ErrorCode::unsupported,
                           "{} has '{}', which is not supported: must be one of {}", config.where(kField),
                           letter, kLetters);
    kinds.emplace_back(kKinds[kind]);
  }
  return kinds;
}

Result<std::vector<std::string>> read_kinds(const Config& config) {
  TRY(std::vector<std::string> kinds, list_kinds(config));
  if (kinds.empty() || kinds.size() > kLayersMax)
    return invalid("hybrid_override_pattern", "{}: the pattern has {} layers, but must have 1 to {}",
                   config.where("hybrid_override_pattern"), kinds.size(), kLayersMax);
  return kinds;
}

Result<Experts> read_nemotron_experts(const Config& config, const Mlp& like) {
  ModelSpec spec;
  spec.layers = {LayerSpec{.feed_forward = like}};
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  auto* made = std::get_if<Experts>(&spec.layers[0].feed_forward);
  if (made == nullptr)
    return invalid("n_routed_experts",
                   "{}: the pattern has layers of experts, but n_routed_experts, first_k_dense_replace or "
                   "mlp_layer_types exclude them",
                   config.where("n_routed_experts"));
  Experts experts = std::move(*made);
  if (config.has("moe_latent_size")) {
    TRY(experts.latent, config.integer("moe_latent_size", {1, 1 << 20}));
    TRY_VOID(refuse(config, "mlp_bias", true));
  }
  experts.shared = like;
  TRY(experts.shared->hidden, config.integer("moe_shared_expert_intermediate_size", {1, 1 << 20}));
  return experts;
}

Result<Mixer> read_nemotron_mamba(const Config& config, const NormSpec& norm) {
  TRY_VOID(support(config, "mamba_hidden_act", "silu"));
  TRY(Mamba2 mamba, read_mamba2(config,
                                {.heads = "mamba_num_heads",
                                 .head_dim = "mamba_head_dim",
                                 .groups = "n_groups",
                                 .state_dim = "ssm_state_size",
                                 .conv_width = "conv_kernel",
                                 .conv_bias = "use_conv_bias",
                                 .bias = "use_bias"},
                                {}, norm));
  TRY(const double least, config.number("time_step_min", {0, 1e6}));
  mamba.least_step = static_cast<float>(least);  // transformers ignores time_step_limit too
  mamba.most_step = std::numeric_limits<float>::infinity();
  return mamba;
}

Result<ModelSpec> describe_parts(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.activation = "mlp_hidden_act", .eps = "layer_norm_epsilon", .rotary = false}));
  TRY_VOID(set_window(spec, config));
  TRY(const bool mlp_bias, config.boolean("mlp_bias"));
  for (LayerSpec& layer : spec.layers) {
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  return spec;
}

// Appends a layer, which has one of the blocks of `parts`.
Result<> add_layer(ModelSpec& spec, const Config& config, const ModelSpec& parts, std::string_view kind) {
  LayerSpec& half = spec.layers.emplace_back(parts.layers[0]);
  const Mlp mlp = half.mlp();
  if (kind == "linear_attention") {
    TRY(half.mixer, read_nemotron_mamba(config, spec.final_norm));
  }
  if (kind == "mlp" || kind == "moe") half.mixer = std::monostate();
  if (kind != "mlp") half.feed_forward = std::monostate();
  if (kind == "moe") {
    TRY(half.feed_forward, read_nemotron_experts(config, mlp));
  }
  return {};
}

void set_nemotron_names(Names& names) {
  names.prefixes = {"backbone.", "model."};
  names.embedding.tokens = "embeddings";
  names.final_norm = "norm_f";
  names.attention.norm = names.mlp.norm = "norm";
  names.attention.qkv = {"mixer.q_proj", "mixer.k_proj", "mixer.v_proj"};
  names.attention.out = "mixer.o_proj";
  names.of<Mamba>().prefix = "mixer.";
  names.mlp.up = {"mixer.up_proj"};
  names.mlp.down = "mixer.down_proj";
  names.of<Experts>().router = "mixer.gate";
  names.of<Experts>().choice_bias = "mixer.gate.e_score_correction_bias";
  names.of<Experts>().up = {"mixer.experts.{}.up_proj"};
  names.of<Experts>().down = "mixer.experts.{}.down_proj";
  names.of<Experts>().latent = "mixer.fc1_latent_proj";
  names.of<Experts>().lift = "mixer.fc2_latent_proj";
  names.of<Experts>().shared_up = {"mixer.shared_experts.up_proj"};
  names.of<Experts>().shared_down = "mixer.shared_experts.down_proj";
  names.ignorable.emplace_back("mtp.*");
}

}  // namespace

static Result<ModelSpec> describe_nemotron_h(const Config& config) {
  TRY(ModelSpec spec, describe_parts(config));
  const ModelSpec parts = spec;
  TRY(const std::vector<std::string> kinds, read_kinds(config));
  spec.layers.clear();
  for (const std::string& kind : kinds) TRY_VOID(add_layer(spec, config, parts, kind));
  set_nemotron_names(spec.names);
  return spec;
}

// block_configs has an object for each layer: its block_type, and fields that replace those of the file.
static Result<ModelSpec> describe_nemotron_h_puzzle(const Config& config) {
  constexpr std::string_view kField = "block_configs";
  TRY(const std::vector<Config> blocks, config.list(kField));
  if (blocks.empty()) return describe_nemotron_h(config);
  TRY(ModelSpec spec, describe_parts(config.with_fields_of(blocks[0])));
  spec.layers.clear();
  for (const Config& block : blocks) {
    TRY(std::string kind, block.text("block_type"));
    if (kind == "mamba") kind = "linear_attention";
    if (kind == "attention") kind = "full_attention";
    if (std::ranges::count(kKinds, kind) == 0)
      return field_failure("block_type", ErrorCode::unsupported,
                           "{} is \"{}\", which is not supported: must be mamba, attention, moe or mlp",
                           block.where("block_type"), kind);
    const Config own = config.with_fields_of(block);
    TRY(const ModelSpec parts, describe_parts(own));
    TRY_VOID(add_layer(spec, own, parts, kind));
  }
  set_nemotron_names(spec.names);
  return spec;
}

std::span<const Family> nemotron_h_families() {
  static constexpr Family kRows[] = {
      {"NemotronHForCausalLM", describe_nemotron_h},
      {"NemotronHPuzzleForCausalLM", describe_nemotron_h_puzzle},
  };
  return kRows;
}

}  // namespace octavo
