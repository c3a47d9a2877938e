// GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): attention and MLP in parallel, RoPE on a
// quarter of each head, and a fused matrix of queries, keys and values, ordered by head.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_gpt_neox(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .theta = "rotary_emb_base",
                                              .rotary_fraction = "rotary_pct"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  TRY(const bool parallel, config.boolean("use_parallel_residual", false));
  for (LayerSpec& layer : spec.layers) {
    if (parallel) layer.residual = Residual::parallel;
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  spec.names = {.prefixes = {"gpt_neox."},
                .lm_head = "embed_out",
                .embedding = {.tokens = "embed_in"},
                .final_norm = "final_layer_norm",
                .attention = {.qkv = {"attention.query_key_value"},
                              .qkv_order = QkvOrder::by_head,
                              .out = "attention.dense"},
                .mlp = {.up = {"mlp.dense_h_to_4h"}, .down = "mlp.dense_4h_to_h"},
                .ignorable = {"*.attention.bias", "*.attention.masked_bias"}};
  return spec;
}

std::span<const Family> gpt_neox_families() {
  static constexpr Family kRows[] = {{"GPTNeoXForCausalLM", describe_gpt_neox}};
  return kRows;
}

}  // namespace octavo
