// GLM-4.1V, 4.5V (Hong et al., 2025) and GLM-OCR (Z.ai, 2026): an encoder of images of any size with RoPE for
// rows and columns, a projector with a convolution and a gated MLP, and a GLM-4. Its tokens have positions in
// time, height and width. In GLM-4.1V and 4.5V, patches also have learned positions.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kGlmVision = R"({"attention_bias": false,
    "depth": 24,
    "hidden_act": "silu",
    "hidden_size": 1536,
    "image_size": 336,
    "in_channels": 3,
    "intermediate_size": 13696,
    "num_heads": 12,
    "patch_size": 14,
    "rms_norm_eps": 1e-05,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr std::string_view kGlmOcrVision = R"({"attention_bias": true,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16})";
constexpr AxisSections kGlmSections{.absent = {8, 12, 12}};

Names glm_tower_names() {
  const std::string prefix = "model.visual.";
  Names names = qwen_tower_names(prefix);
  names.encoder.patch_norm = "post_conv_layernorm";
  names.embedding.positions = "embeddings.position_embedding";
  names.attention.q_norm = "attn.q_norm";
  names.attention.k_norm = "attn.k_norm";
  names.final_norm = "post_layernorm";
  names.projector.merger = prefix + "downsample";
  names.projector.hidden_norm = prefix + "merger.post_projection_norm";
  for (const char* matrix : {"proj", "gate_proj", "up_proj", "down_proj"})
    names.projector.matrices.push_back(prefix + "merger." + matrix);
  return names;
}

// `ocr` selects GLM-OCR's encoder.
Result<ModelSpec> describe_glm_tower(Config config, int out_dim, bool ocr) {
  if (ocr) config.set_defaults(kGlmOcrVision);
  config.set_defaults(kGlmVision);
  TRY(ModelSpec spec, describe_dense(config, {.layers = "depth",
                                              .heads = "num_heads",
                                              .kv_heads = "num_heads",
                                              .head_dim = "",
                                              .rotary = false}));
  TRY_VOID(make_qwen_tower(spec, config));
  TRY(const bool bias, config.boolean("attention_bias"));
  TRY_VOID(config.integer("out_hidden_size", {out_dim, out_dim}, out_dim));
  TRY(const int wide, config.integer("intermediate_size", kDim));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = ocr && bias};
    layer.mlp().up_bias = layer.mlp().down_bias = ocr && bias;
    layer.mlp().hidden = ocr ? wide : out_dim;
    if (ocr) layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  ImageInput& image = *spec.inputs.image;
  image.out_dim = out_dim;
  image.projector = {.merged = true,
                     .convolved = out_dim,
                     .activation = Activation::gelu,
                     .hidden = out_dim,
                     .hidden_norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                     .mlp_hidden = ocr ? 3 * out_dim : wide};
  spec.names = glm_tower_names();
  if (ocr) return spec;
  TRY(const int size, config.integer("image_size", {image.patch_size, 1 << 16}));
  image.grid.side = size / image.patch_size;
  image.grid.stretch = PositionStretch::bicubic;
  image.grid.patch_norm = spec.final_norm;
  spec.embedding.learned_positions = image.grid.side * image.grid.side;
  return spec;
}

Result<ModelSpec> with_glm_tower(ModelSpec spec, const Config& config, int image_token, bool ocr) {
  TRY_VOID(set_axes(spec, config, kGlmSections));
  TRY_VOID(set_tied(spec, config));
  spec.names.prefixes = {"model.language_model."};
  spec.names.ignorable.emplace_back("model.visual.*");
  // layer for multi-token prediction
  spec.names.ignorable.push_back(fmt::format("model.language_model.layers.{}.*", spec.layers.size()));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, image_token));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_glm_tower(vision.value_or(Config()), spec.dim, ocr));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_glm4v(const Config& config) {
  TRY(ModelSpec spec, describe_glm4(config));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = true;
  return with_glm_tower(std::move(spec), config, 151343, false);
}

static Result<ModelSpec> describe_glm4v_moe(const Config& config) {
  TRY(ModelSpec spec, describe_glm4_moe(config));
  spec.predictor.reset();
  return with_glm_tower(std::move(spec), config, 151363, false);
}

static Result<ModelSpec> describe_glm_ocr(const Config& config) {
  TRY(ModelSpec spec, describe_glm4(config));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv = false;
  return with_glm_tower(std::move(spec), config, 59280, true);
}

std::span<const Family> glm_vision_families() {
  static constexpr Family kRows[] = {
      {"Glm46VForConditionalGeneration", describe_glm4v},
      {"Glm4vForConditionalGeneration", describe_glm4v},
      {"Glm4vMoeForConditionalGeneration", describe_glm4v_moe},
      {"GlmOcrForConditionalGeneration", describe_glm_ocr},
  };
  return kRows;
}

}  // namespace octavo
