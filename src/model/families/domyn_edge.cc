// Domyn Edge (Domyn, 2026): norms before and after attention and the MLP, a norm of queries without a weight,
// and a RoPE and a window that each layer may lack. Heads may have another width in each layer.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Returns the numbers of tokens that a query sees; 0: all. A pair [n, 0] of window_sizes means the n tokens
// before the query, besides itself; [-1, -1] means no window.
Result<std::vector<int>> read_windows(const Config& config, std::size_t layers) {
  constexpr std::string_view kField = "window_sizes";
  TRY(const auto pairs, config.pairs(kField, {-1, (1 << 27) - 1}));
  if (pairs.size() != layers)
    return invalid(kField, "{} has {} entries, but the model has {} layers", config.where(kField),
                   pairs.size(), layers);
  std::vector<int> windows;
  for (const auto& [before, after] : pairs) windows.push_back(before > 0 ? before + 1 : 0);
  return windows;
}

Result<std::vector<bool>> read_rope_layers(const Config& config, std::size_t layers) {
  constexpr std::string_view kField = "position_layers";
  TRY(const std::vector<std::string> kinds, config.texts(kField));
  if (kinds.size() != layers)
    return invalid(kField, "{} has {} entries, but the model has {} layers", config.where(kField),
                   kinds.size(), layers);
  std::vector<bool> rotates;
  for (const std::string& kind : kinds) {
    if (kind != "rope" && kind != "nope")
      return field_failure(kField, ErrorCode::unsupported,
                           "{} has \"{}\", which is not supported: must be rope or nope",
                           config.where(kField), kind);
    rotates.push_back(kind == "rope");
  }
  return rotates;
}

// Returns the width of a layer's heads, which per_layer_config may change for single layers.
Result<int> read_head_dim(const Config& config, std::size_t layer, int usual) {
  TRY(const std::optional<Config> changes, config.object("per_layer_config"));
  if (!changes) return usual;
  TRY(const std::optional<Config> own, changes->object(std::to_string(layer)));
  return own ? own->integer("head_dim", {2, 4096}, usual) : usual;
}

// Returns the index of the rope for heads of this width.
Result<int> find_rope(ModelSpec& spec, const Config& config, int head_dim) {
  for (std::size_t i = 0; i < spec.ropes.size(); ++i)
    if (spec.ropes[i].rotary_dim == head_dim) return static_cast<int>(i);
  TRY(const int positions, config.integer("max_position_embeddings", {1, 1 << 27}));
  TRY(spec.ropes.emplace_back(), read_rope(config, {}, head_dim, positions));
  return static_cast<int>(spec.ropes.size() - 1);
}

}  // namespace

static Result<ModelSpec> describe_domyn_edge(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  const std::size_t layers = spec.layers.size();
  TRY(const std::vector<int> windows, read_windows(config, layers));
  TRY(const std::vector<bool> rotates, read_rope_layers(config, layers));
  for (std::size_t i = 0; i < layers; ++i) {
    LayerSpec& layer = spec.layers[i];
    Attention& attention = layer.attention();
    layer.post_norm = layer.pre_norm;
    attention.norms = {.qk_kind = QkNorm::shared, .qk = layer.pre_norm, .q_plain = true};
    attention.mask.window = windows[i];
    TRY(attention.head_dim, read_head_dim(config, i, attention.head_dim));
    attention.scores.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.head_dim)));
    attention.rope = -1;
    if (rotates[i]) {
      TRY(attention.rope, find_rope(spec, config, attention.head_dim));
    }
  }
  Names& names = spec.names;
  names.attention.norm = "pre_attention_norm";
  names.attention.post_norm = "post_attention_norm";
  names.attention.qkv = {"attention.q_proj", "attention.k_proj", "attention.v_proj"};
  names.attention.k_norm = "attention.k_norm";
  names.attention.out = "attention.o_proj";
  names.mlp.norm = "pre_feedforward_norm";
  names.mlp.post_norm = "post_feedforward_norm";
  names.mlp.up = {"feedforward.gate_proj", "feedforward.up_proj"};
  names.mlp.down = "feedforward.down_proj";
  return spec;
}

std::span<const Family> domyn_edge_families() {
  static constexpr Family kRows[] = {{"DomynEdgeForCausalLM", describe_domyn_edge}};
  return kRows;
}

}  // namespace octavo
