// Late interaction (ColPali: Faysse et al., 2024) with PaliGemma, Qwen3-VL or Qwen3.5: a vector for each token,
// from a matrix after the language model. Octavo reads the texts; documents that are images are not supported.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Config::Range kVector{1, 1 << 16};

// A vector of length 1 for each token. TomoroAI's files have embed_dim, OpenSearch's dims, ColPali's dim.
// Without such a field, there is no matrix.
Result<Head> read_vectors(const Config& config, bool bias) {
  Head head{.each_token = true, .normalise = true};
  const Config outer = config.outer();
  for (const char* field : {"embed_dim", "dims", "dim", "projection_dim", "colbert_dim"})
    for (const Config* fields : {&outer, &config}) {
      if (!fields->has(field)) continue;
      const bool tomoro = std::string_view(field) == "embed_dim";
      HeadLayer layer{.name = tomoro ? "embedding_proj_layer" : "custom_text_proj", .bias = bias};
      TRY(layer.outputs, fields->integer(field, kVector));
      head.layers = {std::move(layer)};
      return head;
    }
  return head;
}

Result<ModelSpec> as_late_interaction(ModelSpec spec, const Config& config, bool bias) {
  spec = as_embedder(std::move(spec));
  spec.predictor.reset();
  spec.names.prefixes = {"vlm.model.language_model.", "model.language_model.", "language_model.",
                         "language_model.model."};
  for (const char* other :
       {"vlm.model.visual.*", "model.visual.*", "visual.*", "vlm.lm_head.*", "lm_head.*", "mtp.*"})
    spec.names.ignorable.emplace_back(other);
  TRY(spec.head, read_vectors(config, bias));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_colqwen3(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  return as_late_interaction(std::move(spec), config, false);
}

static Result<ModelSpec> describe_colqwen3_5(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_5(config));
  return as_late_interaction(std::move(spec), config, true);
}

// ColPali in transformers' format. The language model is a Gemma 1, whose fields are in vlm_config.text_config.
static Result<ModelSpec> describe_colpali(const Config& config) {
  TRY(const std::optional<Config> whole, config.object("vlm_config"));
  TRY(std::optional<Config> text, whole ? whole->object("text_config") : std::optional<Config>());
  if (!text)
    return invalid("vlm_config", "{} must have the language model's configuration as text_config",
                   config.where("vlm_config"));
  text->set_defaults(field_defaults("GemmaForCausalLM"));
  TRY(ModelSpec spec, describe_gemma(*text));
  spec = as_embedder(std::move(spec));
  HeadLayer layer{.name = "embedding_proj_layer"};
  TRY(layer.outputs, config.integer("embedding_dim", kVector));
  spec.head = Head{.each_token = true, .normalise = true, .layers = {std::move(layer)}};
  spec.names.prefixes = {"vlm.language_model.model.", "vlm.model.language_model.", "vlm.language_model."};
  for (const char* other : {"vlm.vision_tower.*", "vlm.model.vision_tower.*", "vlm.multi_modal_projector.*",
                            "vlm.model.multi_modal_projector.*", "vlm.language_model.lm_head.*", "vlm.lm_head.*"})
    spec.names.ignorable.emplace_back(other);
  return spec;
}

std::span<const Family> colqwen_families() {
  static constexpr Family kRows[] = {
      {"ColPaliForRetrieval", describe_colpali, true},
      {"ColQwen3", describe_colqwen3, true},
      {"ColQwen3_5", describe_colqwen3_5, true},
      {"OpsColQwen3Model", describe_colqwen3, true},
      {"Qwen3VLNemotronEmbedModel", describe_colqwen3, true},
  };
  return kRows;
}

}  // namespace octavo
