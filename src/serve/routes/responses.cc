// /v1/responses
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <limits>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "http/target.h"
#include "openai/errors.h"
#include "serve/mcp/session.h"
#include "serve/mcp/tools.h"
#include "serve/openai/compaction.h"
#include "serve/openai/event_log.h"
#include "serve/openai/responses_reply.h"
#include "serve/openai/responses_request.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"
#include "serve/routes/item_page.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr std::string_view kCancel = "/cancel";
constexpr std::string_view kInputItems = "/input_items";

// The parts of a path /v1/responses/IDACTION, such as /v1/responses/resp_1/cancel.
struct ResponsePath {
  std::string id;
  std::string_view action;
};

ResponsePath parse_response_path(std::string_view path) {
  constexpr std::string_view kPrefix = "/v1/responses/";
  path.remove_prefix(path.find(kPrefix) + kPrefix.size());  // the path may begin with a proxy's prefix
  const std::size_t end = std::min(path.find('/'), path.size());
  return {.id = std::string(path.substr(0, end)), .action = path.substr(end)};
}

// Returns the methods that the action allows (for an Allow header), or "" if the action does not exist.
std::string_view methods_of(std::string_view action) {
  if (action.empty()) return "GET, HEAD, DELETE";
  if (action == kInputItems) return "GET, HEAD";
  return action == kCancel ? "POST" : "";
}

Result<> respond_stored(Service& service, http::Exchange& exchange, const std::string& id) {
  TRY(std::string response, service.responses.response(id));
  exchange.respond({.body = std::move(response)});
  return {};
}

Result<> start_response(const ServicePtr& service, const ExchangePtr& exchange,
                        openai::ResponsesRequest request) {
  json::object pending;
  std::string id;
  const bool background = request.background, messages = request.messages;
  const bool logs = background && request.chat.generation.stream.enabled;
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
  plan.background = background && !logs;
  ExchangePtr client = exchange;
  if (logs) {
    const auto events = std::make_shared<openai::EventLog>(exchange, service->responses.written_events());
    service->responses.keep_events(id, events);
    exchange->release_body();
    client = events;
  }
  const std::weak_ptr<Generation> generation = generate(service, client, std::move(plan));
  if (!background) return {};
  service->responses.start(id, [generation] {
    if (const auto running = generation.lock()) running->cancel();
  });
  if (!logs) exchange->respond({.body = exact_json_text(pending)});
  return {};
}

// Sends the events of a response, from the event after the number `starting_after` of the query.
Result<> send_events(const Service& service, const ExchangePtr& exchange, const std::string& id) {
  const std::string given = http::query_value(exchange->request().query, "starting_after").value_or("");
  std::int64_t after = -1;
  const char* const end = given.data() + given.size();
  if (!given.empty())
    if (const auto [last, error] = std::from_chars(given.data(), end, after);
        error != std::errc{} || last != end || after < 0 || after > std::numeric_limits<std::int32_t>::max())
      return invalid("starting_after", "must be the sequence_number of an event, got {}",
                     quoted_text(given.substr(0, 100)));
  TRY(const std::shared_ptr<openai::EventLog> events, service.responses.events(id));
  if (!events)
    return invalid("stream", "needs a response that was created with background = true and stream = true");
  events->send_to(exchange, after);
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
  TRY_VOID(read_session_header(exchange->request(), request.chat.generation));
  const auto waiting = std::make_shared<openai::ResponsesRequest>(std::move(request));
  return with_media(service, exchange, waiting->chat.prompt.media, openai::error_response,
                    [=] { return start_response(service, exchange, std::move(*waiting)); });
}

Result<> compact_response(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(json::object body, openai::parse_body(exchange->take_body()));
  TRY(openai::ResponsesRequest request,
      openai::parse_responses_request(openai::compaction_body(std::move(body)), service->options.rules,
                                      service->responses));
  TRY_VOID(read_timeout(exchange->request(), request.chat.generation));
  TRY_VOID(read_session_header(exchange->request(), request.chat.generation));
  request.conversation.pop_back();  // the message that requests the summary
  const auto waiting = std::make_shared<openai::ResponsesRequest>(std::move(request));
  const auto go_on = [=]() -> Result<> {
    const auto reply = [&](const Tokenizer&, openai::ReplyOptions options) {
      return openai::compaction_reply(std::move(options), std::move(waiting->conversation));
    };
    TRY(GenerationPlan plan, prepare_chat_as(*service, std::move(waiting->chat), "resp_", reply));
    generate(service, exchange, std::move(plan));
    return {};
  };
  return with_media(service, exchange, waiting->chat.prompt.media, openai::error_response, go_on);
}

Result<> count_response_tokens(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  TRY(openai::ResponsesRequest request,
      openai::parse_responses_request(body, service->options.rules, service->responses));
  return with_chat_tokens(
      service, exchange, std::move(request.chat.prompt), request.chat.generation.prompt.add_special_tokens,
      prompt_bytes_max(*service, true), openai::error_response, [=](const std::vector<TokenId>& ids) {
        exchange->respond({.body = json::serialize(json::object{{"object", "response.input_tokens"},
                                                                {"input_tokens", ids.size()}})});
      });
}

Result<> stored_responses(const ServicePtr& service, const ExchangePtr& exchange) {
  const http::Request& request = exchange->request();
  const ResponsePath path = parse_response_path(request.path);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::string_view methods = methods_of(path.action);
  if (methods.empty() || (path.action.empty() && request.method == "POST"))
    return failure(ErrorCode::not_found,
                   "the route {} does not exist; a stored response has /v1/responses/ID, "
                   "/v1/responses/ID/cancel and /v1/responses/ID/input_items",
                   quoted_text(request.path.substr(0, 100)));
  if (path.action.empty() && reads) {
    if (http::query_value(request.query, "stream") == "true" && request.method == "GET")
      return send_events(*service, exchange, path.id);
    return respond_stored(*service, *exchange, path.id);
  }
  if (path.action == kInputItems && reads) {
    TRY(json::array items, service->responses.input(path.id));
    TRY(const json::object page, item_page(request, std::move(items)));
    exchange->respond({.body = exact_json_text(page)});
    return {};
  }
  if (path.action.empty() && request.method == "DELETE") {
    TRY_VOID(service->responses.forget(path.id));
    exchange->respond(
        {.body = json::serialize(json::object{{"id", path.id}, {"object", "response"}, {"deleted", true}})});
    return {};
  }
  if (path.action == kCancel && request.method == "POST") {
    TRY(std::string response, service->responses.cancel(path.id));
    exchange->respond({.body = std::move(response)});
    return {};
  }
  http::Response refusal =
      openai::error_response(405, fmt::format("{} is not allowed here: use {}", request.method, methods));
  refusal.headers.add("Allow", std::string(methods));
  exchange->respond(std::move(refusal));
  return {};
}

}  // namespace octavo::routes
