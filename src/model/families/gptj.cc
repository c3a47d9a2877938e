// GPT-J (Wang and Komatsuzaki, 2021): attention and MLP in parallel, after one norm. RoPE rotates the first
// elements of each head, in adjacent pairs.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_gptj(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "n_embd",
                                              .layers = "n_layer",
                                              .heads = "n_head",
                                              .kv_heads = "",
                                              .hidden = "n_inner",
                                              .hidden_to_dim = 4,
                                              .head_dim = "",
                                              .positions = "n_positions",
                                              .activation = "activation_function",
                                              .eps = "layer_norm_epsilon",
                                              .norm = {.kind = NormKind::layer, .bias = true}}));
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::parallel_shared;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  const int head_dim = spec.layers[0].attention().head_dim;
  TRY(spec.ropes[0].rotary_dim, config.integer("rotary_dim", {2, head_dim}));
  if (spec.ropes[0].rotary_dim % 2 != 0)
    return invalid("rotary_dim", "{} is {}, but must be even", config.where("rotary_dim"),
                   spec.ropes[0].rotary_dim);
  spec.ropes[0].interleaved = true;
  spec.logits.bias = true;
  spec.names = {.prefixes = {"transformer."},
                .embedding = {.tokens = "wte"},
                .final_norm = "ln_f",
                .layers = "h.",
                .attention = {.norm = "ln_1",
                              .qkv = {"attn.q_proj", "attn.k_proj", "attn.v_proj"},
                              .out = "attn.out_proj"},
                .mlp = {.up = {"mlp.fc_in"}, .down = "mlp.fc_out"},
                .ignorable = {"*.attn.bias", "*.attn.masked_bias"}};
  return spec;
}

std::span<const Family> gptj_families() {
  static constexpr Family kRows[] = {{"GPTJForCausalLM", describe_gptj}};
  return kRows;
}

}  // namespace octavo
