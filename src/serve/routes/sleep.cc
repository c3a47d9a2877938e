// /sleep, /wake_up and /is_sleeping free memory while there are no requests, as in vLLM.
#include <algorithm>
#include <charconv>

#include "http/target.h"
#include "openai/errors.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {
namespace {

EngineClient::Done answer(const ExchangePtr& exchange) {
  return [exchange](const Result<>& done) {
    exchange->respond(done ? http::Response{.content_type = "", .body = ""}
                           : openai::error_response(done.error()));
  };
}

Result<int> sleep_level(std::string_view query) {
  const std::string text = http::query_value(query, "level").value_or("1");
  int level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc{} || end != text.data() + text.size() || (level != 1 && level != 2))
    return invalid("level", "must be 1 or 2, got {}", text);
  return level;
}

}  // namespace

Result<> sleep(const ServicePtr& service, const ExchangePtr& exchange) {
  if (!service->options.features.sleep_mode)
    return invalid("", "sleep mode is off: start the server with --enable-sleep-mode");
  const std::string& query = exchange->request().query;
  TRY(const int level, sleep_level(query));
  if (const auto mode = http::query_value(query, "mode"); mode.value_or("wait") != "wait")
    return field_failure("mode", ErrorCode::unsupported,
                         "must be wait (running requests finish before the engine sleeps), got {}", *mode);
  service->engine.sleep(level, answer(exchange));
  return {};
}

Result<> wake_up(const ServicePtr& service, const ExchangePtr& exchange) {
  if (http::query_value(exchange->request().query, "tags"))
    return field_failure("tags", ErrorCode::unsupported, "weights and KV cache always wake together");
  service->engine.wake_up(answer(exchange));
  return {};
}

http::Response is_sleeping(Service& service, std::string_view) {
  const std::vector<EngineStats> engines = service.engine.stats();
  const bool sleeps =
      std::ranges::any_of(engines, [](const EngineStats& e) { return e.condition.sleep_level != 0; });
  return {.body = sleeps ? R"({"is_sleeping":true})" : R"({"is_sleeping":false})"};
}

}  // namespace octavo::routes
