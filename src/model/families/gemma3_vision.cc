// Gemma 3 with images (Gemma Team, 2025): a SigLIP encoder, and the text model. Squares of patches are
// averaged. In the text model, all tokens of an image see each other.
#include <cmath>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// Sets the side of the squares of patches that become one token.
Result<> set_merge(const Config& config, ImageInput& image) {
  TRY(const int tokens, config.integer("mm_tokens_per_image", {1, 1 << 20}, 256));
  const int side = static_cast<int>(std::lround(std::sqrt(tokens)));
  const int patches = image.image_size / image.patch_size;
  if (side * side != tokens || patches % side != 0)
    return invalid("mm_tokens_per_image",
                   "{} is {}, but {} x {} patches cannot be averaged to this number of tokens",
                   config.where("mm_tokens_per_image"), tokens, patches, patches);
  image.merge = patches / side;
  return {};
}

void set_gemma3_names(Names& names, const std::string& prefix) {
  names.prefixes = {prefix + "vision_tower.vision_model.", prefix + "vision_tower."};
  names.projector.matrices = {prefix + "multi_modal_projector.mm_input_projection_weight"};
  names.projector.norm = prefix + "multi_modal_projector.mm_soft_emb_norm";
  names.ignorable = {"language_model.*",
                     "model.language_model.*",
                     "lm_head.*",
                     "*.position_ids",
                     prefix + "vision_tower.vision_model.head.*",
                     prefix + "vision_tower.head.*"};
}

}  // namespace

static Result<ModelSpec> describe_gemma3_vision(const Config& config) {
  TRY(ModelSpec spec, describe_gemma3(config));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision || !vision->has("image_size")) return spec;  // a text model
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, 262144));
  TRY(ModelSpec tower, describe_siglip(*vision));
  ImageInput& image = *tower.inputs.image;
  TRY_VOID(set_merge(config, image));
  image.out_dim = spec.dim;
  image.projector = {.mean = true,
                     .norm = {.kind = NormKind::rms, .eps = tower.final_norm.eps, .weight_offset = 1},
                     .transposed = true};
  set_gemma3_names(tower.names, "");
  tower.other_names = tower.names;
  set_gemma3_names(*tower.other_names, "model.");
  spec.media.whole_images = true;
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> gemma3_vision_families() {
  static constexpr Family kRows[] = {{"Gemma3ForConditionalGeneration", describe_gemma3_vision}};
  return kRows;
}

}  // namespace octavo
