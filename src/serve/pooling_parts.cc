#include "serve/pooling_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "serve/vector_text.h"

namespace octavo {

std::string PoolingFrame::operator()(std::string_view data) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format(
      R"({{"id":{},"object":"list","created":{},"model":{},"data":[{}],)"
      R"("usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":0,"prompt_tokens_details":null}}}})",
      json_text(id), std::chrono::duration_cast<std::chrono::seconds>(now).count(), json_text(model), data,
      tokens, tokens);
}

std::string pooling_tasks(const EngineInfo& info) {
  return task_names([&](Task task) { return info.tasks.does(task); });
}

std::unexpected<Error> no_pooling(const Service& service, std::string_view what) {
  const std::string tasks = pooling_tasks(service.engine_info);
  const std::string advice = tasks.empty() ? "use another model, or start the server with --runner pooling"
                                           : fmt::format("send POST /pooling with the task {}", tasks);
  return field_failure("model", ErrorCode::not_found, "{} models do not {}: {}",
                       service.engine_info.architecture, what, advice);
}

Task vectors_task(const Service& service) {
  const TaskRules& tasks = service.engine_info.tasks;
  const std::optional<Task> chosen = service.options.pooling.task;
  const bool makes_vectors = chosen == Task::embed || chosen == Task::token_embed;
  return makes_vectors && tasks.does(*chosen) ? *chosen : tasks.default_task;
}

void choose(const Service& service, Task task, std::span<const TokenId> ids, std::vector<float>& vectors) {
  const PoolingRules& rules = service.options.pooling;
  const TaskRules::TokenHead* head = service.engine_info.tasks.token_head(task);
  if (!rules.step_tag && rules.returned.empty() && head == nullptr) return;
  const auto size = static_cast<std::size_t>(service.engine_info.tasks.size_for(task));
  std::vector<float> chosen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (rules.step_tag && ids[i] != *rules.step_tag) continue;
    if (head != nullptr && i == 0 && ids[i] == head->left_out_first) continue;
    if (head != nullptr && i + 1 == ids.size() && ids[i] == head->left_out_last) continue;
    const std::span<const float> vector = std::span(vectors).subspan(i * size, size);
    if (rules.returned.empty()) chosen.insert(chosen.end(), vector.begin(), vector.end());
    for (const int index : rules.returned) chosen.push_back(vector[static_cast<std::size_t>(index)]);
  }
  vectors = std::move(chosen);
}

BegunPooling begin_pooling(const Service& service, openai::PoolingFields fields, std::string_view id,
                           std::string_view prefix, std::vector<Tokenizer::Texts> texts) {
  std::string own = fields.request_id.empty() ? std::string(id) : std::move(fields.request_id);
  if (own.empty()) own = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  BegunPooling begun{.plan = {.request_id = fmt::format("{}{}", prefix, own),
                              .texts = std::move(texts),
                              .task = service.engine_info.tasks.default_task,
                              .adapter = fields.adapter,
                              .priority = fields.priority,
                              .unknown_fields = std::move(fields.unknown_fields)},
                     .frame = {}};
  begun.frame = {
      .id = begun.plan.request_id,
      .model = begun.plan.adapter.empty() ? service.options.rules.model_names.front() : begun.plan.adapter,
      .tokens = begun.plan.tokens()};
  return begun;
}

bool is_activated(const Service& service, const openai::PoolingFields& fields) {
  return fields.activated.value_or(service.options.pooling.activated.value_or(true));
}

void activate_vector(const Service& service, Task task, bool wanted, std::span<float> vector) {
  const EngineInfo& info = service.engine_info;
  const TaskRules::TokenHead* own = info.tasks.token_head(task);
  if (task == Task::embed || task == Task::token_embed) {
    if (wanted && (own != nullptr ? own->normalise : info.tasks.normalise)) normalise(vector);
    return;
  }
  const PoolingRules& rules = service.options.pooling;
  for (float& score : vector) score = (score - rules.score_mean) / rules.score_sigma;
  if (wanted) octavo::activate(own != nullptr ? own->activation : info.tasks.score_activation, vector);
}

int vector_size(const Service& service, Task task) {
  const std::vector<int>& returned = service.options.pooling.returned;
  return returned.empty() ? service.engine_info.tasks.size_for(task) : static_cast<int>(returned.size());
}

void activate_each(const Service& service, Task task, bool wanted, std::size_t kept,
                   std::vector<float>& vectors) {
  const auto size = static_cast<std::size_t>(vector_size(service, task));
  const std::size_t count = vectors.size() / size;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<float> vector(vectors.data() + i * kept, kept);
    std::copy_n(vectors.begin() + static_cast<std::ptrdiff_t>(i * size), kept, vector.begin());
    activate_vector(service, task, wanted, vector);
  }
  vectors.resize(count * kept);
}

}  // namespace octavo
