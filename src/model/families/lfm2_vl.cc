// LFM2-VL (Liquid AI, 2025): a SigLIP 2 encoder of images of any size, a projector with pixel shuffle, and an
// LFM2.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

void set_lfm2_tower_names(Names& names) {
  const std::string model = "model.", projector = model + "multi_modal_projector.";
  names.prefixes = {model + "vision_tower.vision_model.", model + "vision_tower."};
  names.projector.norm = projector + "layer_norm";
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  names.ignorable = {"model.language_model.*", "lm_head.*"};
  for (const std::string& prefix : names.prefixes) names.ignorable.push_back(prefix + "head.*");
}

}  // namespace

static Result<ModelSpec> describe_lfm2_vl(const Config& config) {
  TRY(ModelSpec spec, describe_lfm2(config));
  TRY_VOID(set_tied(spec, config));
  spec.names.prefixes = {"model.language_model."};
  for (const char* other : {"model.vision_tower.*", "model.multi_modal_projector.*"})
    spec.names.ignorable.emplace_back(other);
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 396));
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, spec.media.token));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip2(vision.value_or(Config())));
  ImageInput& image = *tower.inputs.image;
  TRY(image.merge, config.integer("downsample_factor", {1, 64}, 2));
  image.out_dim = spec.dim;
  TRY_VOID(support(config, "projector_hidden_act", "gelu"));
  image.projector.activation = Activation::gelu;
  TRY(image.projector.hidden, config.integer("projector_hidden_size", kDim, 2560));
  TRY(image.projector.bias, config.boolean("projector_bias", true));
  TRY(const bool normed, config.boolean("projector_use_layernorm", true));
  if (normed) image.projector.norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true};
  set_lfm2_tower_names(tower.names);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> lfm2_vl_families() {
  static constexpr Family kRows[] = {{"Lfm2VlForConditionalGeneration", describe_lfm2_vl}};
  return kRows;
}

}  // namespace octavo
