// GPT-2 (Radford et al., 2019): learned positions, layer norms, biases everywhere, and transposed matrices in
// the checkpoint.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {

Result<ModelSpec> describe_gpt2(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "n_embd",
                                              .layers = "n_layer",
                                              .heads = "n_head",
                                              .kv_heads = "n_head",
                                              .hidden = "n_inner",
                                              .hidden_to_dim = 4,
                                              .head_dim = "",
                                              .positions = "n_positions",
                                              .activation = "activation_function",
                                              .eps = "layer_norm_epsilon",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  TRY(const bool scaled, config.boolean("scale_attn_weights", false));
  TRY(const bool by_layer, config.boolean("scale_attn_by_inverse_layer_idx", false));
  int number = 0;
  for (LayerSpec& layer : spec.layers) {
    ++number;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
    if (!scaled) layer.attention().scores.scale = 1;
    if (by_layer) layer.attention().scores.scale /= static_cast<float>(number);
  }
  spec.embedding.learned_positions = spec.max_positions;
  spec.names = {.prefixes = {"transformer.", ""},
                .embedding = {.tokens = "wte", .positions = "wpe"},
                .final_norm = "ln_f",
                .layers = "h.",
                .attention = {.norm = "ln_1", .qkv = {"attn.c_attn"}, .out = "attn.c_proj"},
                .mlp = {.norm = "ln_2", .up = {"mlp.c_fc"}, .down = "mlp.c_proj"},
                .transposed = true,
                .ignorable = {"*.attn.bias", "*.attn.masked_bias"}};
  return spec;
}

std::span<const Family> gpt2_families() {
  static constexpr Family kRows[] = {
      {"GPT2ForSequenceClassification", describe_decoder_classifier<describe_gpt2>},
      {"GPT2LMHeadModel", describe_gpt2},
  };
  return kRows;
}

}  // namespace octavo
