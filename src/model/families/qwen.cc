// Qwen2 (Yang et al., 2024): biases on queries, keys and values. Qwen3 (Yang et al., 2025): norms of queries
// and keys instead.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

Result<ModelSpec> describe_qwen(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool windows, config.boolean("use_sliding_window", false));
  if (!windows) return spec;
  TRY(const int first, config.integer("max_window_layers", {0, 1024}, 28));
  TRY_VOID(set_windows(spec, config, [first](int layer) { return layer >= first; }));
  return spec;
}

}  // namespace

Result<ModelSpec> describe_qwen2(const Config& config) {
  TRY(ModelSpec spec, describe_qwen(config));
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = true;
  return spec;
}

Result<ModelSpec> describe_qwen3(const Config& config) {
  TRY(ModelSpec spec, describe_qwen(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = bias;
    layer.attention.qk_norm = QkNorm::shared;
    layer.attention.qk_norm_spec = layer.pre_norm;
  }
  return spec;
}

}  // namespace octavo
