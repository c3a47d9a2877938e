// /pause, /resume and /is_paused hold requests, as in vLLM.
#include <algorithm>

#include "http/target.h"
#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

Result<PauseMode> pause_mode(std::string_view query) {
  const std::string mode = http::query_value(query, "mode").value_or("abort");
  if (mode == "abort") return PauseMode::abort;
  if (mode == "wait") return PauseMode::wait;
  if (mode == "keep") return PauseMode::keep;
  return invalid("mode", "must be abort, wait or keep, got {}", mode);
}

Result<bool> clears_cache(std::string_view query) {
  const std::string clear = http::query_value(query, "clear_cache").value_or("true");
  if (clear != "true" && clear != "false")
    return invalid("clear_cache", "must be true or false, got {}", clear);
  return clear == "true";
}

}  // namespace

Result<> pause(const ServicePtr& service, const ExchangePtr& exchange) {
  const std::string& query = exchange->request().query;
  TRY(const PauseMode mode, pause_mode(query));
  TRY(const bool clears, clears_cache(query));
  service->engine.pause(mode, [service, exchange, clears](const Result<>& paused) {
    if (!paused) return exchange->respond(openai::error_response(paused.error()));
    if (clears) service->engine.reset_prefix_cache();
    exchange->respond({.body = R"({"status":"paused"})"});
  });
  return {};
}

Result<> resume(const ServicePtr& service, const ExchangePtr& exchange) {
  service->engine.resume();
  exchange->respond({.body = R"({"status":"resumed"})"});
  return {};
}

http::Response is_paused(Service& service, std::string_view) {
  const bool pauses = std::ranges::any_of(service.engine.stats(),
                                          [](const EngineStats& engine) { return engine.condition.paused; });
  return {.body = pauses ? R"({"is_paused":true})" : R"({"is_paused":false})"};
}

}  // namespace octavo::routes
