// /v1/chat/completions and /v1/completions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/quoted_text.h"
#include "openai/api_key.h"
#include "openai/errors.h"
#include "openai/request_id.h"
#include "serve/load_report.h"
#include "serve/openai/session_fields.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace {

void log_prompt(const Service& service, const GenerationPlan& plan) {
  const std::string text = service.tokenizer.decode(plan.prompts.front(), false).value_or("");
  const std::size_t most = service.options.observe.max_log_len
                               ? static_cast<std::size_t>(*service.options.observe.max_log_len)
                               : text.size();
  log(LogLevel::debug, "{}: prompt {}", plan.request.request_id,
      quoted_text(std::string_view(text).substr(0, most)));
}

// Returns a cache salt with which only requests of the same client and with the same cache_salt share cached
// prefixes. The client (an API key) is hashed, because KV events contain salts.
std::string salt_of(std::string_view client, std::string_view own) {
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(client)), 0);
  return fmt::format("{:016x}{:016x}@{}", hash.high, hash.low, own);
}

template <class Request>
Result<Request> read_request(const ServicePtr& service, const ExchangePtr& exchange,
                             Result<Request> (*parse)(const boost::json::object&, const openai::RequestRules&)) {
  TRY(const boost::json::object body, openai::parse_body(exchange->take_body()));
  TRY(Request request, parse(body, service->options.rules));
  TRY_VOID(read_headers(exchange->request(), request.generation));
  return request;
}

Result<> start_chat(const ServicePtr& service, const ExchangePtr& exchange, openai::ChatRequest request) {
  TRY(GenerationPlan plan, prepare_chat(*service, std::move(request)));
  return start(service, exchange, std::move(plan));
}

}  // namespace

Result<> with_media(const ServicePtr& service, const ExchangePtr& exchange,
                    std::vector<openai::ChatPrompt::Media>& media,
                    http::Response (*error_response)(const Error&), std::function<Result<>()> go_on) {
  const std::string client = client_of(*service, exchange->request());
  TRY_VOID(service->fetchers.media.restore(client, media));
  // Decoding a video takes long, so it also runs on a fetching thread, to not delay short requests.
  const auto away = [](const openai::ChatPrompt::Media& one) {
    return (is_address(one.url) && !one.bytes) || one.kind == openai::MediaKind::video;
  };
  if (std::ranges::none_of(media, away)) {
    service->fetchers.media.keep(client, media);
    return go_on();
  }
  const bool taken = service->fetchers.pool.try_post([=, &media, go_on = std::move(go_on)] {
    const auto done = within_memory([&]() -> Result<> {
      TRY_VOID(fetch_all(service->options.media.sources, media));
      service->fetchers.media.keep(client, media);
      return go_on();
    });
    if (!done) exchange->respond(error_response(done.error()));
  });
  if (!taken)
    return failure(ErrorCode::unavailable, "too many requests wait for images or sound: retry later");
  return {};
}

Result<> read_timeout(const http::Request& request, openai::GenerationRequest& generation) {
  const auto given = request.headers.find("X-Request-Timeout");
  if (!given) return {};
  double seconds = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), seconds);
  if (error != std::errc{} || end != given->data() + given->size())
    return invalid("X-Request-Timeout", "must be a number of seconds, got {}", quoted_text(*given));
  TRY(generation.timeout_s, openai::checked_timeout(seconds));
  return {};
}

// Headers that name the session: those of Octavo, Claude Code and Codex.
constexpr std::string_view kSessionHeaders[] = {"X-Session-Id", "X-Claude-Code-Session-Id", "session_id"};

Result<> read_session_header(const http::Request& request, openai::GenerationRequest& generation) {
  if (!generation.session) generation.session.emplace();
  std::string& id = generation.session->key.id;
  for (const std::string_view name : kSessionHeaders)
    if (const auto given = request.headers.find(name); given && id.empty() && !given->empty()) {
      TRY_VOID(openai::check_session_id(name, *given));
      id = *given;
    }
  if (id.empty()) id = generation.derived_session;
  return {};
}

Result<> read_headers(const http::Request& request, openai::GenerationRequest& generation) {
  TRY_VOID(read_session_header(request, generation));
  std::string& id = generation.request_id;
  if (id.empty()) id = openai::request_id_of(request.headers);
  return read_timeout(request, generation);
}

