// Step-1 (StepFun, 2025), the language model of Step-Audio: Llama without RoPE. Instead, scores fall by the
// square root of the distance.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_step1(const Config& file) {
  const Config config = file.with_names({{"num_key_value_heads", "num_attention_groups"}});
  TRY(ModelSpec spec,
      describe_dense(config,
                     {.head_dim = "",
                      .positions = config.has("max_seq_len") ? "max_seq_len" : "max_position_embeddings",
                      .activation = "",
                      .rotary = false}));
  TRY(const bool attention_bias, config.boolean("attention_bias", false));
  TRY(const bool mlp_bias, config.boolean("mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.biases = {.qkv = attention_bias, .out = attention_bias};
    attention.scores.slopes = alibi_slopes(attention.q_heads, 8);
    attention.scores.root_distances = spec.max_positions;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  return spec;
}

std::span<const Family> step1_families() {
  static constexpr Family kRows[] = {{"Step1ForCausalLM", describe_step1}};
  return kRows;
}

}  // namespace octavo
