#include "engine/load/prompt_embeds.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace octavo {
namespace {

// Returns why the model cannot compute prompts without token ids, or an empty text.
std::string_view needs_ids(const ModelSpec& spec) {
  if (spec.head) return "is a pooling model, but prompt_embeds need a generating model";
  if (spec.has_cross()) return "has an encoder for prompts or sound, so it does not support prompt_embeds";
  if (spec.embedding.learned_positions > 0 || spec.embedding.token_types > 0)
    return "adds position or type embeddings to those of tokens, so it does not support prompt_embeds";
  if (spec.inputs.by_layer)
    return "computes an input for each layer from token ids, so it does not support prompt_embeds";
  const bool by_id = std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    const auto* experts = std::get_if<Experts>(&layer.feed_forward);
    return experts != nullptr && experts->vocab > 0;
  });
  return by_id ? "chooses experts by token ids, so it does not support prompt_embeds" : "";
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
        R"(also accepts images or sound: disable them with --limit-mm-per-prompt '{"image": 0, "video": )"
        R"(0, "audio": 0}')");
  if (options.parallel.pipeline_parallel_size > 1)
    return refuse("does not support prompt_embeds with pipeline stages: set --pipeline-parallel-size 1");
  return {};
}

}  // namespace octavo
