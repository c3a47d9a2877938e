#include "serve/routes.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <string_view>

#include "base/log.h"
#include "serve/generation.h"
#include "serve/openai/errors.h"
#include "serve/prepare.h"

namespace octavo {

namespace json = boost::json;
using ExchangePtr = std::shared_ptr<http::Exchange>;
using ServicePtr = std::shared_ptr<Service>;

namespace {

// --- GET: answered on the event loop, so they must not wait ---

http::Response health(const Service& service) {
  if (!service.engine.stats().healthy) return openai::error_response(503, "the engine has failed");
  return {.content_type = "", .body = ""};
}

http::Response version(const Service& service) {
  return {.body = json::serialize(json::object{{"version", service.options.version}})};
}

http::Response load(const Service& service) {
  return {.body = json::serialize(json::object{{"server_load", service.generations.load()}})};
}

http::Response metrics(const Service& service) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.text(service.engine.stats(), service.grammars.stats())};
}

json::object model_json(const Service& service, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", service.started_at},
          {"owned_by", "octavo"},
          {"root", service.options.model_root.empty() ? name : service.options.model_root},
          {"parent", nullptr},
          {"max_model_len", service.options.rules.max_model_len},
          {"permission", json::array()}};
}

http::Response models(const Service& service) {
  json::array data;
  for (const std::string& name : service.options.rules.model_names) data.push_back(model_json(service, name));
  return {.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}})};
}

http::Response model(const Service& service, std::string_view name) {
  const auto& names = service.options.rules.model_names;
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    return openai::error_response(404, "this server does not have a model of that name", "model");
  return {.body = json::serialize(model_json(service, *found))};
}

// --- POST: read and prepared on the intake threads ---

// Says once for each name that a field of a request has no effect.
void warn_unknown(Service& service, const std::vector<std::string>& names) {
  constexpr std::size_t kRememberedMax = 256;
  constexpr std::size_t kNameBytesMax = 64;
  for (const std::string& name : names) {
    const std::lock_guard lock(service.unknown_fields_mutex);
    const bool plain = std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    if (!plain || name.size() > kNameBytesMax || service.unknown_fields.size() >= kRememberedMax) continue;
    if (service.unknown_fields.insert(name).second)
      log_warning("request field \"{}\" is unknown and ignored", name);
  }
}

template <class Request, class Prepare>
Result<> start(const ServicePtr& service, const ExchangePtr& exchange, Request request, Prepare prepare) {
  TRY(GenerationPlan plan, prepare(*service, std::move(request)));
  if (service->options.log_requests)
    log_info("{}: {} prompts, first of {} tokens, max_tokens {}, from {}", plan.request.request_id,
             plan.prompts.size(), plan.prompts.front().size(), plan.request.sampling.max_tokens.value_or(0),
             exchange->request().peer);
  Generation::start(service, std::move(plan), exchange);
  return {};
}

// A request with a grammar goes on where grammars are compiled, so that it holds up no other.
template <class Parse, class Prepare>
Result<> generate(const ServicePtr& service, const ExchangePtr& exchange, Parse parse, Prepare prepare) {
  TRY(json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, parse(body, service->options.rules));
  body.clear();
  warn_unknown(*service, request.generation.unknown_fields);
  if (!request.generation.output) return start(service, exchange, std::move(request), prepare);
  const auto shared = std::make_shared<decltype(request)>(std::move(request));
  const bool taken = service->compilers.try_post([service, exchange, shared, prepare] {
    if (const auto done = start(service, exchange, std::move(*shared), prepare); !done)
      exchange->respond(openai::error_response(done.error()));
  });
  if (taken) return {};
  service->metrics.admission_rejected();
  return failure(ErrorCode::unavailable, "too many grammars are waiting to be compiled");
}

Result<> chat_completions(const ServicePtr& service, const ExchangePtr& exchange) {
  return generate(service, exchange, openai::parse_chat_request, prepare_chat);
}

Result<> completions(const ServicePtr& service, const ExchangePtr& exchange) {
  return generate(service, exchange, openai::parse_completion_request, prepare_completion);
}

