// Other language models with Qwen2.5-VL's encoder. Their tokens have one position each, also those of images.
// EXAONE 4.5 (LG AI Research, 2026): the encoder's attention is grouped. HyperCLOVA X SEED Think 32B (NAVER,
// 2026): one more matrix after the projector.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The language model's names, as transformers 5 writes them.
void set_text_names(Names& names, const std::string& prefix) {
  names.prefixes = {prefix};
  for (const char* other :
       {"model.visual.*", "model.vision_model.*", "model.projector.*", "model.vision_projector.*",
        "model.discrete_vision_model.*", "mtp.*"})
    names.ignorable.emplace_back(other);
}

Result<ModelSpec> describe_exaone_tower(Config config) {
  TRY(ModelSpec tower, describe_qwen2_5_tower(config));
  TRY(const int kv_heads, config.integer("num_key_value_heads", kHeads, 8));
  const int heads = tower.layers[0].attention().q_heads;
  if (heads % kv_heads != 0)
    return invalid("num_key_value_heads", "{} {} must divide num_heads {}",
                   config.where("num_key_value_heads"), kv_heads, heads);
  for (LayerSpec& layer : tower.layers) layer.attention().kv_heads = kv_heads;
  tower.inputs.image->time_steps = 0;
  return tower;
}

// HyperCLOVA X's names: those that transformers 5 writes, or the published ones.
Names hyperclovax_names(const Names& qwen, const std::string& tower, const std::string& last) {
  Names names = qwen;
  names.prefixes = {tower};
  names.projector.matrices = {tower + "merger.mlp.0", tower + "merger.mlp.2", last};
  for (const char* other : {"model.language_model.*", "model.discrete_vision_model.*", "lm_head.*"})
    names.ignorable.emplace_back(other);
  return names;
}

}  // namespace

static Result<ModelSpec> describe_exaone4_5(const Config& config) {
  TRY(ModelSpec spec, describe_exaone4(config));
  TRY_VOID(set_tied(spec, config));
  set_text_names(spec.names, "model.language_model.");
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision || !vision->has("depth")) return spec;  // a text model
  TRY(spec, with_qwen_tower(std::move(spec), config, describe_exaone_tower, "out_hidden_size"));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 67));
  spec.media.video_token = -1;
  return spec;
}

static Result<ModelSpec> describe_hyperclovax_vision(const Config& config) {
  TRY(ModelSpec spec, describe_hyperclovax(config));
  TRY_VOID(set_tied(spec, config));
  set_text_names(spec.names, "model.language_model.");
  spec.other_names = spec.names;
  spec.other_names->prefixes = {"model.language_model.model."};
  spec.other_names->lm_head = "model.language_model.lm_head";
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 128060));
  TRY(const std::optional<Config> given, config.object("vision_config"));
  const Config vision = given.value_or(Config());
  TRY(ModelSpec tower, describe_qwen2_5_tower(vision));
  tower.inputs.image->time_steps = 0;
  tower.inputs.image->out_dim = spec.dim;
  TRY(tower.inputs.image->projector.middle, vision.integer("out_hidden_size", kDim, 3584));
  const Names qwen = tower.names;
  tower.names = hyperclovax_names(qwen, "model.vision_model.", "model.projector");
  tower.other_names = hyperclovax_names(qwen, "model.vision_model.", "model.vision_projector");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> qwen_tower_kin_families() {
  static constexpr Family kRows[] = {
      {"Exaone4_5_ForConditionalGeneration", describe_exaone4_5},
      {"HCXVisionV2ForCausalLM", describe_hyperclovax_vision},
      {"HyperCLOVAXVisionV2ForConditionalGeneration", describe_hyperclovax_vision},
  };
  return kRows;
}

}  // namespace octavo
