// LLaVA 1.5 (Liu et al., "Improved Baselines with Visual Instruction Tuning", 2024): a CLIP encoder without
// its last layer and two matrices in front of a Llama, Mistral or Qwen2. Pixtral is stored likewise, with an
// encoder of its own.
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kVision = R"({"hidden_act": "quick_gelu",
    "hidden_size": 1024,
    "image_size": 336,
    "intermediate_size": 4096,
    "layer_norm_eps": 1e-05,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "vocab_size": 1})";  // which it has not

// What is taken of the encoder is the output of one of its layers, counted from the end, without the class
// token.
Result<> cut_tower(const Config& config, ModelSpec& tower) {
  TRY(const std::string strategy, config.text("vision_feature_select_strategy", "default"));
  if (strategy != "default")
    return field_failure("vision_feature_select_strategy", ErrorCode::unsupported,
                         "{} is \"{}\"; only default is supported",
                         config.where("vision_feature_select_strategy"), strategy);
  const int layers = static_cast<int>(tower.layers.size());
  TRY(const int layer, config.integer("vision_feature_layer", {-layers, -1}, -2));
  tower.layers.resize(static_cast<std::size_t>(layers + 1 + layer));
  if (tower.layers.empty())
    return invalid("vision_feature_layer", "{} is {}: no layer is left", config.where("vision_feature_layer"),
                   layer);
  for (int i = layers + 1 + layer; i < layers; ++i)
    tower.names.ignorable.push_back(fmt::format("encoder.layers.{}.*", i));
  tower.final_norm = {};
  return {};
}

void set_names(Names& names, const std::string& prefix) {
  const std::vector<std::string> unused = std::exchange(names.ignorable, {});
  names.prefixes = {prefix + "vision_tower.vision_model.", prefix + "vision_tower."};
  names.projector = {prefix + "multi_modal_projector.linear_1", prefix + "multi_modal_projector.linear_2"};
  for (const std::string& tower : names.prefixes) {
    for (const std::string& tensor : unused) names.ignorable.push_back(tower + tensor);
    names.ignorable.push_back(tower + "post_layernorm.*");
  }
  for (const char* other : {"language_model.*", "model.language_model.*", "lm_head.*", "*.position_ids"})
    names.ignorable.emplace_back(other);
}

Result<ModelSpec> describe_llava_tower(const Config& config, const ModelSpec& text) {
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  const Config given = vision.value_or(Config());
  TRY(const std::string kind, given.text("model_type", "clip_vision_model"));
  if (kind == "pixtral") return describe_pixtral_tower(config, text);
  if (kind != "clip_vision_model")
    return field_failure(
        "vision_config.model_type", ErrorCode::unsupported,
        "config.json: vision_config.model_type is \"{}\"; supported are clip_vision_model and pixtral", kind);
  TRY(ModelSpec tower, describe_clip(given, kVision));
  TRY_VOID(cut_tower(config, tower));
  TRY(const std::string activation, config.text("projector_hidden_act", "gelu"));
  if (activation != "gelu")
    return field_failure("projector_hidden_act", ErrorCode::unsupported,
                         "{} is \"{}\"; only gelu is supported", config.where("projector_hidden_act"),
                         activation);
  tower.image->out_dim = text.dim;
  tower.image->projector = {.activation = Activation::gelu, .hidden = text.dim};
  TRY(tower.image->projector.bias, config.boolean("multimodal_projector_bias", true));
  tower.other_names = tower.names;
  set_names(*tower.other_names, "model.");
  set_names(tower.names, "");
  return tower;
}

}  // namespace

Result<ModelSpec> describe_llava(const Config& config) {
  TRY(ModelSpec spec, describe_seeing_text(config));
  TRY(spec.media_token, config.integer("image_token_index", {0, kMaxVocab}, 32000));
  TRY(ModelSpec tower, describe_llava_tower(config, spec));
  spec.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace octavo
