// PaliGemma (Beyer et al., 2024) and PaliGemma 2 (Steiner et al., 2024): a SigLIP encoder of square images,
// one matrix, and a Gemma or Gemma 2. All tokens of a prompt see each other. ColPali (Faysse et al., 2024): a
// vector for each token, from a matrix after the language model.
#include <algorithm>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kPaliVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 224,
    "intermediate_size": 4096,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vocab_size": 1})";  // required by the reader of the config, but the encoder has no vocabulary

Result<ModelSpec> describe_pali_text(Config config) {
  config = config.without("use_bidirectional_attention");  // applies to prompts (MediaSpec::whole_prompts)
  TRY(const std::string kind, config.text("model_type", "gemma"));
  if (kind != "gemma" && kind != "gemma2")
    return field_failure("model_type", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be gemma or gemma2",
                         config.where("model_type"), kind);
  config.set_defaults(field_defaults(kind == "gemma" ? "GemmaForCausalLM" : "Gemma2ForCausalLM"));
  TRY(ModelSpec spec, kind == "gemma" ? describe_gemma(config) : describe_gemma2(config));
  // A window limits both directions, so prompts must fit into it.
  for (const LayerSpec& layer : spec.layers)
    if (const int window = layer.attention().mask.window; window > 0)
      spec.max_positions = std::min(spec.max_positions, window);
  return spec;
}

// `outside` is the prefix of the complete model, `inside` of the language model.
void set_tower_names(Names& names, const std::string& outside, const std::string& inside) {
  names.prefixes = {outside + "vision_tower.vision_model.", outside + "vision_tower."};
  names.projector.matrices = {outside + "multi_modal_projector.linear"};
  names.ignorable = {inside + "*", "lm_head.*", "*.position_ids",
                     outside + "vision_tower.vision_model.head.*"};
}

// Adds the encoder. `published` and `saved` are the prefixes of the complete model in published checkpoints
// and in those that transformers 5 saves.
Result<ModelSpec> with_pali_tower(ModelSpec spec, const Config& config, const std::string& published,
                                  const std::string& saved) {
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, 256000));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, spec.media.token));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip(vision.value_or(Config()), kPaliVision));
  tower.inputs.image->out_dim = spec.dim;
  tower.inputs.image->projector = {.bias = true};
  tower.other_names = tower.names;
  set_tower_names(tower.names, published, published + "language_model.");
  set_tower_names(*tower.other_names, saved, saved + "language_model.");
  spec.names.prefixes = {published + "language_model.model.", saved + "language_model."};
  spec.names.lm_head = published + "language_model.lm_head";
  for (const std::string& prefix : {published, saved})
    for (const char* other : {"vision_tower.*", "multi_modal_projector.*"})
      spec.names.ignorable.push_back(prefix + other);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_paligemma(const Config& config) {
  TRY(ModelSpec spec, describe_pali_text(config));
  spec.logits.tied = true;
  spec.media.whole_prompts = true;
  return with_pali_tower(std::move(spec), config, "", "model.");
}

// The fields of the language model and its encoder are in vlm_config.
static Result<ModelSpec> describe_colpali(const Config& config) {
  TRY(const std::optional<Config> vlm, config.object("vlm_config"));
  if (!vlm)
    return invalid("vlm_config", "{} is missing, but must have the configuration of the language model",
                   config.where("vlm_config"));
  TRY(const std::optional<Config> text, vlm->object("text_config"));
  TRY(ModelSpec spec, describe_pali_text(text.value_or(Config())));
  for (LayerSpec& layer : spec.layers) layer.attention().mask.causal = false;
  spec = as_embedder(std::move(spec));
  HeadLayer linear{.name = "embedding_proj_layer"};
  TRY(linear.outputs, config.integer("embedding_dim", {1, 1 << 16}, 128));
  spec.head = Head{.each_token = true, .normalise = true, .layers = {std::move(linear)}};
  TRY(spec, with_pali_tower(std::move(spec), *vlm, "vlm.", "vlm.model."));
  spec.names.prefixes.emplace_back("vlm.language_model.");
  ModelSpec tower = *spec.media.tower;
  for (Names* names : {&tower.names, &*tower.other_names})
    names->ignorable.emplace_back("embedding_proj_layer.*");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> paligemma_families() {
  static constexpr Family kRows[] = {
      {"ColPaliForRetrieval", describe_colpali},
      {"PaliGemmaForConditionalGeneration", describe_paligemma},
  };
  return kRows;
}

}  // namespace octavo
