// /v1/responses
#include <boost/json/serialize.hpp>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "openai/errors.h"
#include "serve/mcp/session.h"
#include "serve/mcp/tools.h"
#include "serve/openai/responses_reply.h"
#include "serve/openai/responses_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr std::string_view kPrefix = "/v1/responses/";
constexpr std::string_view kCancel = "/cancel";

Result<> start_response(const ServicePtr& service, const ExchangePtr& exchange,
                        openai::ResponsesRequest request) {
  json::object pending;
  std::string id;
  const bool background = request.background, messages = request.messages;
  const auto reply = [&](const Tokenizer& tokenizer, openai::ReplyOptions options) {
    id = options.id;
    pending = openai::pending_response(request.response, options);
    return openai::responses_reply(tokenizer, std::move(options),
                                   {.response = std::move(request.response),
                                    .conversation = std::move(request.conversation),
                                    .tools = std::move(request.tools),
                                    .store = request.store ? &service->responses : nullptr,
                                    .conversations = &service->responses.conversations(),
                                    .conversation_id = request.conversation_id,
                                    .known_items = request.known_items,
                                    .background = background,
                                    .messages = messages});
  };
  TRY(GenerationPlan plan, prepare_chat_as(*service, std::move(request.chat), "resp_", reply));
  plan.background = background;
  const std::weak_ptr<Generation> generation = generate(service, exchange, std::move(plan));
  if (!background) return {};
  service->responses.cancel_with(id, [generation] {
    if (const auto running = generation.lock()) running->cancel();
  });
  exchange->respond({.body = exact_json_text(pending)});
  return {};
}

}  // namespace

Result<> create_response(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(json::object body, openai::parse_body(exchange->take_body()));
  if (!service->options.access.mcp.allowed.empty() && mcp::names_servers(body))
    return mcp::respond_with_servers(service, exchange, std::move(body));
  TRY(openai::ResponsesRequest request,
      openai::parse_responses_request(body, service->options.rules, service->responses));
  TRY_VOID(read_timeout(exchange->request(), request.chat.generation));
  const auto waiting = std::make_shared<openai::ResponsesRequest>(std::move(request));
  return with_media(service, exchange, waiting->chat.prompt.media, openai::error_response,
                    [=] { return start_response(service, exchange, std::move(*waiting)); });
}

http::Response stored_response(Service& service, std::string_view id) {
  auto response = service.responses.response(std::string(id));
  if (!response) return openai::error_response(response.error());
  return {.body = *std::move(response)};
}

http::Response delete_response(Service& service, std::string_view id) {
  if (const auto done = service.responses.forget(std::string(id)); !done)
    return openai::error_response(done.error());
  return {.body = json::serialize(json::object{{"id", id}, {"object", "response"}, {"deleted", true}})};
}

Result<> cancel_response(const ServicePtr& service, const ExchangePtr& exchange) {
  std::string_view path = exchange->request().path;
  path.remove_prefix(path.find(kPrefix));  // removes a proxy's path prefix
  if (!path.ends_with(kCancel) || path.size() <= kPrefix.size() + kCancel.size())
    return failure(ErrorCode::not_found, "there is no route {}; POST takes /v1/responses/ID/cancel",
                   quoted_text(path));
  const std::string id(path.substr(kPrefix.size(), path.size() - kPrefix.size() - kCancel.size()));
  TRY_VOID(service->responses.cancel(id));
  exchange->respond(stored_response(*service, id));
  return {};
}

}  // namespace octavo::routes
