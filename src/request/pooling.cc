#include "request/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo {

namespace {

constexpr std::pair<std::string_view, Task> kTasks[] = {{"embed", Task::embed},
                                                        {"token_embed", Task::token_embed},
                                                        {"classify", Task::classify},
                                                        {"token_classify", Task::token_classify}};

}  // namespace

std::optional<Task> task_named(std::string_view name) {
  for (const auto& [known, task] : kTasks)
    if (known == name) return task;
  return std::nullopt;
}

std::string_view task_name(Task task) {
  for (const auto& [name, known] : kTasks)
    if (known == task) return name;
  return "";
}

std::string task_names(const std::function<bool(Task)>& is_listed) {
  std::string names;
  for (const auto& [name, task] : kTasks)
    if (is_listed(task)) names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", name);
  return names;
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
