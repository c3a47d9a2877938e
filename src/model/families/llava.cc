// LLaVA 1.5 (Liu et al., "Improved Baselines with Visual Instruction Tuning", 2024): a CLIP encoder without
// its last layer, a projector of two matrices, and a Llama, Mistral or Qwen2. Pixtral has the same format
// with another encoder. LLaVA-NeXT (Liu et al., 2024) and LLaVA-OneVision (Li et al., 2024) divide images
// into tiles. LLaVA-OneVision has a SigLIP encoder. R-4B (Jiang et al., 2025) and Bee (Zhang et al., 2025)
// have LLaVA-OneVision's format and a norm before the projector.
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// Defaults for LLaVA-OneVision's encoder, which has no class token.
constexpr std::string_view kSiglipVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 384,
    "intermediate_size": 4304,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 26,
    "patch_size": 14,
    "vocab_size": 1})";

// Selects the encoder layer that the projector reads, counted from the end. The class token is removed.
Result<> choose_layer(const Config& config, int absent, ModelSpec& tower) {
  const std::string_view whole = tower.inputs.image->classes.count > 0 ? "default" : "full";
  TRY(const std::string strategy, config.text("vision_feature_select_strategy", std::string(whole)));
  if (strategy != whole)
    return field_failure("vision_feature_select_strategy", ErrorCode::unsupported,
                         "{} is \"{}\", but only {} is supported",
                         config.where("vision_feature_select_strategy"), strategy, whole);
  TRY(const int layer, config.integer("vision_feature_layer", {-static_cast<int>(tower.layers.size()), -1}, absent));
  return cut_tower(tower, layer, config.where("vision_feature_layer"));
}

void set_llava_names(Names& names, const std::string& prefix) {
  const std::vector<std::string> unused = std::exchange(names.ignorable, {});
  names.prefixes = {prefix + "vision_tower.vision_model.", prefix + "vision_tower."};
  names.projector.matrices = {prefix + "multi_modal_projector.linear_1",
                              prefix + "multi_modal_projector.linear_2"};
  names.encoder.newline = prefix + "image_newline";
  for (const std::string& tower : names.prefixes) {
    for (const std::string& tensor : unused) names.ignorable.push_back(tower + tensor);
    names.ignorable.push_back(tower + "post_layernorm.*");
    names.ignorable.push_back(tower + "head.*");
  }
  for (const char* other : {"language_model.*", "model.language_model.*", "lm_head.*", "*.position_ids"})
    names.ignorable.emplace_back(other);
}

// Adds the projector's two matrices, and sets all names.
Result<> add_projector(const Config& config, const ModelSpec& text, ModelSpec& tower) {
  TRY(const std::string activation, config.text("projector_hidden_act", "gelu"));
  if (activation != "gelu")
    return field_failure("projector_hidden_act", ErrorCode::unsupported,
                         "{} is \"{}\", but only gelu is supported", config.where("projector_hidden_act"),
                         activation);
  tower.inputs.image->out_dim = text.dim;
  tower.inputs.image->projector = {.activation = Activation::gelu, .hidden = text.dim};
  TRY(tower.inputs.image->projector.bias, config.boolean("multimodal_projector_bias", true));
  tower.other_names = tower.names;
  set_llava_names(*tower.other_names, "model.");
  set_llava_names(tower.names, "");
  return {};
}

Result<ModelSpec> describe_llava_tower(const Config& config, const ModelSpec& text) {
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  const Config given = vision.value_or(Config());
  TRY(const std::string kind, given.text("model_type", "clip_vision_model"));
  if (kind == "pixtral") return describe_pixtral_tower(config, text);
  if (kind != "clip_vision_model")
    return field_failure("vision_config.model_type", ErrorCode::unsupported,
                         "config.json: vision_config.model_type is \"{}\", which is not supported: must be "
                         "clip_vision_model or pixtral",
                         kind);
  TRY(ModelSpec tower, describe_clip(given, kClipLargeDefaults));
  TRY_VOID(choose_layer(config, -2, tower));
  TRY_VOID(add_projector(config, text, tower));
  return tower;
}

// Describes the encoder of models that divide images into tiles.
Result<ModelSpec> describe_tiled_tower(const Config& config, const ModelSpec& text, bool siglip) {
  const std::string_view own = siglip ? "siglip_vision_model" : "clip_vision_model";
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  const Config given = vision.value_or(Config());
  TRY(const std::string kind, given.text("model_type", std::string(own)));
  if (kind != "clip_vision_model" && kind != "siglip_vision_model")
    return field_failure("vision_config.model_type", ErrorCode::unsupported,
                         "config.json: vision_config.model_type is \"{}\", which is not supported: must be "
                         "clip_vision_model or siglip_vision_model",
                         kind);
  TRY(ModelSpec tower, kind == "clip_vision_model" ? describe_clip(given, kClipLargeDefaults)
                                                   : describe_siglip(given, kSiglipVision));
  TRY_VOID(choose_layer(config, siglip ? -1 : -2, tower));
  tower.inputs.image->tiled = true;
  TRY_VOID(add_projector(config, text, tower));
  return tower;
}

Result<ModelSpec> describe_tiled(const Config& config, int image_token, bool siglip) {
  TRY(ModelSpec spec, describe_seeing_text(config));
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, image_token));
  TRY(ModelSpec tower, describe_tiled_tower(config, spec, siglip));
  for (Names* names : {&spec.names, &*spec.other_names})
    for (const char* newline : {"image_newline", "model.image_newline"})
      names->ignorable.emplace_back(newline);
  TRY_VOID(set_tied(spec, config));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_llava_next(const Config& config) {
  return describe_tiled(config, 32000, false);
}

// LLaVA-NeXT-Video (Zhang et al., 2024): images as in LLaVA-NeXT. Videos are not supported.
static Result<ModelSpec> describe_llava_next_video(const Config& config) {
  return describe_tiled(config, 32001, false);
}

static Result<ModelSpec> describe_llava_onevision(const Config& config) {
  return describe_tiled(config, 151646, true);
}

namespace {

// `wide`: width between the projector's matrices, in widths of the language model.
Result<ModelSpec> describe_normed_projector(const Config& config, int wide) {
  TRY(ModelSpec spec, describe_tiled(config, 151646, true));
  ModelSpec tower = *spec.media.tower;
  Projector& projector = tower.inputs.image->projector;
  projector.norm = {.kind = NormKind::layer, .eps = 1e-6F, .bias = true};
  projector.hidden = wide * spec.dim;
  tower.names.projector.norm = "multi_modal_projector.pre_norm";
  tower.other_names->projector.norm = "model.multi_modal_projector.pre_norm";
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_r4b(const Config& config) { return describe_normed_projector(config, 1); }

static Result<ModelSpec> describe_bee(const Config& config) { return describe_normed_projector(config, 4); }

static Result<ModelSpec> describe_llava(const Config& config) {
  TRY(ModelSpec spec, describe_seeing_text(config));
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, 32000));
  TRY(ModelSpec tower, describe_llava_tower(config, spec));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> llava_families() {
  static constexpr Family kRows[] = {
      {"BeeForConditionalGeneration", describe_bee},
      {"LlavaForConditionalGeneration", describe_llava},
      {"LlavaNextForConditionalGeneration", describe_llava_next},
      {"LlavaNextVideoForConditionalGeneration", describe_llava_next_video},
      {"LlavaOnevisionForConditionalGeneration", describe_llava_onevision},
      {"RForConditionalGeneration", describe_r4b},
  };
  return kRows;
}

}  // namespace octavo
