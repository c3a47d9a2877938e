// Falcon (Almazrouei et al., 2023): attention and feed-forward in parallel, and few KV heads. falcon-rw has
// ALiBi instead of RoPE. The first checkpoints have the name RW ("RefinedWeb").
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// `newer`: the architecture of the 40B model, which has several KV heads.
Result<ModelSpec> describe(const Config& config, bool newer) {
  TRY(const bool alibi, config.boolean("alibi", false));
  TRY(const bool one_key_head, config.boolean("multi_query", true));
  TRY(const bool parallel, config.boolean("parallel_attn", true));
  TRY(const bool bias, config.boolean("bias", false));
  TRY(const int norms, config.integer("num_ln_in_parallel_attn", {1, 2}, newer ? 2 : 1));
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = newer ? "num_kv_heads" : "num_attention_heads",
                                              .hidden = "ffn_hidden_size",
                                              .hidden_to_dim = 4,
                                              .head_dim = "",
                                              .activation = "activation",
                                              .eps = "layer_norm_epsilon",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = !alibi}));
  for (LayerSpec& layer : spec.layers) {
    Attention& a = layer.attention();
    if (!newer && one_key_head) a.kv_heads = 1;
    a.biases = {.qkv = bias, .out = bias};
    if (alibi) a.scores.slopes = alibi_slopes(a.q_heads, 8);
    for (float& slope : a.scores.slopes) slope *= a.scores.scale;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = bias;
    if (newer || parallel)
      layer.residual = newer && norms == 2 ? Residual::parallel : Residual::parallel_shared;
  }
  const bool own_norms = newer && norms == 2;
  spec.names = {.prefixes = {"transformer."},
                .embedding = {.tokens = "word_embeddings"},
                .final_norm = "ln_f",
                .layers = "h.",
                .attention = {.norm = own_norms ? "ln_attn" : "input_layernorm",
                              .qkv = {"self_attention.query_key_value"},
                              .qkv_order = QkvOrder::by_head,
                              .out = "self_attention.dense"},
                .mlp = {.norm = own_norms ? "ln_mlp" : "post_attention_layernorm",
                        .up = {"mlp.dense_h_to_4h"},
                        .down = "mlp.dense_4h_to_h"}};
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_falcon(const Config& config) {
  TRY(const bool newer, config.boolean("new_decoder_architecture", false));
  return describe(config, newer);
}

static Result<ModelSpec> describe_refined_web(const Config& file) {
  const Config config = file.with_names({{"hidden_size", "n_embed"},
                                         {"num_attention_heads", "n_head"},
                                         {"num_hidden_layers", "n_layer"},
                                         {"num_kv_heads", "n_head_kv"}});
  return describe(config, file.has("n_head_kv"));
}

std::span<const Family> falcon_families() {
  static constexpr Family kRows[] = {
      {"FalconForCausalLM", describe_falcon},
      {"RWForCausalLM", describe_refined_web},
  };
  return kRows;
}

}  // namespace octavo
