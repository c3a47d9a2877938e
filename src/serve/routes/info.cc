// Routes with information about the server: models, version, load and metrics.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "http/target.h"
#include "openai/errors.h"
#include "record/record_counters.h"
#include "serve/process_metrics.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

json::object model_json(const Service& service, const std::string& name, std::int64_t created,
                        const std::string& root, json::value parent) {
  return {{"id", name},
          {"object", "model"},
          {"created", created},
          {"owned_by", "octavo"},
          {"root", root},
          {"parent", std::move(parent)},
          {"max_model_len", service.options.rules.max_model_len},
          {"permission", json::array()}};
}
json::object model_json(const Service& service, const std::string& name) {
  const std::string& root = service.options.model.root;
  return model_json(service, name, service.started_at, root.empty() ? name : root, nullptr);
}
json::object model_json(const Service& service, const AdapterCard& card) {
  return model_json(service, card.name, card.created_at, card.path, json::value(card.parent));
}

}  // namespace

http::Response health(Service& service, std::string_view) {
  for (const EngineStats& engine : service.engine.stats()) {
    if (!engine.condition.healthy) return openai::error_response(503, "the engine has failed");
    if (engine.condition.presence == EnginePresence::away)
      return openai::error_response(503, "the engine waits for its ranks on other hosts");
    if (engine.condition.hangs) return openai::error_response(503, "a step of the engine makes no progress");
  }
  return {.content_type = "", .body = ""};
}

http::Response version(Service& service, std::string_view) {
  return {.body = json::serialize(json::object{{"version", service.options.version}})};
}

http::Response load(Service& service, std::string_view) {
  return {.body = json::serialize(json::object{{"server_load", service.admission.tickets()}})};
}

http::Response metrics(Service& service, std::string_view) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.text(service.engine.stats(), service.engine.info()) +
                  service.metrics.http.text() + process_metrics() + record_metrics()};
}

http::Response models(Service& service, std::string_view) {
  json::array data;
  for (const std::string& name : service.options.rules.model_names) data.push_back(model_json(service, name));
  for (const AdapterCard& card : service.adapters->all()) data.push_back(model_json(service, card));
  return {.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}})};
}

http::Response model(Service& service, std::string_view name) {
  const auto& names = service.options.rules.model_names;
  if (const auto found = std::ranges::find(names, name); found != names.end())
    return {.body = json::serialize(model_json(service, *found))};
  if (const auto card = service.adapters->find(std::string(name)))
    return {.body = json::serialize(model_json(service, *card))};
  return openai::error_response(404, openai::unknown_model(name, service.options.rules).message, "model");
}

http::Response server_info(Service& service, std::string_view) {
  const EngineInfo info = service.engine.info();
  const json::object engine{{"architecture", info.architecture},   {"weight_bytes", info.weight_bytes},
                            {"kv_cache_bytes", info.cache.bytes},  {"num_blocks", info.num_blocks},
                            {"block_size", info.block_size},       {"vocab_size", info.vocab_size},
                            {"max_model_len", info.max_model_len}, {"max_logprobs", info.max_logprobs}};
  return {.body = json::serialize(json::object{{"version", service.options.version},
                                               {"system_fingerprint", service.options.system_fingerprint},
                                               {"model", service.options.model.root},
                                               {"engine", engine}})};
}

// Returns the cost of a request. If the request has not ended or the id is unknown, the response is {"cost":
// null} with status 200.
http::Response unread_cost(Service& service, std::string_view id) {
  Accounts& accounts = service.metrics.accounts;
  const auto cost = accounts.unread.take(id);
  if (!cost) return {.body = R"({"cost":null})"};
  http::Response response{.body =
                              json::serialize(json::object{{"cost", cost_json(*cost, accounts.prices())}})};
  response.headers.set(std::string(kCostHeader), cost_text(*cost));
  return response;
}

void live(const ServicePtr& service, const ExchangePtr& exchange) {
  if (!service->views.live.add(exchange))
    exchange->respond(openai::error_response(503, "too many clients watch the engine already"));
}

// The query parameters are those of vLLM. Blocks that running requests use stay. Blocks outside of the
// engine's cache (transfer/) also stay; they are valid, because their keys include a hash of the weights.
Result<> reset_prefix_cache(const ServicePtr& service, const ExchangePtr& exchange) {
  for (const std::string_view name : {"reset_running_requests", "reset_external"}) {
    const std::string value = http::query_value(exchange->request().query, name).value_or("false");
    if (value != "false" && value != "False" && value != "0")
      return field_failure(
          name, ErrorCode::unsupported,
          "must be false, got {}: only blocks in the engine's own cache that no request uses can be removed",
          value);
  }
  service->engine.reset_prefix_cache();
  exchange->respond({.content_type = "", .body = ""});
  return {};
}

}  // namespace octavo::routes
