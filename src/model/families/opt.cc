// OPT (Zhang et al., 2022) and Galactica: learned positions. The first two rows of the table are for padding.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_opt(const Config& config) {
  TRY_VOID(refuse(config, "do_layer_norm_before", false));
  TRY_VOID(refuse(config, "_remove_final_layer_norm", true));
  TRY(const bool weights, config.boolean("layer_norm_elementwise_affine", true));
  TRY(const bool bias, config.boolean("enable_bias", true));
  TRY(ModelSpec spec,
      describe_dense(config,
                     {.kv_heads = "",
                      .hidden = "ffn_dim",
                      .head_dim = "",
                      .activation = "activation_function",
                      .eps = "",
                      .norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = weights, .stored = weights},
                      .rotary = false}));
  TRY(const int projected, config.integer("word_embed_proj_dim", {1, 1 << 20}, spec.dim));
  if (projected != spec.dim)
    return field_failure(
        "word_embed_proj_dim", ErrorCode::unsupported,
        "{} is {}, but must be equal to hidden_size {}, because projections of embeddings are not supported",
        config.where("word_embed_proj_dim"), projected, spec.dim);
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = bias;
  }
  spec.embedding.first_position = 2;
  spec.embedding.learned_positions = spec.max_positions + spec.embedding.first_position;
  spec.names = {.prefixes = {"model.decoder.", "decoder."},
                .embedding = {.positions = "embed_positions"},
                .final_norm = "final_layer_norm",
                .attention = {.norm = "self_attn_layer_norm", .out = "self_attn.out_proj"},
                .mlp = {.norm = "final_layer_norm", .up = {"fc1"}, .down = "fc2"}};
  return spec;
}

std::span<const Family> opt_families() {
  static constexpr Family kRows[] = {{"OPTForCausalLM", describe_opt}};
  return kRows;
}

}  // namespace octavo
