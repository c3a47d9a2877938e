// StarCoder and SantaCoder (GPTBigCode; Li et al., 2023): GPT-2 with one KV head. StarCoder2 (Lozhkov et al.,
// 2024): RoPE and a sliding window instead of learned positions.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_gpt_bigcode(const Config& config) {
  TRY(ModelSpec spec, describe_gpt2(config));
  TRY(const bool one_key_head, config.boolean("multi_query", true));
  for (LayerSpec& layer : spec.layers)
    if (one_key_head) layer.attention().kv_heads = 1;
  spec.names.transposed = false;
  spec.names.attention.qkv_order = QkvOrder::by_head;
  return spec;
}

static Result<ModelSpec> describe_starcoder2(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.eps = "norm_epsilon", .norm = {.kind = NormKind::layer, .bias = true}}));
  TRY_VOID(set_window_of_all(spec, config));
  TRY(const bool bias, config.boolean("use_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = bias;
  }
  spec.names.mlp.up = {"mlp.c_fc"};
  spec.names.mlp.down = "mlp.c_proj";
  return spec;
}

std::span<const Family> starcoder_families() {
  static constexpr Family kRows[] = {
      {"GPTBigCodeForCausalLM", describe_gpt_bigcode},
      {"Starcoder2ForCausalLM", describe_starcoder2},
  };
  return kRows;
}

}  // namespace octavo
