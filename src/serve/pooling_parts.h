// Parts that the plans of all pooling routes have (pooling_plan.h, score_plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/pooling_plan.h"

namespace octavo {

// Fields that all replies have.
struct PoolingFrame {
  std::string id, model;
  std::int64_t tokens = 0;

  // data: JSON values, joined by commas
  std::string operator()(std::string_view data) const;
};

// The plan, and the fields that all replies have: after the texts are tokenised, all routes need both.
struct BegunPooling {
  PoolingPlan plan;
  PoolingFrame frame;
};
// prefix: beginning of the request's id
BegunPooling begin_pooling(const Service& service, openai::PoolingFields fields, std::string_view id,
                           std::string_view prefix, std::vector<Tokenizer::Texts> texts);

// Returns the names of the tasks that requests to /pooling can have; "" if there are none.
std::string pooling_tasks(const EngineInfo& info);
// Returns the error of a route that the model does not support: not_found, because vLLM's server lacks the
// route. what: what the model does not do.
std::unexpected<Error> no_pooling(const Service& service, std::string_view what);

// Returns the task of the routes that compare or return vectors: --pooler-config can choose between one
// vector for each text and one for each token. Otherwise, the model's default task.
Task vectors_task(const Service& service);
// Keeps the token vectors and components that PoolingRules and the model's TokenHead select. ids: the tokens.
void choose(const Service& service, Task task, std::span<const TokenId> ids, std::vector<float>& vectors);

// Returns the number of components of a vector in a reply.
int vector_size(const Service& service, Task task);
// Returns whether the reply has numbers after normalisation or activation.
bool is_activated(const Service& service, const openai::PoolingFields& fields);
// Applies the model's normalisation or activation for a task. wanted: whether the request wants it.
void activate_vector(const Service& service, Task task, bool wanted, std::span<float> vector);
// vectors: several vectors, one after another. Keeps only the first `kept` components of each vector, and
// applies activate_vector() to them.
void activate_each(const Service& service, Task task, bool wanted, std::size_t kept,
                   std::vector<float>& vectors);

}  // namespace octavo
