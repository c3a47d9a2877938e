// Ling 3 with images (Ant Group, 2026): Qwen3-VL's encoder without DeepStack, and a Ling 3 whose latent
// attention has positions in height and width, which alternate, then in time.
#include <memory>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// mrope_section has the numbers of pairs for time, height and width. The last two are equal.
Result<> set_ling_axes(ModelSpec& spec, const Config& config) {
  RopeSpec& rope = spec.ropes.at(0);
  std::vector<int> sections{12, 10, 10};
  if (config.has("mrope_section")) {
    TRY(sections, config.integers("mrope_section", {0, 1 << 12}));
  }
  const int pairs = rope.rotary_dim / 2;
  if (sections.size() != 3 || sections[1] != sections[2] || sections[0] + 2 * sections[1] != pairs)
    return invalid("mrope_section", "{} must be 3 numbers with the sum {}, of which the last two are equal",
                   config.where("mrope_section"), pairs);
  for (int pair = 0; pair < pairs; ++pair) rope.axes.push_back(pair < 2 * sections[1] ? 1 + pair % 2 : 0);
  return {};
}

Result<ModelSpec> describe_ling_tower(const Config& vision, int out_dim) {
  TRY(ModelSpec tower, describe_qwen3_vl_tower(vision));
  tower.inputs.image->out_dim = out_dim;
  tower.inputs.image->projector.hidden = out_dim;
  const auto names_under = [&](const std::string& prefix) {
    Names names = tower.names;
    names.prefixes = {prefix + "visual."};
    names.projector.matrices = {prefix + "linear_proj.0", prefix + "linear_proj.2"};
    names.ignorable.emplace_back("model.word_embeddings.*");
    return names;
  };
  tower.other_names = names_under("");
  tower.names = names_under("model.");
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_bailing_v3_vl(const Config& config) {
  TRY(ModelSpec spec, describe_bailing_v3(config));
  TRY_VOID(set_ling_axes(spec, config));
  TRY_VOID(set_tied(spec, config));
  if (config.has("image_token_id")) {
    TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}));
  } else {
    spec.media.token_text = "<|image_pad|>";
  }
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_ling_tower(vision.value_or(Config()), spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  for (Names* names : {&spec.names, &*spec.other_names})
    for (const char* other : {"model.visual.*", "model.linear_proj.*", "visual.*", "linear_proj.*"})
      names->ignorable.emplace_back(other);
  return spec;
}

std::span<const Family> bailing_v3_vl_families() {
  static constexpr Family kRows[] = {{"BailingMoeV3VLForConditionalGeneration", describe_bailing_v3_vl}};
  return kRows;
}

}  // namespace octavo