Result<> tokenize(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY_VOID(openai::check_model(fields, service->options.rules));
  const bool chat = fields.any("messages") != nullptr;
  bool add_special_tokens = !chat;
  bool return_token_strs = false;
  TRY_VOID(fields.boolean("add_special_tokens", add_special_tokens));
  TRY_VOID(fields.boolean("return_token_strs", return_token_strs));
  std::vector<TokenId> ids;
  if (chat) {
    TRY(const openai::ChatPrompt prompt, openai::read_chat_prompt(fields));
    TRY(ids, chat_tokens(*service, prompt, add_special_tokens, kEncodeBytesMax));
  } else {
    std::string prompt;
    if (!fields.any("prompt")) return invalid("prompt", "is missing");
    TRY_VOID(fields.text("prompt", prompt));
    TRY(ids, service->tokenizer.encode(prompt, add_special_tokens));
  }
  json::object out{{"count", ids.size()}, {"max_model_len", service->options.rules.max_model_len}};
  out["tokens"] = json::value_from(ids);
  out["token_strs"] = nullptr;
  if (return_token_strs) {
    json::array strings;
    for (const TokenId id : ids) strings.emplace_back(service->tokenizer.token(id).value_or(""));
    out["token_strs"] = std::move(strings);
  }
  exchange->respond({.body = json::serialize(out)});
  return {};
}

Result<> detokenize(const ServicePtr& service, const ExchangePtr& exchange) {
  TRY(const json::object body, openai::parse_body(exchange->take_body()));
  openai::Fields fields(body);
  TRY_VOID(openai::check_model(fields, service->options.rules));
  std::vector<TokenId> ids;
  if (!fields.any("tokens")) return invalid("tokens", "is missing");
  TRY_VOID(fields.integers("tokens", ids));
  const int vocabulary = service->options.rules.limits.vocab_size;
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      return invalid("tokens", "token id must be in [0, {}), got {}", vocabulary, id);
  TRY(const std::string text, service->tokenizer.decode(ids, false));
  exchange->respond({.body = json::serialize(json::object{{"prompt", text}})});
  return {};
}

// --- The table ---

using Get = http::Response (*)(const Service&);
using Post = Result<> (*)(const ServicePtr&, const ExchangePtr&);

struct Route {
  std::string_view path;
  Get get = nullptr;
  Post post = nullptr;
};

constexpr std::array kRoutes{
    Route{"/health", health},
    Route{"/ping", health},
    Route{"/version", version},
    Route{"/load", load},
    Route{"/metrics", metrics},
    Route{"/v1/models", models},
    Route{"/v1/completions", nullptr, completions},
    Route{"/v1/chat/completions", nullptr, chat_completions},
    Route{"/tokenize", nullptr, tokenize},
    Route{"/detokenize", nullptr, detokenize},
};

constexpr std::string_view kPublicPath = "/health";
constexpr std::string_view kModelPrefix = "/v1/models/";

bool is_json(const http::Request& request) {
  const std::string_view type = request.headers.find("Content-Type").value_or("application/json");
  return http::equal_ignoring_case(type.substr(0, type.find(';')), "application/json");
}

// Reading a body takes as long as the body is: never on the event loop.
void post(const ServicePtr& service, Post handle, ExchangePtr exchange) {
  if (!is_json(exchange->request()))
    return exchange->respond(openai::error_response(415, "the Content-Type must be application/json"));
  const bool taken = service->intake.try_post([service, handle, exchange] {
    if (const auto done = handle(service, exchange); !done)
      exchange->respond(openai::error_response(done.error()));
  });
  if (taken) return;
  service->metrics.admission_rejected();
  exchange->respond(openai::error_response(503, "too many requests are waiting to be read"));
}

void refuse_method(const Route& route, http::Exchange& exchange) {
  http::Response response = openai::error_response(405, "the method is not allowed here");
  response.headers.add("Allow", route.get ? "GET, HEAD" : "POST");
  exchange.respond(std::move(response));
}

}  // namespace

std::optional<http::Response> unauthorized(const ApiKeys& keys, const http::Request& request) {
  if (keys.open() || keys.allows(request.headers.find("Authorization").value_or(""))) return std::nullopt;
  if (request.path == kPublicPath) return std::nullopt;
  return openai::error_response(401, "a valid API key is needed: Authorization: Bearer KEY");
}

void route(const std::shared_ptr<Service>& service, const ApiKeys& keys,
           std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  if (service->options.request_id_headers)
    if (const auto id = request.headers.find("X-Request-Id"))
      exchange->add_header("X-Request-Id", std::string(*id));

  if (auto refusal = unauthorized(keys, request)) return exchange->respond(*std::move(refusal));
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads && request.path.starts_with(kModelPrefix))
    return exchange->respond(model(*service, std::string_view(request.path).substr(kModelPrefix.size())));
  const auto found = std::ranges::find(kRoutes, request.path, &Route::path);
  if (found == kRoutes.end()) return exchange->respond(openai::error_response(404, "there is no such route"));
  if (found->get && (reads || (request.method == "POST" && request.path == "/ping")))
    return exchange->respond(found->get(*service));
  if (found->post && request.method == "POST") return post(service, found->post, std::move(exchange));
  refuse_method(*found, *exchange);
}

}  // namespace octavo
