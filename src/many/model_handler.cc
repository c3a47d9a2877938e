#include "many/model_handler.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/clock.h"
#include "base/exact_json.h"
#include "base/out_of_memory.h"
#include "fleet/scan/request_scan.h"
#include "http/target.h"
#include "many/merge_metrics.h"
#include "many/model_reports.h"
#include "openai/ollama_names.h"
#include "openai/protocol_errors.h"
#include "record/record_counters.h"
#include "serve/ollama/keep_alive.h"
#include "serve/openai/generation_fields.h"
#include "serve/page.h"
#include "serve/process_metrics.h"
#include "serve/routes/abort.h"
#include "serve/routes/handlers.h"
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
  if (request.body.empty()) return pass_on_without_body(keys, exchange, path);
  const auto protocol = openai::protocol_of(path);
  const bool taken = intake_.try_post([self = shared_from_this(), &keys, exchange, protocol] {
    const auto done = within_memory([&]() -> Result<> {
      self->read_body(keys, exchange);
      return {};
    });
    if (!done) exchange->respond(openai::error_response_in(protocol, done.error()));
  });
  if (!taken)
    exchange->respond(openai::error_response_in(
        protocol, {ErrorCode::unavailable, "too many requests wait to be parsed: retry later", ""}));
}

// Pages that need no model.
std::optional<http::Response> ModelHandler::own_page(std::string_view path) const {
  if (path == "/" && options_.features.page) return start_page();
  if (path == "/openapi.json") return json_response(api_of_all_routes());
  if (path == "/ping") return http::Response{.content_type = "", .body = ""};
  if (path == "/version") return json_response({{"version", options_.version}});
  if (path == "/api/version")
    return json_response({{"version", ollama::kApiVersion}, {"octavo", options_.version}});
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
  constexpr std::string_view kCost = "/octavo/cost/", kModel = "/v1/models/";
  if (path.starts_with(kCost)) return unread_cost(path.substr(kCost.size()));
  if (!path.starts_with(kModel)) return std::nullopt;
  const std::string name(path.substr(kModel.size()));
  if (const auto model = find(name)) return json_response(model_json(*table_, *model, name, started_at_));
  return no_model(path, name);
}

// Each model keeps the costs of its own requests.
http::Response ModelHandler::unread_cost(std::string_view id) const {
  http::Response response{.body = R"({"cost":null})"};
  for (const auto& service : services()) {
    response = routes::unread_cost(*service, id);
    if (response.headers.find(kCostHeader)) break;
  }
  return response;
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
  const auto model = find(name);
  if (!model) {
    exchange->respond(no_model(path, name));
    return true;
  }
  auto done = [self = shared_from_this(), exchange, model = *model, name](const Result<>& result) {
    if (!result)
      return exchange->respond(openai::error_response_in(openai::Protocol::openai, result.error()));
    exchange->respond(json_response(model_json(*self->table_, model, name, self->started_at_)));
  };
  load ? table_->load(*model, call_of(exchange, *model, 0), std::move(done))
       : table_->unload(*model, std::move(done));
  return true;
}

// Runs on an intake thread.
void ModelHandler::read_body(const ApiKeys& keys, const ExchangePtr& exchange) {
  if (auto refusal = exchange->decode_body(options_.body_bytes_max))
    return exchange->respond(*std::move(refusal));
  exchange->set_request_header("Content-Encoding", "identity");
  const fleet::RouteRequest route = fleet::scan_request(exchange->request());
  const std::string name = model_name(exchange->request(), route.model, options_.root_path);
  const std::string_view path = local_path(exchange->request().path, options_.root_path);
  const bool ollama = openai::protocol_of(path) == openai::Protocol::ollama;
  if (ollama) return obey_keep_alive(keys, exchange, name, route.timeout_s);
  const std::string stored_id = route.session.empty() ? route.stored_id : "";
  if (name.empty() && (abort(path, exchange) || pass_on_to_owner(keys, exchange, stored_id))) return;
  pass_on(keys, exchange, name, route.timeout_s, stored_id);
}

