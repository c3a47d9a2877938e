#include "engine/load/prompt_embeds.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace octavo {
namespace {

// Returns why the model needs token ids in addition to embeddings; "": it does not need them.
std::string_view needs_ids(const ModelSpec& spec) {
  if (spec.head) return "is a pooling model: only generating models take them";
  if (spec.has_cross()) return "reads its prompt or sound with an encoder";
  if (spec.embedding.learned_positions > 0 || spec.embedding.token_types > 0)
    return "adds embeddings of positions or types to those of tokens";
  if (spec.inputs.by_layer) return "has an input for each layer, which it computes from token ids";
  const bool by_id = std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    const auto* experts = std::get_if<Experts>(&layer.feed_forward);
    return experts != nullptr && experts->vocab > 0;
  });
  return by_id ? "chooses experts by token ids" : "";
}

}  // namespace

Result<> check_prompt_embeds(const EngineOptions& options, const Model& model) {
  const auto refuse = [&](std::string_view why) {
    return field_failure("enable_prompt_embeds", ErrorCode::unsupported, "{} {}", model.spec.architecture,
                         why);
  };
  if (const std::string_view why = needs_ids(model.spec); !why.empty()) return refuse(why);
  if (model.spec.media.tower)
    return refuse(
        R"(also takes images or sound: disable them with --limit-mm-per-prompt '{"image": 0, "video": 0, "audio": 0}')");
  if (options.parallel.pipeline_parallel_size > 1)
    return refuse("cannot take them in stages: set --pipeline-parallel-size 1");
  return {};
}

}  // namespace octavo
