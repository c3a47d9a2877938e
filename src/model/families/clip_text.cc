// The text encoders of CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023). The last token's vector is
// projected to the space that texts and images share. In SigLIP, attention is bidirectional. Images are not
// supported.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

Result<ModelSpec> describe_text_tower(const Config& config, HeadLayer projection) {
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .activation = "",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  spec.embedding.learned_positions = spec.max_positions;
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  TRY_VOID(set_activation(config, spec));
  spec.head = Head{.pool = Pool::last, .normalise = true, .layers = {std::move(projection)}};
  Names& names = spec.names;
  names.prefixes = {"text_model."};
  names.embedding.tokens = "embeddings.token_embedding";
  names.embedding.positions = "embeddings.position_embedding";
  names.layers = "encoder.layers.";
  names.attention.norm = "layer_norm1";
  names.attention.out = "self_attn.out_proj";
  names.mlp.norm = "layer_norm2";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.final_norm = "final_layer_norm";
  names.ignorable = {"vision_model.*", "visual_projection.*", "logit_scale", "logit_bias", "*.position_ids"};
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_clip_text(const Config& config) {
  HeadLayer projection{.name = "text_projection", .bias = false};
  const Config outer = config.outer();
  TRY(projection.outputs,
      (outer.has("projection_dim") ? outer : config).integer("projection_dim", kDim, 512));
  return describe_text_tower(config, std::move(projection));
}

static Result<ModelSpec> describe_siglip_text(const Config& config) {
  HeadLayer projection{.name = "text_model.head"};
  TRY(const int dim, config.integer("hidden_size", kDim));
  TRY(projection.outputs, config.integer("projection_size", kDim, dim));
  TRY(ModelSpec spec, describe_text_tower(config, std::move(projection)));
  for (LayerSpec& layer : spec.layers) layer.attention().mask.causal = false;
  return spec;
}

std::span<const Family> clip_text_families() {
  static constexpr Family kRows[] = {
      {"CLIPModel", describe_clip_text, true},
      {"SiglipModel", describe_siglip_text, true},
  };
  return kRows;
}

}  // namespace octavo
