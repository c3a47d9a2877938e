// Other models with Qwen2.5-VL's encoder. Except in Qwen2.5-Omni, all tokens have one position, also those of
// images. EXAONE 4.5 (LG AI Research, 2026): the encoder's attention is grouped. HyperCLOVA X SEED Think 32B
// (NAVER, 2026): one more matrix after the projector.
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
  for (const char* other : {"model.visual.*", "model.vision_model.*", "model.projector.*",
                            "model.vision_projector.*", "model.discrete_vision_model.*", "mtp.*"})
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

// The checkpoint stores the encoder with this prefix only.
void set_tower_prefix(ModelSpec& tower, const std::string& prefix) {
  tower.other_names.reset();
  tower.names.prefixes = {prefix};
  tower.names.projector.matrices = {prefix + "merger.mlp.0", prefix + "merger.mlp.2"};
}

}  // namespace

Result<Thinker> read_thinker(const Config& config, std::string_view text_architecture) {
  TRY(std::optional<Config> thinker, config.object("thinker_config"));
  if (!thinker)
    return invalid("thinker_config", "{} is missing, but must have the configuration of the language model",
                   config.where("thinker_config"));
  TRY(std::optional<Config> text, thinker->object("text_config"));
  Thinker read{.config = *std::move(thinker), .text = std::move(text).value_or(Config())};
  read.text.set_defaults(field_defaults(text_architecture));
  return read;
}

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

// OpenCUA (Wang et al., 2025): Qwen2.5-VL without positions on several axes.
static Result<ModelSpec> describe_opencua(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  spec.names.prefixes = {"language_model.model."};
  spec.names.lm_head = "language_model.lm_head";
  spec.names.ignorable.emplace_back("vision_tower.*");
  TRY(spec.media.token, config.integer("media_placeholder_token_id", {0, kMaxVocab}, 151664));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_qwen2_5_tower(vision.value_or(Config())));
  set_tower_prefix(tower, "vision_tower.");
  tower.names.ignorable.emplace_back("language_model.*");
  tower.inputs.image->time_steps = 0;
  tower.inputs.image->out_dim = spec.dim;
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// Qwen2.5-Omni (Xu et al., 2025): the thinker with texts and images. It is a Qwen2.5-VL beside an encoder of
// sound and a speaker.
static Result<ModelSpec> describe_qwen2_5_omni(const Config& config) {
  TRY(const Thinker thinker, read_thinker(config, "Qwen2ForCausalLM"));
  TRY(ModelSpec spec, describe_qwen2(thinker.text));
  TRY(spec.logits.tied, thinker.config.boolean("tie_word_embeddings", spec.logits.tied));
  TRY_VOID(set_axes(spec, thinker.text, {.absent = {16, 24, 24}}));
  TRY(spec, with_qwen_tower(std::move(spec), thinker.config, describe_qwen2_5_tower, "out_hidden_size"));
  TRY(spec.media.token, thinker.config.integer("image_token_index", {0, kMaxVocab}, 151655));
  TRY(spec.media.token, thinker.config.integer("image_token_id", {0, kMaxVocab}, spec.media.token));
  spec.media.video_token = -1;
  spec.names.prefixes = {"thinker.model."};
  spec.names.lm_head = "thinker.lm_head";
  ModelSpec tower = *spec.media.tower;
  set_tower_prefix(tower, "thinker.visual.");
  tower.names.attention.qkv = {"attn.q", "attn.k", "attn.v"};
  for (Names* names : {&spec.names, &tower.names})
    for (const char* other : {"thinker.audio_tower.*", "thinker.visual.*", "talker.*", "token2wav.*"})
      names->ignorable.emplace_back(other);
  for (const char* other : {"thinker.model.*", "thinker.lm_head.*"})
    tower.names.ignorable.emplace_back(other);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> qwen_towers_families() {
  static constexpr Family kRows[] = {
      {"Exaone4_5_ForConditionalGeneration", describe_exaone4_5},
      {"HCXVisionV2ForCausalLM", describe_hyperclovax_vision},
      {"HyperCLOVAXVisionV2ForConditionalGeneration", describe_hyperclovax_vision},
      {"OpenCUAForConditionalGeneration", describe_opencua},
      {"Qwen2_5OmniForConditionalGeneration", describe_qwen2_5_omni},
      {"Qwen2_5OmniModel", describe_qwen2_5_omni},
  };
  return kRows;
}

}  // namespace octavo
