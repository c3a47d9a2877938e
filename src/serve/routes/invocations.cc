// /invocations, SageMaker's only route. As in vLLM, the fields of a body decide which route handles the
// request, a header may name an adapter, and requests create and close stateful sessions.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <string_view>

#include "base/exact_json.h"
#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

using Names = std::array<std::string_view, 4>;

// The row applies to a body that has a field of `first` and, unless `second` is empty, a field of `second`.
// generates: whether the row is for models that generate text.
struct Shape {
  bool generates;
  Names first, second;
  Post post;
};

constexpr Shape kShapes[] = {
    {true, {"messages"}, {}, chat_completions},
    {true, {"prompt"}, {}, completions},
    {false, {"query"}, {"documents"}, rerank},
    {false, {"text_1", "queries", "data_1"}, {"text_2", "documents", "items", "data_2"}, score},
};

bool has_one(const boost::json::object& body, const Names& names) {
  return names.front().empty() || std::ranges::any_of(names, [&](std::string_view name) {
           return !name.empty() && body.contains(name);
         });
}

constexpr std::string_view kSession = "X-Amzn-SageMaker-Session-Id";
constexpr std::string_view kAdapter = "X-Amzn-SageMaker-Adapter-Identifier";

void answer_session(http::Exchange& exchange, std::string text, std::string header, std::string value) {
  http::Response response{.content_type = "text/plain; charset=utf-8", .body = std::move(text)};
  response.headers.add(std::move(header), std::move(value));
  exchange.respond(std::move(response));
}

Result<> create_session(Service& service, http::Exchange& exchange) {
  TRY(const SageMakerSessions::Created session, service.sessions->create(std::time(nullptr)));
  answer_session(exchange, fmt::format("Session {} created", session.id), "X-Amzn-SageMaker-New-Session-Id",
                 fmt::format("{}; Expires={:%Y-%m-%dT%H:%M:%SZ}", session.id,
                             fmt::gmtime(static_cast<std::time_t>(session.expires_s))));
  return {};
}

Result<> close_session(Service& service, http::Exchange& exchange) {
  const std::string id(exchange.request().headers.find(kSession).value_or(""));
  if (id.empty()) {
    exchange.respond(openai::error_response(
        424, fmt::format("Failed to close session: invalid session_id: the header {} is missing", kSession)));
    return {};
  }
  TRY_VOID(service.sessions->close(id, std::time(nullptr)));
  answer_session(exchange, fmt::format("Session {} closed", id), "X-Amzn-SageMaker-Closed-Session-Id", id);
  return {};
}

constexpr std::string_view kNoSessions =
    "stateful sessions are not enabled: start the server with --sagemaker-sessions (environment: "
    "SAGEMAKER_ENABLE_STATEFUL_SESSIONS)";

Result<> handle_session(Service& service, http::Exchange& exchange, const boost::json::object& body) {
  openai::Fields fields(body);
  std::string type;
  TRY_VOID(fields.text("requestType", type));
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid(unread.front(), "is not allowed beside requestType");
  if (type != "NEW_SESSION" && type != "CLOSE")
    return invalid("requestType", "must be \"NEW_SESSION\" or \"CLOSE\"");
  if (!service.sessions) return invalid("requestType", "{}", kNoSessions);
  return type == "CLOSE" ? close_session(service, exchange) : create_session(service, exchange);
}

// Checks the session of a request that generates text or computes vectors.
Result<> check_session(Service& service, const http::Request& request) {
  const auto id = request.headers.find(kSession);
  if (!id) return {};
  if (!service.sessions) return invalid(kSession, "{}", kNoSessions);
  return service.sessions->check(std::string(*id), std::time(nullptr));
}

}  // namespace

Result<> invocations(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(boost::json::object body, openai::parse_body(exchange->request().body));
  if (body.contains("requestType")) return handle_session(*service, *exchange, body);
  TRY_VOID(check_session(*service, exchange->request()));
  if (const auto adapter = exchange->request().headers.find(kAdapter)) {
    body["model"] = *adapter;
    exchange->set_body(exact_json_text(body));
  }
  const Task task = service->engine_info.tasks.default_task;
  for (const Shape& shape : kShapes)
    if (shape.generates == (task == Task::generate) && has_one(body, shape.first) &&
        has_one(body, shape.second))
      return shape.post(service, exchange);
  if (task == Task::generate) return invalid("body", "must have messages (a chat) or prompt (a completion)");
  if (!has_one(body, {"input", "messages"}))
    return invalid("body", "must have input or messages, query and documents, or text_1 and text_2");
  if (task == Task::embed || task == Task::token_embed) return embeddings(service, exchange);
  return task == Task::classify ? classify(service, exchange) : pooling(service, exchange);
}

}  // namespace octavo::routes
