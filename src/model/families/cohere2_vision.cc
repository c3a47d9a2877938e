// Command A Vision (Cohere, 2025): a SigLIP encoder of square tiles, a projector with pixel shuffle and a
// gate, and a Command A.
#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kCohereVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 512,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_hidden_layers": 27,
    "patch_size": 16,
    "vocab_size": 1})";  // required by the reader of the config, but the encoder has no vocabulary

void set_cohere_names(Names& names, const std::string& prefix) {
  names.prefixes = {prefix + "vision_tower.vision_model.", prefix + "vision_tower."};
  names.projector.matrices = {prefix + "multi_modal_projector.linear_1",
                              prefix + "multi_modal_projector.linear_2"};
  names.ignorable = {"language_model.*",
                     "model.language_model.*",
                     "lm_head.*",
                     "*.position_ids",
                     prefix + "vision_tower.vision_model.head.*",
                     prefix + "vision_tower.head.*"};
}

}  // namespace

static Result<ModelSpec> describe_cohere2_vision(const Config& config) {
  TRY(ModelSpec spec, describe_seeing_text(config));
  TRY_VOID(set_tied(spec, config));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 255036));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip(vision.value_or(Config()), kCohereVision));
  ImageInput& image = *tower.inputs.image;
  TRY(image.merge, config.integer("downsample_factor", {1, 64}, 2));
  TRY(const int wide, config.integer("alignment_intermediate_size", {2, 1 << 20}, 36864));
  if (wide % 2 != 0)
    return invalid("alignment_intermediate_size", "{} is {}, but must be even: half of it are gates",
                   config.where("alignment_intermediate_size"), wide);
  image.out_dim = spec.dim;
  image.projector = {.activation = Activation::silu, .hidden = wide / 2, .gated = true, .bias = true};
  set_cohere_names(tower.names, "");
  tower.other_names = tower.names;
  set_cohere_names(*tower.other_names, "model.");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> cohere2_vision_families() {
  static constexpr Family kRows[] = {{"Cohere2VisionForConditionalGeneration", describe_cohere2_vision}};
  return kRows;
}

}  // namespace octavo
