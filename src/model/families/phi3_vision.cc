// Phi-3-vision and Phi-3.5-vision (Abdin et al., "Phi-3 Technical Report", 2024): a CLIP encoder of tiles
// without its last layer, a projector that joins squares of patches and has two matrices, and a Phi-3.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr int kPhi3ImageToken = 32044;

Names phi3_tower_names(Names names) {
  const std::string images = "model.vision_embed_tokens.", tower = images + "img_processor.vision_model.";
  for (std::string& dropped : names.ignorable) dropped = tower + dropped;
  names.prefixes = {tower};
  names.projector.matrices = {images + "img_projection.0", images + "img_projection.2"};
  names.encoder.newline = images + "sub_GN";
  names.encoder.separator = images + "glb_GN";
  for (const std::string& other :
       {tower + "post_layernorm.*", tower + "embeddings.position_ids", std::string("model.layers.*"),
        std::string("model.embed_tokens.*"), std::string("model.norm.*"), std::string("lm_head.*")})
    names.ignorable.push_back(other);
  return names;
}

// `config` is img_processor.
Result<ModelSpec> describe_phi3_tower(const Config& config, const ModelSpec& text) {
  // Published configurations do not have the encoder's fields.
  TRY(ModelSpec tower, describe_clip(config, kClipLargeDefaults));
  ImageInput& image = *tower.inputs.image;
  TRY_VOID(support(config, "type_feature", "patch"));
  TRY_VOID(config.integer("image_dim_out", {tower.dim, tower.dim}, tower.dim));
  TRY(const int layer, config.integer("layer_idx", {-static_cast<int>(tower.layers.size()), -1}, -2));
  TRY_VOID(cut_tower(tower, layer, config.where("layer_idx")));
  image.merge = 2;
  image.tiled = image.whole_last = true;
  image.out_dim = text.dim;
  image.projector = {.activation = Activation::gelu, .hidden = text.dim, .bias = true};
  tower.names = phi3_tower_names(tower.names);
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_phi3_vision(const Config& config) {
  TRY(ModelSpec spec, describe_phi3(config));
  spec.names.ignorable.emplace_back("model.vision_embed_tokens.*");
  TRY(const std::optional<Config> layer, config.object("embd_layer"));
  if (layer) TRY_VOID(support(*layer, "hd_transform_order", "sub_glb"));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, kPhi3ImageToken));
  TRY(const std::optional<Config> images, config.object("img_processor"));
  TRY(ModelSpec tower, describe_phi3_tower(images.value_or(Config()), spec));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> phi3_vision_families() {
  static constexpr Family kRows[] = {{"Phi3VForCausalLM", describe_phi3_vision}};
  return kRows;
}

}  // namespace octavo
