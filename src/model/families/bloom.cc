// BLOOM (Scao et al., 2022): ALiBi, a norm after the embeddings, biases everywhere.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_bloom(const Config& config) {
  TRY_VOID(refuse(config, "apply_residual_connection_post_layernorm", true));
  const auto either = [&](std::string_view newer, std::string_view older) {
    return config.has(newer) ? newer : older;
  };
  TRY(ModelSpec spec, describe_dense(config, {.dim = config.has("n_embed") ? "n_embed" : "hidden_size",
                                              .layers = either("num_hidden_layers", "n_layer"),
                                              .heads = either("num_attention_heads", "n_head"),
                                              .kv_heads = "",
                                              .hidden = "",
                                              .hidden_to_dim = 4,
                                              .head_dim = "",
                                              .positions = "seq_length",
                                              .activation = "",
                                              .eps = "layer_norm_epsilon",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  for (LayerSpec& layer : spec.layers) {
    Attention& a = layer.attention();
    a.scores.slopes = alibi_slopes(a.q_heads, 8);
    a.biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().activation = Activation::gelu_tanh;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  spec.embedding.norm = spec.final_norm;
  spec.names = {.prefixes = {"transformer.", ""},
                .embedding = {.tokens = "word_embeddings", .norm = "word_embeddings_layernorm"},
                .final_norm = "ln_f",
                .layers = "h.",
                .attention = {.qkv = {"self_attention.query_key_value"},
                              .qkv_order = QkvOrder::by_head,
                              .out = "self_attention.dense"},
                .mlp = {.up = {"mlp.dense_h_to_4h"}, .down = "mlp.dense_4h_to_h"}};
  return spec;
}

std::span<const Family> bloom_families() {
  static constexpr Family kRows[] = {{"BloomForCausalLM", describe_bloom}};
  return kRows;
}

}  // namespace octavo
