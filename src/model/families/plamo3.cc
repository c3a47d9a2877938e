// PLaMo 3 (Preferred Networks, 2025): norms with weight 1 + w before attention and MLP, norms with smaller
// offsets after them, and norms of queries and keys. Most layers have sliding windows and a separate RoPE
// base.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_plamo3(const Config& file) {
  const Config config = file.with_names({{"rope_local_base_freq", "rope_local_theta"}});
  const Dialect dialect{.norm = {.kind = NormKind::rms, .weight_offset = 1}};
  TRY(ModelSpec spec, describe_dense(config, dialect));
  TRY(const int pattern, config.integer("sliding_window_pattern", {1, 1024}, 8));
  TRY_VOID(set_windows(spec, config, [pattern](int layer) { return (layer + 1) % pattern != 0; }));
  TRY_VOID(set_ropes_by_kind(spec, config, dialect));
  TRY(spec.ropes[1].theta, config.number("rope_local_base_freq", {1, 1e12}, spec.ropes[1].theta));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms.qk_kind = QkNorm::shared;
    layer.attention().norms.qk = layer.post_norm = layer.pre_norm;
    layer.post_norm.weight_offset = 1.0F / 5;
    layer.last_offset = static_cast<float>(std::pow(5, -1.5));
  }
  Names& names = spec.names;
  names.layers = "layers.layers.";
  names.attention.norm = "pre_mixer_norm";
  names.attention.post_norm = "post_mixer_norm";
  names.mlp.norm = "pre_mlp_norm";
  names.mlp.post_norm = "post_mlp_norm";
  names.attention.qkv = {"mixer.qkv_proj"};
  names.attention.q_norm = "mixer.q_norm";
  names.attention.k_norm = "mixer.k_norm";
  names.attention.out = "mixer.o_proj";
  names.mlp.up = {"mlp.gate_up_proj"};
  return spec;
}

std::span<const Family> plamo3_families() {
  static constexpr Family kRows[] = {{"Plamo3ForCausalLM", describe_plamo3}};
  return kRows;
}

}  // namespace octavo
