#include "engine/load/describe_model.h"

#include <algorithm>
#include <optional>

#include "model/decoder.h"

namespace octavo {
namespace {

Task task_of(const Head& head) {
  if (head.each_token) return head.labels.empty() ? Task::token_embed : Task::token_classify;
  return head.labels.empty() ? Task::embed : Task::classify;
}

ScoreActivation activation_of(const Head& head) {
  switch (head.label_activation) {
    case LabelActivation::none:
      break;
    case LabelActivation::sigmoid:
      return ScoreActivation::sigmoid;
    case LabelActivation::softmax:
      return ScoreActivation::softmax;
    case LabelActivation::relu:
      return ScoreActivation::relu;
  }
  return ScoreActivation::none;
}

EngineInfo::ImageRule image_rule(const ModelSpec& spec, int max_model_len) {
  const ImageInput& input = *spec.media.tower->inputs.image;
  const bool any = input.image_size == 0;
  return {.size = input.image_size,
          .tokens = any ? max_model_len : input.side() * input.side(),
          .token_id = spec.media.token,
          .unit = input.unit(),
          .row_breaks = input.row_breaks,
          .marks = input.marks(),
          .whole = spec.media.whole_images,
          .tiled = input.tiled,
          .whole_last = input.whole_last ? input.merge : 0,
          .frames = spec.media.video_token >= 0 ? std::max(1, input.frames) : 0,
          .video_token_id = std::max(0, spec.media.video_token),
          .time_steps = input.time_steps};
}

}  // namespace

void describe_head(const ModelSpec& spec, EngineInfo& info) {
  const Head& head = *spec.head;
  info.tasks.default_task = task_of(head);
  info.tasks.pooled_size = pooled_size(spec);
  info.tasks.normalise = head.normalise;
  info.tasks.labels = head.labels;
  info.tasks.score_activation = activation_of(head);
  for (std::size_t i = 1; i < spec.heads(); ++i) {
    const Head& of_tokens = spec.head_at(i);
    info.tasks.token_heads.push_back({.task = task_of(of_tokens),
                                      .size = pooled_size(spec, i),
                                      .normalise = of_tokens.normalise,
                                      .activation = activation_of(of_tokens),
                                      .left_out_first = of_tokens.left_out_first,
                                      .left_out_last = of_tokens.left_out_last});
  }
}

void describe_media(const ModelSpec& spec, int max_num_seqs, int max_model_len, EngineInfo& info) {
  if (const auto& source = spec.media.tower->inputs.source)
    info.source = {.tokens = source->rows, .slots = max_num_seqs, .begin = source->begin};
  else if (spec.has_audio_encoder())
    info.sound = {.mels = spec.media.tower->inputs.sound->mels,
                  .frames = spec.media.tower->inputs.sound->frames(),
                  .slots = max_num_seqs};
  else if (const std::optional<SoundInput>& sound = spec.media.tower->inputs.sound)
    info.sound = {.mels = sound->mels,
                  .frames = sound->frames(),
                  .tokens = sound->tokens(),
                  .token_id = spec.media.token,
                  .whole = sound->whole,
                  .trimmed = sound->trimmed};
  else
    info.image = image_rule(spec, max_model_len);
}

}  // namespace octavo
