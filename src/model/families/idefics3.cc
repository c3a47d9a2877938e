// Idefics3 (Laurençon et al., 2024) and SmolVLM (Marafioti et al., 2025): a SigLIP encoder, then a pixel
// shuffle and one matrix, then a Llama.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kIdefics3Vision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 32,
    "vocab_size": 1})";  // required by the reader of the config, but the encoder has no vocabulary

}  // namespace

static Result<ModelSpec> describe_idefics3(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  spec.names.prefixes = {"model.text_model."};
  for (const char* other : {"model.vision_model.*", "model.connector.*"})
    spec.names.ignorable.emplace_back(other);
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 128257));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip(vision.value_or(Config()), kIdefics3Vision));
  TRY(tower.inputs.image->merge, config.integer("scale_factor", {1, 64}, 2));
  tower.inputs.image->out_dim = spec.dim;
  tower.names.prefixes = {"model.vision_model."};
  tower.names.projector.matrices = {"model.connector.modality_projection.proj"};
  tower.names.ignorable = {"model.text_model.*", "lm_head.*", "*.position_ids"};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> idefics3_families() {
  static constexpr Family kRows[] = {
      {"Idefics3ForConditionalGeneration", describe_idefics3},
      {"SmolVLMForConditionalGeneration", describe_idefics3},
  };
  return kRows;
}

}  // namespace octavo
