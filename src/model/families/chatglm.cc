// ChatGLM 2 and 3 and the first GLM-4 (GLM team, 2023 and 2024) in their original format: GLM (glm.cc) with
// other tensor names and field names.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_chatglm(const Config& config) {
  for (const char* off : {"rmsnorm", "post_layer_norm"}) TRY_VOID(refuse(config, off, false));
  for (const char* on : {"add_bias_linear", "apply_residual_connection_post_layernorm"})
    TRY_VOID(refuse(config, on, true));
  TRY(const bool grouped, config.boolean("multi_query_attention", false));
  TRY(const bool bias, config.boolean("add_qkv_bias", false));
  TRY(const double ratio, config.number("rope_ratio", {1e-3, 1e9}, 1.0));
  TRY(ModelSpec spec, describe_dense(config, {.layers = "num_layers",
                                              .kv_heads = grouped ? "multi_query_group_num" : "",
                                              .hidden = "ffn_hidden_size",
                                              .head_dim = "kv_channels",
                                              .positions = "seq_length",
                                              .activation = "",
                                              .eps = "layernorm_epsilon",
                                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(spec.vocab, config.integer("padded_vocab_size", {1, kMaxVocab}, spec.vocab));
  spec.ropes[0].theta *= ratio;
  TRY(spec.ropes[0].interleaved, config.boolean("original_rope", true));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = bias;
  spec.names = {.prefixes = {"transformer."},
                .lm_head = "transformer.output_layer",
                .embedding = {.tokens = "embedding.word_embeddings"},
                .final_norm = "encoder.final_layernorm",
                .layers = "encoder.layers.",
                .attention = {.qkv = {"self_attention.query_key_value"}, .out = "self_attention.dense"},
                .mlp = {.up = {"mlp.dense_h_to_4h"}, .down = "mlp.dense_4h_to_h"}};
  return spec;
}

std::span<const Family> chatglm_families() {
  static constexpr Family kRows[] = {
      {"ChatGLMForConditionalGeneration", describe_chatglm},
      {"ChatGLMModel", describe_chatglm},
  };
  return kRows;
}

}  // namespace octavo
