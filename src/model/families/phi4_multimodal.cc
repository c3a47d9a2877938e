// Phi-4-multimodal (Abouelenin et al., "Phi-4-Mini Technical Report", 2025) with images: a SigLIP encoder of
// tiles, a projector that averages squares of patches and has two matrices, and Phi-4-mini. Microsoft's
// checkpoint also contains LoRA adapters for images and audio, which are loaded like other adapters.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kPhi4Vision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 448,
    "intermediate_size": 4304,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vocab_size": 1})";  // required by the reader of the config, but the encoder has no vocabulary
constexpr int kImageToken = 200010;

const std::string kImages = "model.embed_tokens_extend.image_embed.";

Names text_names(Names names, const std::string& wrapped) {
  for (std::vector<std::string>* fused : {&names.attention.qkv, &names.mlp.up})
    for (std::string& name : *fused) name += wrapped;
  names.attention.out += wrapped;
  names.mlp.down += wrapped;
  names.ignorable = {"model.embed_tokens_extend.*"};
  for (const char* adapter : {"vision", "speech"})
    for (const char* side : {"A", "B"}) names.ignorable.push_back(fmt::format("*.lora_{}.{}.weight", side, adapter));
  return names;
}

Names tower_names(Names names) {
  const std::string tower = kImages + "img_processor.";
  for (std::string& dropped : names.ignorable) dropped = tower + dropped;
  names.prefixes = {tower};
  names.projector.matrices = {kImages + "img_projection_up", kImages + "img_projection_down"};
  names.encoder.newline = kImages + "sub_img_feature_extensor";
  names.encoder.separator = kImages + "global_img_feature_extensor";
  for (const std::string& other : {tower + "post_layernorm.*", tower + "head.*", std::string("model.layers.*"),
                                   std::string("model.embed_tokens.*"), std::string("model.norm.*"), std::string("lm_head.*"),
                                   std::string("model.embed_tokens_extend.audio_embed.*")})
    names.ignorable.push_back(other);
  return names;
}

Names published(Names names) {
  names.projector.matrices = {kImages + "img_projection.0", kImages + "img_projection.2"};
  names.encoder.newline = kImages + "sub_GN";
  names.encoder.separator = kImages + "glb_GN";
  return names;
}

Result<ModelSpec> describe_phi4_tower(Config config, const ModelSpec& text) {
  TRY(ModelSpec tower, describe_siglip(config, kPhi4Vision));
  ImageInput& image = *tower.inputs.image;
  TRY_VOID(config.integer("crop_size", {image.image_size, image.image_size}, image.image_size));
  TRY(const int layer, config.integer("feature_layer", {-static_cast<int>(tower.layers.size()) - 1, -1}, -2));
  TRY_VOID(cut_tower(tower, layer, config.where("feature_layer")));
  image.merge = 2;
  image.tiled = image.whole_last = image.hides_padding = true;
  image.out_dim = text.dim;
  image.projector = {.mean = true, .activation = Activation::gelu, .hidden = text.dim, .bias = true};
  tower.names = tower_names(tower.names);
  tower.other_names = published(tower.names);
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_phi4_multimodal(const Config& config) {
  TRY(ModelSpec spec, describe_phi3(config));
  spec.other_names = text_names(spec.names, ".base_layer");
  spec.names = text_names(spec.names, "");
  TRY(const std::optional<Config> given, config.object("vision_config"));
  const Config vision = given.value_or(Config());
  TRY(spec.media.token, vision.integer("image_token_id", {0, kMaxVocab}, kImageToken));
  TRY(ModelSpec tower, describe_phi4_tower(vision, spec));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> phi4_multimodal_families() {
  static constexpr Family kRows[] = {
      {"Phi4MMForCausalLM", describe_phi4_multimodal},
      {"Phi4MultimodalForCausalLM", describe_phi4_multimodal},
  };
  return kRows;
}

}  // namespace octavo
