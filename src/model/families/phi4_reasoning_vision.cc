// Phi-4-reasoning-vision (Microsoft, 2026): a SigLIP 2 encoder of images of any size without its last layer,
// a projector of two matrices, and a Phi-4.
#include <memory>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {

static Result<ModelSpec> describe_phi4_reasoning_vision(const Config& config) {
  TRY(ModelSpec spec, describe_phi3(config));
  for (const char* other : {"model.vision_tower.*", "model.mm_projector.*"})
    spec.names.ignorable.emplace_back(other);
  // The tokenizer's first unused token. vLLM has the same constant.
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 100256));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip2(vision.value_or(Config())));
  TRY_VOID(cut_tower(tower, -2, config.where("vision_config")));
  ImageInput& image = *tower.inputs.image;
  image.out_dim = spec.dim;
  image.projector = {.activation = Activation::gelu, .hidden = spec.dim, .bias = true};
  const std::string prefix = "model.vision_tower.vision_tower.vision_model.";
  const std::vector<std::string> unused = std::exchange(tower.names.ignorable, {});
  tower.names.prefixes = {prefix};
  tower.names.projector.matrices = {"model.mm_projector.0", "model.mm_projector.2"};
  tower.names.ignorable = {"model.layers.*", "model.embed_tokens.*",      "model.norm.*",
                           "lm_head.*",      prefix + "post_layernorm.*", prefix + "head.*"};
  for (const std::string& tensor : unused) tower.names.ignorable.push_back(prefix + tensor);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> phi4_reasoning_vision_families() {
  static constexpr Family kRows[] = {{"Phi4ForCausalLMV", describe_phi4_reasoning_vision}};
  return kRows;
}

}  // namespace octavo
