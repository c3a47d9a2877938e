// /invocations, SageMaker's only route. As in vLLM, the fields of a body decide which route handles the
// request.
#include <algorithm>
#include <array>
#include <string_view>

#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

using Names = std::array<std::string_view, 3>;

// A body belongs to a route if the body has a field from each list. `generates` is true if the model must
// generate text.
struct Shape {
  bool generates;
  Names first, second;
  Post post;
};

constexpr Shape kShapes[] = {
    {true, {"messages"}, {}, chat_completions},
    {true, {"prompt"}, {}, completions},
    {false, {"query"}, {"documents"}, rerank},
    {false, {"text_1", "queries", "data_1"}, {"text_2", "documents", "data_2"}, score},
};

bool has_one(const boost::json::object& body, const Names& names) {
  return names.front().empty() || std::ranges::any_of(names, [&](std::string_view name) {
           return !name.empty() && body.contains(name);
         });
}

}  // namespace

Result<> invocations(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const boost::json::object body, openai::parse_body(exchange->request().body));
  const Task task = service->engine_info.tasks.default_task;
  for (const Shape& shape : kShapes)
    if (shape.generates == (task == Task::generate) && has_one(body, shape.first) &&
        has_one(body, shape.second))
      return shape.post(service, exchange);
  if (task == Task::generate) return invalid("body", "must have messages (a chat) or prompt (a completion)");
  if (!has_one(body, {"input", "messages"}))
    return invalid("body", "must have input or messages, query and documents, or text_1 and text_2");
  if (task == Task::embed) return embeddings(service, exchange);
  return task == Task::classify ? classify(service, exchange) : pooling(service, exchange);
}

}  // namespace octavo::routes