// A request without a body names its model in the query. Otherwise it must not load one: it may only be a
// page that somebody looks at.
void ModelHandler::pass_on_without_body(const ApiKeys& keys, const ExchangePtr& exchange,
                                        std::string_view path) {
  const http::Request& request = exchange->request();
  const std::string name = http::query_value(request.query, "model").value_or("");
  if (!name.empty()) return pass_on(keys, exchange, name, 0);
  if (auto refusal = refused_by_routes(request, table_->source(0).options.serve))
    return exchange->respond(*std::move(refusal));
  const fleet::RouteRequest scanned = fleet::scan_request(request);
  if (scanned.session.empty() && pass_on_to_owner(keys, exchange, scanned.stored_id)) return;
  const auto protocol = openai::protocol_of(path);
  if (path != "/octavo/live")
    return exchange->respond(openai::error_response_in(
        protocol,
        {ErrorCode::invalid_argument,
         fmt::format("must be in the query, because the server has many models: {}?model=NAME", path),
         "model"}));
  if (const auto service = loaded_service()) return route(service, keys, exchange);
  exchange->respond(openai::error_response_in(
      protocol, {ErrorCode::unavailable, "no model is loaded: load one, or add ?model=NAME", "model"}));
}

// Passes on a request of Ollama's API, and applies its `keep_alive` when the exchange ends. Answers requests
// without a prompt, which only load or unload the model.
void ModelHandler::obey_keep_alive(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& name,
                                   double timeout_s) {
  const http::Request& request = exchange->request();
  boost::system::error_code failed;
  const json::value body = json::parse(request.body, failed);
  const auto model = name.empty() ? std::nullopt : find(name);
  if (failed || !body.is_object() || !model) return pass_on(keys, exchange, name, timeout_s);
  const auto keep_us = ollama::read_keep_alive(body.get_object());
  if (!keep_us)
    return exchange->respond(openai::error_response_in(openai::Protocol::ollama, keep_us.error()));
  const auto shape = ollama::hold_of(local_path(request.path, options_.root_path), body.get_object());
  if (request.method == "POST" && shape) {
    const ollama::Hold hold{.model = name, .load = *keep_us != 0};
    if (!hold.load) {
      table_->keep(*model, 0);
      return exchange->respond({.body = ollama::hold_reply(*shape, hold)});
    }
    return table_->load(
        *model, call_of(exchange, *model, timeout_s), [=, table = table_](const Result<>& loaded) {
          if (!loaded)
            return exchange->respond(openai::error_response_in(openai::Protocol::ollama, loaded.error()));
          if (*keep_us) table->keep(*model, **keep_us);
          exchange->respond({.body = ollama::hold_reply(*shape, hold)});
        });
  }
  if (*keep_us) {
    const auto apply = [table = std::weak_ptr(table_), model = *model, us = **keep_us](const void*) {
      if (const auto open = table.lock()) open->keep(model, us);
    };
    // The exchange owns its function, and so the pointer whose end applies the time.
    exchange->amend([end = std::shared_ptr<const void>(nullptr, apply)](http::Response&) {});
  }
  pass_on(keys, exchange, name, timeout_s);
}

// Before the first load, requests wait in the table, which forgets those whose clients disconnect. Later, the
// handlers of the routes replace the function.
Call ModelHandler::call_of(const ExchangePtr& exchange, std::size_t model, double timeout_s) const {
  Call call{.bytes = static_cast<std::int64_t>(exchange->request().body.size())};
  if (timeout_s > 0) call.deadline_us = now_us() + static_cast<std::int64_t>(timeout_s * 1e6);
  if (table_->service(model)) return call;
  call.cancelled = std::make_shared<std::atomic<bool>>(false);
  exchange->on_close([table = std::weak_ptr(table_), model, cancelled = call.cancelled](http::CloseReason) {
    if (const auto open = table.lock()) open->cancel(model, cancelled);
  });
  return call;
}

