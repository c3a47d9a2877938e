// MPT (MosaicML, 2023): ALiBi, and layer norms without biases. As in the model's published code,
// alibi_bias_max applies; transformers ignores it.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_mpt(const Config& config) {
  TRY_VOID(refuse(config, "no_bias", false));
  TRY(ModelSpec spec, describe_dense(config, {.dim = "d_model",
                                              .layers = "n_layers",
                                              .heads = "n_heads",
                                              .kv_heads = "",
                                              .hidden = "",
                                              .hidden_to_dim = 4,
                                              .head_dim = "",
                                              .positions = "max_seq_len",
                                              .activation = "",
                                              .eps = "layer_norm_epsilon",
                                              .norm = {.kind = NormKind::layer},
                                              .rotary = false}));
  float clip = 0;
  double most = 8, scale = spec.layers[0].attention().scores.scale;
  TRY(const std::optional<Config> attention, config.object("attn_config"));
  if (attention) {
    TRY_VOID(refuse(*attention, "alibi", false));
    TRY_VOID(refuse(*attention, "qk_ln", true));
    TRY_VOID(refuse(*attention, "prefix_lm", true));
    TRY(clip, read_clip(*attention));
    TRY(most, attention->number("alibi_bias_max", {1e-3, 1e3}, most));
    TRY(scale, attention->number("softmax_scale", {1e-9, 1e9}, scale));
  }
  for (LayerSpec& layer : spec.layers) {
    layer.attention().scores.scale = static_cast<float>(scale);
    layer.attention().clip = clip;
    layer.attention().scores.slopes = alibi_slopes(layer.attention().q_heads, most);
    layer.mlp().gated = false;
    layer.mlp().activation = Activation::gelu;
  }
  spec.names = {.prefixes = {"transformer."},
                .embedding = {.tokens = "wte"},
                .final_norm = "norm_f",
                .layers = "blocks.",
                .attention = {.norm = "norm_1", .qkv = {"attn.Wqkv"}, .out = "attn.out_proj"},
                .mlp = {.norm = "norm_2", .up = {"ffn.up_proj"}, .down = "ffn.down_proj"}};
  return spec;
}

std::span<const Family> mpt_families() {
  static constexpr Family kRows[] = {
      {"MPTForCausalLM", describe_mpt},
      {"MptForCausalLM", describe_mpt},
  };
  return kRows;
}

}  // namespace octavo
