// Late interaction (ColPali: Faysse et al., 2024) with Qwen3-VL or Qwen3.5: a vector for each token, from a
// matrix after the language model. Documents are texts or images.
#include <memory>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
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

// Sets the prefix of the encoder. TomoroAI's checkpoints have one prefix, all others one of two.
void set_tower_prefixes(ModelSpec& spec, bool tomoro) {
  if (!spec.media.tower) return;
  const auto names_under = [&](const std::string& prefix) {
    const std::string deep = prefix + "deepstack_merger_list.{}.";
    Names names = spec.media.tower->names;
    names.prefixes = {prefix};
    names.projector.matrices = {prefix + "merger.linear_fc1", prefix + "merger.linear_fc2"};
    names.projector.deep = {deep + "linear_fc1", deep + "linear_fc2"};
    names.projector.deep_norms = deep + "norm";
    for (const char* other : {"vlm.model.language_model.*", "vlm.lm_head.*", "language_model.*",
                              "embedding_proj_layer.*", "custom_text_proj.*"})
      names.ignorable.emplace_back(other);
    return names;
  };
  ModelSpec tower = *spec.media.tower;
  tower.names = names_under(tomoro ? "vlm.model.visual." : "model.visual.");
  if (!tomoro) tower.other_names = names_under("visual.");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
}

Result<ModelSpec> as_late_interaction(ModelSpec spec, const Config& config, bool bias) {
  spec = as_embedder(std::move(spec));
  spec.predictor.reset();
  spec.media.video_token = -1;
  set_tower_prefixes(spec, config.has("embed_dim"));
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
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec spec, vision ? describe_qwen3_vl(config) : describe_qwen3(config));
  return as_late_interaction(std::move(spec), config, false);
}

static Result<ModelSpec> describe_colqwen3_5(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_5_vl(config));
  return as_late_interaction(std::move(spec), config, true);
}

std::span<const Family> colqwen_families() {
  static constexpr Family kRows[] = {
      {"ColQwen3", describe_colqwen3},
      {"ColQwen3_5", describe_colqwen3_5},
      {"OpsColQwen3Model", describe_colqwen3},
      {"Qwen3VLNemotronEmbedModel", describe_colqwen3},
  };
  return kRows;
}

}  // namespace octavo
