// PaddleOCR-VL (Cui et al., 2025): a SigLIP encoder of images of any size, whose patches have learned
// positions and RoPE for rows and columns, and an ERNIE 4.5 whose tokens have positions in time, height and
// width. Keye-VL and Keye-VL 1.5 (Kuaishou, 2025): the same encoder and a Qwen3.
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kPaddleVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 384,
    "in_channels": 3,
    "intermediate_size": 4304,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 1,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

void set_paddle_names(Names& names, const std::string& tower, const std::string& projector) {
  names.prefixes = {tower};
  names.projector.patch_norm = projector + "pre_norm";
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  for (const char* other :
       {"model.language_model.*", "model.layers.*", "model.embed_tokens.*", "model.norm.*", "lm_head.*",
        "*.packing_position_embedding.*", "*.vision_model.head.*"})
    names.ignorable.emplace_back(other);
}

Result<ModelSpec> describe_paddle_tower(Config config, int out_dim) {
  config.set_defaults(kPaddleVision);
  TRY(ModelSpec tower, describe_siglip(config));
  const ImageInput square = *tower.inputs.image;
  TRY_VOID(make_qwen_tower(tower, config));
  ImageInput& image = *tower.inputs.image;
  image.frames = 0;
  image.grid.side = square.image_size / square.patch_size;
  image.grid.stretch = PositionStretch::bilinear;
  image.out_dim = out_dim;
  image.projector.patch_norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true};
  tower.max_positions = 1;
  Names published = tower.names;
  set_paddle_names(published, "visual.vision_model.", "mlp_AR.");
  tower.other_names = std::move(published);
  set_paddle_names(tower.names, "model.visual.vision_model.", "model.projector.");
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_paddleocr_vl(const Config& config) {
  TRY(ModelSpec spec, describe_ernie(config));
  spec.ropes[0].interleaved = false;
  TRY_VOID(set_axes(spec, config, {.absent = {16, 24, 24}}));
  TRY_VOID(set_tied(spec, config));
  spec.names.prefixes = {"model.", "model.language_model."};
  for (const char* other : {"visual.*", "mlp_AR.*", "model.visual.*", "model.projector.*"})
    spec.names.ignorable.emplace_back(other);
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 100295));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_paddle_tower(vision.value_or(Config()), spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

static Result<ModelSpec> describe_keye(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  TRY_VOID(set_axes(spec, config, {.absent = {16, 24, 24}}));
  for (const char* other : {"visual.*", "mlp_AR.*"}) spec.names.ignorable.emplace_back(other);
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151655));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_paddle_tower(vision.value_or(Config()), spec.dim));
  tower.names = *std::exchange(tower.other_names, {});
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// The norm before the projector applies to squares of patches.
static Result<ModelSpec> describe_keye1_5(const Config& config) {
  TRY(ModelSpec spec, describe_keye(config));
  ModelSpec tower = *spec.media.tower;
  Projector& projector = tower.inputs.image->projector;
  projector.norm = std::exchange(projector.patch_norm, {});
  tower.names.projector.norm = std::exchange(tower.names.projector.patch_norm, "");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> paddleocr_vl_families() {
  static constexpr Family kRows[] = {
      {"KeyeForConditionalGeneration", describe_keye},
      {"KeyeVL1_5ForConditionalGeneration", describe_keye1_5},
      {"PaddleOCRVLForConditionalGeneration", describe_paddleocr_vl},
  };
  return kRows;
}

}  // namespace octavo
