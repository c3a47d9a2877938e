#include "request/pooling.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::optional<Task> task_named(std::string_view name) {
  if (name == "embed") return Task::embed;
  if (name == "classify") return Task::classify;
  if (name == "token_embed") return Task::token_embed;
  if (name == "token_classify") return Task::token_classify;
  return std::nullopt;
}

void normalise(std::span<float> vector) {
  double squares = 0;
  for (const float x : vector) squares += double{x} * x;
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& x : vector) x = static_cast<float>(x * scale);
}

void activate(ScoreActivation activation, std::span<float> scores) {
  if (activation == ScoreActivation::sigmoid)
    for (float& x : scores) x = static_cast<float>(1 / (1 + std::exp(-double{x})));
  if (activation == ScoreActivation::relu)
    for (float& x : scores) x = std::max(x, 0.0F);
  if (activation != ScoreActivation::softmax || scores.empty()) return;
  const double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float x : scores) sum += std::exp(x - most);
  for (float& x : scores) x = static_cast<float>(std::exp(x - most) / sum);
}

}  // namespace octavo
