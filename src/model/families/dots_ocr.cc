// dots.ocr (rednote-hilab, 2025): an encoder of images of any size with RoPE for rows and columns, and a
// Qwen2 whose tokens have one position each.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kDotsVision = R"({"embed_dim": 1536,
    "in_channels": 3,
    "intermediate_size": 4224,
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_heads": 12,
    "num_hidden_layers": 42,
    "patch_size": 14,
    "post_norm": true,
    "rms_norm_eps": 1e-05,
    "spatial_merge_size": 2,
    "temporal_patch_size": 1,
    "use_bias": false,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

Names dots_tower_names() {
  const std::string prefix = "vision_tower.", merger = prefix + "merger.";
  Names names = qwen_tower_names(prefix);
  names.encoder.patches = "patch_embed.patchifier.proj";
  names.embedding.norm = "patch_embed.patchifier.norm";
  names.mlp.up = {"mlp.fc1", "mlp.fc3"};
  names.mlp.down = "mlp.fc2";
  names.final_norm = "post_trunk_norm";
  names.projector.patch_norm = merger + "ln_q";
  names.projector.matrices = {merger + "mlp.0", merger + "mlp.2"};
  return names;
}

Result<ModelSpec> describe_dots_tower(Config config, int out_dim) {
  config.set_defaults(kDotsVision);
  TRY_VOID(config.integer("num_channels", {3, 3}));
  TRY_VOID(config.integer("temporal_patch_size", {1, 1}));
  TRY_VOID(config.integer("hidden_size", {out_dim, out_dim}, out_dim));
  TRY(ModelSpec tower, describe_dense(config, {.dim = "embed_dim",
                                               .kv_heads = "num_attention_heads",
                                               .head_dim = "",
                                               .activation = "",
                                               .rotary = false}));
  TRY_VOID(make_qwen_tower(tower, config));
  TRY(const bool bias, config.boolean("use_bias"));
  for (LayerSpec& layer : tower.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.mlp().up_bias = layer.mlp().down_bias = bias;
  }
  tower.embedding.norm = tower.final_norm;
  TRY(const bool normed, config.boolean("post_norm"));
  if (!normed) tower.final_norm = {};
  ImageInput& image = *tower.inputs.image;
  image.frames = 0;
  image.out_dim = out_dim;
  image.projector.patch_norm = {.kind = NormKind::layer, .eps = 1e-6F, .bias = true};
  tower.names = dots_tower_names();
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_dots_ocr(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  spec.names.ignorable.emplace_back("vision_tower.*");
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151665));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_dots_tower(vision.value_or(Config()), spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> dots_ocr_families() {
  static constexpr Family kRows[] = {{"DotsOCRForCausalLM", describe_dots_ocr}};
  return kRows;
}

}  // namespace octavo
