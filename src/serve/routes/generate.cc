// /v1/chat/completions and /v1/completions.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace {

constexpr std::size_t kIdBytesMax = 256;

// X-data-parallel-rank, vLLM's header: the number of an engine.
Result<std::optional<int>> chosen_engine(const http::Request& request) {
  constexpr std::string_view kHeader = "X-data-parallel-rank";
  const auto given = request.headers.find(kHeader);
  if (!given) return std::nullopt;
  int engine = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), engine);
  if (error != std::errc{} || end != given->data() + given->size())
    return invalid(kHeader, "must be the number of an engine, got {:?}", *given);
  return engine;
}

template <class Parse, class Prepare>
Result<> answer(const ServicePtr& service, const ExchangePtr& exchange, Parse parse, Prepare prepare) {
  TRY(boost::json::object body, openai::parse_body(exchange->take_body()));
  TRY(auto request, parse(body, service->options.rules));
  body.clear();
  std::string& id = request.generation.request_id;
  if (id.empty()) id = exchange->request().headers.find("X-Request-Id").value_or("").substr(0, kIdBytesMax);
  TRY(const std::optional<int> engine, chosen_engine(exchange->request()));
  TRY(GenerationPlan plan, prepare(*service, std::move(request)));
  plan.engine = engine;
  generate(service, exchange, std::move(plan));
  return {};
}

}  // namespace

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

std::string client_of(const Service& service, const http::Request& request) {
  if (service.options.api_keys.empty()) return request.peer;
  const auto bearer = request.headers.find("Authorization");
  return std::string(bearer ? *bearer : request.headers.find("X-Api-Key").value_or(""));
}

std::weak_ptr<Generation> generate(const ServicePtr& service, const ExchangePtr& exchange,
                                   GenerationPlan plan) {
  warn_unknown(*service, plan.request.unknown_fields);
  if (service->options.log_requests)
    log_info("{}: {} prompts, first of {} tokens, max_tokens {}, from {}", plan.request.request_id,
             plan.prompts.size(), plan.prompts.front().size(), plan.request.sampling.max_tokens.value_or(0),
             exchange->request().peer);
  plan.client = client_of(*service, exchange->request());
  const bool background = plan.background;
  return Generation::start(service, std::move(plan), background ? nullptr : exchange);
}

Result<> chat_completions(const ServicePtr& service, const ExchangePtr& exchange) {
  return answer(service, exchange, openai::parse_chat_request, prepare_chat);
}

Result<> completions(const ServicePtr& service, const ExchangePtr& exchange) {
  return answer(service, exchange, openai::parse_completion_request, prepare_completion);
}

}  // namespace octavo::routes
