#include "many/model_handler.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/clock.h"
#include "base/out_of_memory.h"
#include "fleet/scan/request_scan.h"
#include "http/target.h"
#include "many/merge_metrics.h"
#include "many/model_reports.h"
#include "openai/protocol_errors.h"
#include "record/record_counters.h"
#include "serve/openai/generation_fields.h"
#include "serve/page.h"
#include "serve/process_metrics.h"
#include "serve/routes/routes.h"

namespace octavo::many {
namespace {

namespace json = boost::json;

http::Response json_response(const json::object& body) { return {.body = json::serialize(body)}; }

}  // namespace

// `in_body`: the model that the body names, or "".
std::string model_name(const http::Request& request, const std::string& in_body, std::string_view root_path) {
  if (auto in_query = http::query_value(request.query, "model"); in_query && !in_query->empty())
    return *std::move(in_query);
  if (!in_body.empty() || !local_path(request.path, root_path).starts_with("/api/")) return in_body;
  boost::system::error_code failed;
  const json::value body = json::parse(request.body, failed);
  if (failed || !body.is_object()) return "";
  // Clients of older versions of Ollama send `name`.
  const json::value* const name = body.get_object().if_contains("name");
  return name != nullptr && name->is_string() ? std::string(name->get_string()) : "";
}

ModelHandler::ModelHandler(std::shared_ptr<ModelTable> table, ServeOptions options)
    : table_(std::move(table)),
      options_(std::move(options)),
      intake_(options_.threads.intake, options_.threads.intake_queue_max) {}

void ModelHandler::handle(const ApiKeys& keys, ExchangePtr exchange) {
  const http::Request& request = exchange->request();
  const std::string_view path = local_path(request.path, options_.root_path);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads && (path == "/health" || path == "/ready"))
    return exchange->respond({.content_type = "", .body = ""});
  if (auto refusal = unauthorized(keys, request)) {
    const bool page = reads && path == "/" && options_.features.page;
    return exchange->respond(page ? login_page() : *std::move(refusal));
  }
  if (reads)
    if (auto page = own_page(path)) return exchange->respond(*std::move(page));
  if (request.method == "POST" && change_model(path, exchange)) return;
  if (request.body.empty())
    return pass_on(keys, exchange, http::query_value(request.query, "model").value_or(""), 0);
  const bool taken = intake_.try_post([self = shared_from_this(), &keys, exchange] {
    const auto done = within_memory([&]() -> Result<> {
      self->read_body(keys, exchange);
      return {};
    });
    if (!done)
      exchange->respond(
          openai::error_response_in(openai::protocol_of(exchange->request().path), done.error()));
  });
  if (!taken)
    exchange->respond(openai::error_response_in(
        openai::protocol_of(request.path),
        {ErrorCode::unavailable, "too many requests wait to be parsed: retry later", ""}));
}

// Pages that need no model.
std::optional<http::Response> ModelHandler::own_page(std::string_view path) const {
  if (path == "/" && options_.features.page) return start_page();
  if (path == "/ping") return http::Response{.content_type = "", .body = ""};
  if (path == "/version") return json_response({{"version", options_.version}});
  if (path == "/v1/models") return json_response(models_json(*table_, started_at_));
  if (path == "/api/tags") return json_response(ollama_models_json(*table_, started_at_, false));
  if (path == "/api/ps") return json_response(ollama_models_json(*table_, started_at_, true));
  if (path == "/metrics")
    return http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics()};
  if (path == "/load") {
    std::int64_t tickets = 0;
    for (const auto& service : services()) tickets += service->admission.tickets();
    return json_response({{"server_load", tickets}});
  }
  constexpr std::string_view kModel = "/v1/models/";
  if (!path.starts_with(kModel)) return std::nullopt;
  const std::string name(path.substr(kModel.size()));
  if (const auto model = table_->find(name))
    return json_response(model_json(*table_, *model, name, started_at_));
  return no_model(path, name);
}