Result<std::optional<int>> chosen_engine(const http::Request& request) {
  constexpr std::string_view kHeader = "X-data-parallel-rank";
  const auto given = request.headers.find(kHeader);
  if (!given) return std::nullopt;
  int engine = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), engine);
  if (error != std::errc{} || end != given->data() + given->size())
    return invalid(kHeader, "must be the index of an engine, got {}", quoted_text(*given));
  return engine;
}

Result<> start(const ServicePtr& service, const ExchangePtr& exchange, GenerationPlan plan) {
  TRY(plan.engine, chosen_engine(exchange->request()));
  generate(service, exchange, std::move(plan));
  return {};
}

std::string client_of(const Service& service, const http::Request& request) {
  if (request.origin != http::Request::Origin::client) return request.peer;
  const std::string& header = service.options.access.client_header;
  if (const auto name = header.empty() ? std::nullopt : request.headers.find(header))
    return std::string(*name);
  if (service.options.access.api_keys.empty()) return request.peer;
  return authorization_of(request);
}

RequestAccount account_of(const Service& service, const http::Request& request) {
  const AccessOptions& access = service.options.access;
  const std::string client = client_of(service, request);
  constexpr std::string_view kLine = "batch:";  // batches::line_peer
  const auto named = access.client_header.empty() ? std::nullopt : request.headers.find(access.client_header);
  RequestAccount account{.path = request.path,
                         .in_header = request.headers.find(kCostHeader) == std::string_view("1")};
  const std::string_view id = request.headers.find(kCostIdHeader).value_or("");
  if (!id.empty() && id.size() <= kCostIdBytesMax) {
    account.cost_id = id;
    account.cost_open = service.metrics.accounts.unread.open(account.cost_id);
  }
  if (request.origin != http::Request::Origin::client) {
    if (client.size() > kLine.size()) account.tenant = "tenant-" + client.substr(kLine.size(), 12);
    return account;
  }
  if (named && http::equal_ignoring_case(access.client_header, kTenantHeader))
    account.tenant = tenant_label(*named);
  else if (named || !access.api_keys.empty())
    account.tenant = hashed_tenant(client);
  return account;
}

std::weak_ptr<Generation> generate(const ServicePtr& service, const ExchangePtr& exchange,
                                   GenerationPlan plan) {
  service->unknown_fields.warn(plan.request.unknown_fields);
  if (service->options.observe.log_requests)
    log_info("{}: prompts: {}, tokens of the first: {}, max_tokens: {}, from {}", plan.request.request_id,
             plan.prompts.size(), plan.prompts.front().size(), plan.request.sampling.max_tokens.value_or(0),
             exchange->request().peer);
  if (const auto trace = exchange->request().headers.find("traceparent"))
    plan.trace = parse_traceparent(*trace);
  if (service->options.observe.log_requests && log_enabled(LogLevel::debug)) log_prompt(*service, plan);
  plan.client = client_of(*service, exchange->request());
  plan.account = account_of(*service, exchange->request());
  if (exchange->request().origin == http::Request::Origin::background)
    plan.request.priority = kBackgroundPriority;
  if (service->options.access.isolate_prefix_cache)
    plan.request.cache_salt = salt_of(plan.client, plan.request.cache_salt);
  if (plan.request.session) plan.request.session->key.owner = session_owner(*service, exchange->request());
  const bool background = plan.background;
  return Generation::start(service, std::move(plan), background ? nullptr : exchange);
}

Result<> chat_completions(const ServicePtr& service, const ExchangePtr& exchange) {
  report_load(service, *exchange);
  TRY(openai::ChatRequest request, read_request(service, exchange, openai::parse_chat_request));
  const auto waiting = std::make_shared<openai::ChatRequest>(std::move(request));
  return with_media(service, exchange, waiting->prompt.media, openai::error_response, [=] {
    return start_chat(service, exchange, std::move(*waiting));
  });
}

Result<> completions(const ServicePtr& service, const ExchangePtr& exchange) {
  report_load(service, *exchange);
  TRY(openai::CompletionRequest request, read_request(service, exchange, openai::parse_completion_request));
  TRY(GenerationPlan plan, prepare_completion(*service, std::move(request)));
  return start(service, exchange, std::move(plan));
}

}  // namespace octavo::routes
