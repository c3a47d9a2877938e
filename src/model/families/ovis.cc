// Ovis 2.5 (Lu et al., 2025) and 2.6: a SigLIP encoder of images of any size, whose patches have learned
// positions and RoPE for rows and columns. Squares of patches become probabilities of visual words, which mix
// the rows of a table. Rows of the same table come before and after an image. The language model is a Qwen3.
#include <memory>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/internvl.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The last two fields are required by the reader of the config, but the encoder does not use them.
constexpr std::string_view kOvisVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "hidden_stride": 2,
    "image_size": 512,
    "in_channels": 3,
    "intermediate_size": 4304,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 27,
    "patch_size": 16,
    "temporal_patch_size": 1,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

// Without num_patches, the grid of positions has the size of a square image.
Result<> set_ovis_grid(ModelSpec& tower, const Config& config, int side) {
  ImageInput& image = *tower.inputs.image;
  TRY(const int patches, config.integer("num_patches", {-1, 1 << 20}, -1));
  if (patches > 0) {
    image.storage = PatchStorage::matrix;
    for (side = 0; (side + 1) * (side + 1) <= patches;) ++side;
    if (side * side != patches)
      return invalid("num_patches", "{} is {}, but must be a square", config.where("num_patches"), patches);
  }
  image.grid.side = side;
  image.grid.stretch = PositionStretch::bicubic;
  tower.embedding.learned_positions = side * side;
  tower.max_positions = 1;
  return {};
}

Result<ModelSpec> describe_ovis_tower(const Config& vision, int words, int out_dim) {
  Config config = vision.with_names({{"spatial_merge_size", "hidden_stride"}});
  config.set_defaults(kOvisVision);
  for (const char* field : {"preserve_original_pe", "use_rope"}) TRY_VOID(refuse(config, field, false));
  TRY_VOID(refuse_any(config, "fullatt_block_indexes"));
  TRY(ModelSpec tower, describe_siglip(config, kOvisVision));
  const int side = tower.inputs.image->side();
  TRY_VOID(make_qwen_tower(tower, config));
  ImageInput& image = *tower.inputs.image;
  image.frames = 0;
  TRY_VOID(set_ovis_grid(tower, config, side));
  image.out_dim = out_dim;
  image.projector = {.hidden = words - kMarkRows,
                     .hidden_norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                     .words = true};
  tower.final_norm = {};
  const std::string tokenizer = "visual_tokenizer.", prefix = tokenizer + "vit.vision_model.";
  tower.names.prefixes = {prefix};
  tower.names.projector.matrices = {tokenizer + "head.0", "vte"};
  tower.names.projector.hidden_norm = tokenizer + "head.1";
  tower.names.ignorable = {"llm.*", prefix + "post_layernorm.*", prefix + "head.*"};
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_ovis(const Config& config) {
  TRY(ModelSpec spec, describe_inner_text(config, "llm."));
  // The token <|image_pad|>. vLLM has the same constant.
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151655));
  TRY(const int words, config.integer("visual_vocab_size", {kMarkRows + 1, kMaxVocab}, 65536));
  TRY(const std::optional<Config> vision, config.object("vit_config"));
  TRY(ModelSpec tower, describe_ovis_tower(vision.value_or(Config()), words, spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  for (const char* other : {"visual_tokenizer.*", "vte.*"}) {
    spec.names.ignorable.emplace_back(other);
    if (spec.other_names) spec.other_names->ignorable.emplace_back(other);
  }
  return spec;
}

std::span<const Family> ovis_families() {
  static constexpr Family kRows[] = {
      {"Ovis2_5", describe_ovis},
      {"Ovis2_6ForCausalLM", describe_ovis},
      {"Ovis2_6_MoeForCausalLM", describe_ovis},
  };
  return kRows;
}

}  // namespace octavo