void ModelHandler::pass_on(const ApiKeys& keys, const ExchangePtr& exchange, const std::string& name,
                           double timeout_s, const std::string& stored_id) {
  // As in vLLM, a request without a model gets the first one.
  const auto model = name.empty() ? std::optional<std::size_t>(0) : find(name);
  const std::string_view path = local_path(exchange->request().path, options_.root_path);
  if (!model) return exchange->respond(no_model(path, name));
  if (auto refusal = refused_by_routes(exchange->request(), table_->source(*model).options.serve))
    return exchange->respond(*std::move(refusal));
  const auto protocol = openai::protocol_of(path);
  table_->service_of(*model, call_of(exchange, *model, timeout_s),
                     [self = shared_from_this(), &keys, exchange, protocol,
                      stored_id](const Result<std::shared_ptr<Service>>& service) {
                       if (!service)
                         return exchange->respond(openai::error_response_in(protocol, service.error()));
                       self->lend(stored_id, **service);
                       route(*service, keys, exchange);
                     });
}

// Passes on a request whose path has the id of a stored response or conversation. Returns false if the path
// has none, or no model was loaded yet.
bool ModelHandler::pass_on_to_owner(const ApiKeys& keys, const ExchangePtr& exchange,
                                    const std::string& stored_id) const {
  if (stored_id.empty()) return false;
  auto service = owner_of(stored_id);
  if (!service) service = loaded_service();  // answers that the id is unknown
  if (!service) return false;
  if (exchange->request().method == "DELETE")
    for (const auto& other : services())
      if (other != service) (void)other->responses.forget(stored_id);  // copies of lend()
  route(service, keys, exchange);
  return true;
}

// Returns the service that stores the response or conversation; null if none does.
std::shared_ptr<Service> ModelHandler::owner_of(const std::string& stored_id) const {
  for (auto& service : services())
    if (service->responses.response(stored_id) || service->responses.conversations().show(stored_id))
      return service;
  return nullptr;
}

// Copies a finished response of another model, so that this model can continue it.
void ModelHandler::lend(const std::string& stored_id, Service& to) const {
  if (stored_id.empty() || to.responses.response(stored_id)) return;
  const auto owner = owner_of(stored_id);
  if (!owner) return;
  auto response = owner->responses.response(stored_id);
  const auto conversation = owner->responses.conversation(stored_id);
  if (response && conversation)
    to.responses.finish(stored_id, *std::move(response), exact_json_text(*conversation));
}

// Aborts requests of all models. Returns false for other paths.
bool ModelHandler::abort(std::string_view path, const ExchangePtr& exchange) const {
  const bool all = path == "/abort_requests";
  if (!all && path != "/inference/v1/abort_requests") return false;
  if (auto refusal = refused_by_routes(exchange->request(), table_->source(0).options.serve)) {
    exchange->respond(*std::move(refusal));
    return true;
  }
  const auto done = routes::abort_named(services(), exchange, all);
  if (!done) exchange->respond(openai::error_response_in(openai::Protocol::openai, done.error()));
  return true;
}

// Ollama's clients add ":latest" to names. Reads files only for names that no list has.
std::optional<std::size_t> ModelHandler::find(std::string_view name) const {
  const std::string_view untagged = openai::without_latest(name);
  const bool tagged = untagged != name;
  auto model = table_->find_listed(name);
  if (!model && tagged) model = table_->find_listed(untagged);
  if (!model) model = table_->find_in_folders(name);
  if (!model && tagged) model = table_->find_in_folders(untagged);
  return model;
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
         table_metrics(names, table_->status(), table_->memory_bytes(), table_->used_bytes()) + http_.text() +
         process_metrics() + record_metrics();
}

void ModelHandler::count(const http::Answered& answered) { count_answer(http_, options_, answered); }

std::vector<std::shared_ptr<Service>> ModelHandler::services() const {
  std::vector<std::shared_ptr<Service>> all;
  for (std::size_t i = 0; i < table_->size(); ++i)
    if (auto service = table_->service(i)) all.push_back(std::move(service));
  return all;
}

// Returns the service of the first loaded model; null if none is loaded.
std::shared_ptr<Service> ModelHandler::loaded_service() const {
  const std::vector<ModelStatus> models = table_->status();
  for (std::size_t i = 0; i < models.size(); ++i)
    if (models[i].model.presence == Presence::loaded)
      if (auto service = table_->service(i)) return service;
  return nullptr;
}

void ModelHandler::stop() {
  intake_.stop();
  table_->stop();
}

}  // namespace octavo::many
