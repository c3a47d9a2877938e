// Llama-3.x-Nemotron Super and Ultra (Bercovich et al., "Puzzle: Distillation-Based NAS", 2024): Llama whose
// layers have different numbers of KV heads and MLP widths. Some layers have no attention or no MLP.
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Returns the hidden size: `multiple` times two thirds of the network's width, as in Llama, rounded up to a
// multiple of 256.
int hidden_of(double multiple, int dim) {
  constexpr int kBlock = 256;
  const int hidden = static_cast<int>(2 * multiple * dim / 3);
  return (hidden + kBlock - 1) / kBlock * kBlock;
}

Result<> set_attention(LayerSpec& layer, const Config& config) {
  TRY_VOID(refuse(config, "replace_with_linear", true));
  TRY(const bool skipped, config.boolean("no_op", false));
  if (skipped) {
    layer.mixer = std::monostate();
    return {};
  }
  Attention& attention = layer.attention();
  TRY(const int group, config.integer("n_heads_in_group", {1, attention.q_heads}));
  if (attention.q_heads % group != 0)
    return invalid("n_heads_in_group", "{} {} must divide num_attention_heads {}",
                   config.where("n_heads_in_group"), group, attention.q_heads);
  attention.kv_heads = attention.q_heads / group;
  return {};
}

Result<> set_mlp(LayerSpec& layer, const Config& config, int dim) {
  TRY_VOID(refuse(config, "replace_with_linear", true));
  TRY(const bool skipped, config.boolean("no_op", false));
  if (skipped) {
    layer.feed_forward = std::monostate();
    return {};
  }
  if (config.has("ffn_mult")) {
    TRY(const double multiple, config.number("ffn_mult", {1e-3, 100}));
    layer.mlp().hidden = hidden_of(multiple, dim);
    return {};
  }
  TRY(layer.mlp().hidden, config.integer("intermediate_size", {1, 1 << 20}));
  return {};
}

}  // namespace

static Result<ModelSpec> describe_nemotron_nas(const Config& config) {
  constexpr std::string_view kField = "block_configs";
  TRY(const std::vector<Config> blocks, config.list(kField));
  TRY(ModelSpec spec, describe_llama(config));
  if (blocks.size() != spec.layers.size())
    return invalid(kField, "{} has {} entries, but the model has {} layers", config.where(kField),
                   blocks.size(), spec.layers.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    TRY(const std::optional<Config> attention, blocks[i].object("attention"));
    TRY(const std::optional<Config> mlp, blocks[i].object("ffn"));
    if (!attention || !mlp)
      return invalid(kField, "{}: entry {} must have attention and ffn", config.where(kField), i);
    TRY_VOID(set_attention(spec.layers[i], *attention));
    TRY_VOID(set_mlp(spec.layers[i], *mlp, spec.dim));
  }
  return spec;
}

std::span<const Family> nemotron_nas_families() {
  static constexpr Family kRows[] = {{"DeciLMForCausalLM", describe_nemotron_nas}};
  return kRows;
}

}  // namespace octavo
