// Zamba2 (Zyphra, 2024): Mamba2 layers, some of which run attention and an MLP first. These layers share the
// matrices of attention and MLP, and each adds its own low-rank matrices.
#include <cmath>
#include <utility>

#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

constexpr std::string_view kKindsField = "layers_block_type";

Result<SharedTransformer> read_shared(const Config& config, const Dialect& dialect, ModelSpec& spec) {
  LayerSpec& dense = spec.layers[0];
  SharedTransformer shared{.heads = dense.attention().q_heads, .mlp = dense.mlp(), .norm = dense.pre_norm};
  if (dense.attention().kv_heads != shared.heads)
    return field_failure("num_key_value_heads", ErrorCode::unsupported,
                         "{} is {}, but must be equal to num_attention_heads {}",
                         config.where("num_key_value_heads"), dense.attention().kv_heads, shared.heads);
  // factor 2, because the input is the residual and the embedding, concatenated
  shared.head_dim = 2 * spec.dim / shared.heads;
  shared.scale = static_cast<float>(1 / std::sqrt(shared.head_dim / 2.0));
  TRY(shared.mlp.up_bias, config.boolean("add_bias_linear"));
  shared.mlp.down_bias = shared.mlp.up_bias;
  TRY(shared.mlp_rank, config.integer("adapter_rank", {1, 1 << 14}));
  TRY(const bool adapted, config.boolean("use_shared_attention_adapter"));
  if (adapted) shared.attention_rank = shared.mlp_rank;
  TRY(const bool rotates, config.boolean("use_mem_rope"));
  if (rotates) {
    shared.rope = 0;
    TRY(const RopeSpec rope, read_rope(config, dialect, shared.head_dim, spec.max_positions));
    spec.ropes = {rope};
  }
  return shared;
}

}  // namespace

static Result<ModelSpec> describe_zamba2(const Config& config) {
  const Dialect dialect{.hidden_to_dim = 4, .head_dim = "attention_head_dim", .rotary = false};
  TRY(ModelSpec spec, describe_dense(config, dialect));
  TRY_VOID(refuse(config, "use_long_context", true));
  TRY(SharedTransformer shared, read_shared(config, dialect, spec));
  TRY(const std::int64_t inner, read_mamba_inner(config, spec.dim));
  NormSpec gate_norm = spec.final_norm;
  gate_norm.eps = 1e-5F;
  TRY(Mamba2 mamba, read_mamba2(config,
                                {.heads = "n_mamba_heads",
                                 .head_dim = "mamba_headdim",
                                 .groups = "mamba_ngroups",
                                 .conv_bias = "use_conv_bias",
                                 .bias = "add_bias_linear"},
                                inner, gate_norm));
  TRY(const double least, config.number("time_step_min", {0, 1e6}));
  mamba.least_step = static_cast<float>(least);  // transformers ignores time_step_limit too
  constexpr std::string_view kKinds[] = {"linear_attention", "hybrid"};
  TRY(const std::vector<std::string> kinds,
      read_layer_kinds(config, kKindsField, kKinds, spec.layers.size()));
  if (kinds.empty()) return invalid(kKindsField, "{} is missing", config.where(kKindsField));
  TRY(const int blocks, config.integer("num_mem_blocks", {1, 64}));
  std::vector<int> owners;
  for (int i = 0; std::cmp_less(i, kinds.size()); ++i) {
    LayerSpec& layer = spec.layers[static_cast<std::size_t>(i)];
    layer = {.mixer = mamba, .pre_norm = layer.pre_norm};
    if (kinds[static_cast<std::size_t>(i)] != "hybrid") continue;
    if (std::ssize(owners) < blocks) owners.push_back(i);
    shared.owner = owners[static_cast<std::size_t>(shared.use % blocks)];
    layer.shared = shared;
    layer.prefix = "mamba_decoder.";
    ++shared.use;
  }
  spec.names.final_norm = "final_layernorm";
  return spec;
}

std::span<const Family> zamba2_families() {
  static constexpr Family kRows[] = {{"Zamba2ForCausalLM", describe_zamba2}};
  return kRows;
}

}  // namespace octavo