// Answers POST /models/NAME/load and /models/NAME/unload. Returns false for other paths.
bool ModelHandler::change_model(std::string_view path, const ExchangePtr& exchange) {
  constexpr std::string_view kModels = "/models/", kLoad = "/load", kUnload = "/unload";
  const bool load = path.ends_with(kLoad), unload = path.ends_with(kUnload);
  if (!path.starts_with(kModels) || (!load && !unload)) return false;
  path.remove_prefix(kModels.size());
  const std::size_t verb = load ? kLoad.size() : kUnload.size();
  if (path.size() < verb) return false;
  const std::string name(path.substr(0, path.size() - verb));
  const auto model = table_->find(name);
  if (!model) {
    exchange->respond(no_model(path, name));
    return true;
  }
  auto done = [self = shared_from_this(), exchange, model = *model, name](const Result<>& result) {
    if (!result) return exchange->respond(openai::error_response_in(openai::Protocol::openai, result.error()));
    exchange->respond(json_response(model_json(*self->table_, model, name, self->started_at_)));
  };
  load ? table_->load(*model, std::move(done)) : table_->unload(*model, std::move(done));
  return true;
}

// Runs on an intake thread.
void ModelHandler::read_body(const ApiKeys& keys, const ExchangePtr& exchange) {
  if (auto refusal = exchange->decode_body(options_.body_bytes_max))
    return exchange->respond(*std::move(refusal));
  exchange->set_request_header("Content-Encoding", "identity");
  const fleet::RouteRequest route = fleet::scan_request(exchange->request());
  pass_on(keys, exchange, model_name(exchange->request(), route.model, options_.root_path), route.timeout_s);
}

void ModelHandler::pass_on(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& name,
                           double timeout_s) {
  // As in vLLM, a request without a model gets the first one.
  const auto model = name.empty() ? std::optional<std::size_t>(0) : find(name);
  const std::string& path = exchange->request().path;
  if (!model) return exchange->respond(no_model(path, name));
  const std::int64_t deadline_us =
      timeout_s > 0 ? now_us() + static_cast<std::int64_t>(timeout_s * 1e6) : 0;
  table_->service_of(*model, deadline_us, [&keys, exchange](const Result<std::shared_ptr<Service>>& service) {
    if (service) return route(*service, keys, exchange);
    exchange->respond(
        openai::error_response_in(openai::protocol_of(exchange->request().path), service.error()));
  });
}

// Ollama's clients add ":latest" to names.
std::optional<std::size_t> ModelHandler::find(std::string_view name) const {
  constexpr std::string_view kTag = ":latest";
  if (const auto model = table_->find(name)) return model;
  if (!name.ends_with(kTag)) return std::nullopt;
  name.remove_suffix(kTag.size());
  return table_->find(name);
}

http::Response ModelHandler::no_model(std::string_view path, std::string_view name) const {
  openai::RequestRules rules;
  for (std::size_t i = 0; i < table_->size(); ++i)
    rules.model_names.push_back(table_->source(i).names.front());
  return openai::error_response_in(openai::protocol_of(path), openai::unknown_model(name, rules));
}

std::string ModelHandler::metrics() const {
  std::vector<std::string> pages;
  for (const auto& service : services())
    pages.push_back(service->metrics.text(service->engine.stats(), service->engine_info));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < table_->size(); ++i) names.push_back(table_->source(i).names.front());
  return merge_metrics(pages) +
         table_metrics(names, table_->status(), table_->memory_bytes(), table_->used_bytes()) + http_.text() + process_metrics() + record_metrics();
}

void ModelHandler::count(const http::Answered& answered) { count_answer(http_, options_, answered); }

std::vector<std::shared_ptr<Service>> ModelHandler::services() const {
  std::vector<std::shared_ptr<Service>> all;
  for (std::size_t i = 0; i < table_->size(); ++i)
    if (auto service = table_->service(i)) all.push_back(std::move(service));
  return all;
}

void ModelHandler::stop() {
  intake_.stop();
  table_->stop();
}

}  // namespace octavo::many
