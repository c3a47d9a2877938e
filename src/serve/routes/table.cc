// The table of routes, and route(), which finds and calls the handler of a request.
#include <fmt/format.h>
#include <algorithm>

#include "base/edit_distance.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/quoted_text.h"
#include "openai/anthropic_client.h"
#include "openai/errors.h"
#include "openai/protocol_errors.h"
#include "openai/request_id.h"
#include "openai/routes.h"
#include "serve/page.h"
#include "serve/routes/handlers.h"
#include "serve/routes/refused.h"
#include "serve/routes/routes.h"

namespace octavo {

namespace {

using routes::ExchangePtr;
using routes::ServicePtr;

struct Route {
  std::string_view path;  // a path that ends with '/' also matches longer paths
  routes::Get get = nullptr;
  routes::Post post = nullptr;
  routes::Get remove = nullptr;
  routes::Stream stream = nullptr;
  routes::Post any = nullptr;  // for all methods and body types; runs on the intake threads
  bool ServeFeatures::* enabled_by = nullptr;
};

constexpr Route kRoutes[] = {
    {.path = "/health", .get = routes::health},
    {.path = "/ready", .get = routes::health},
    {.path = "/ping", .get = routes::health},
    {.path = "/version", .get = routes::version},
    {.path = "/load", .get = routes::load},
    {.path = "/metrics", .get = routes::metrics},
    {.path = "/openapi.json", .get = routes::api_document},
    {.path = "/octavo/live", .stream = routes::live},
    {.path = "/octavo/cost/", .get = routes::unread_cost},
    {.path = "/v1/models", .get = routes::models},
    {.path = "/v1/models/", .get = routes::model},
    {.path = "/v1/completions", .post = routes::completions},
    {.path = "/v1/chat/completions", .post = routes::chat_completions},
    {.path = "/v1/chat/completions/batch", .post = routes::chat_batch},
    {.path = "/v1/completions/render", .post = routes::render_completion},
    {.path = "/v1/chat/completions/render", .post = routes::render_chat},
    {.path = "/v1/messages/render", .post = routes::render_messages},
    {.path = "/cohere/v2/chat", .post = routes::cohere_chat},
    {.path = "/cohere/v2/chat/render", .post = routes::render_cohere_chat},
    {.path = "/v1/responses/render", .post = routes::render_response},
    {.path = "/inference/v1/generate", .post = routes::inference},
    {.path = "/inference/v1/abort_requests", .post = routes::abort_requests},
    {.path = "/abort_requests", .post = routes::abort_all_requests, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/v1/responses", .post = routes::create_response},
    {.path = "/v1/responses/compact", .post = routes::compact_response},
    {.path = "/v1/responses/input_tokens", .post = routes::count_response_tokens},
    {.path = "/v1/responses/", .any = routes::stored_responses},
    {.path = "/v1/conversations", .any = routes::conversations},
    {.path = "/v1/conversations/", .any = routes::conversations},
    {.path = "/v1/sessions", .any = routes::sessions},
    {.path = "/v1/sessions/", .any = routes::sessions},
    {.path = "/v1/messages", .post = routes::messages},
    {.path = "/v1/messages/count_tokens", .post = routes::count_tokens},
    {.path = "/v1/messages/batches", .any = routes::batches},
    {.path = "/v1/messages/batches/", .any = routes::batches},
    {.path = "/v1/files", .any = routes::batches},
    {.path = "/v1/files/", .any = routes::batches},
    {.path = "/v1/batches", .any = routes::batches},
    {.path = "/v1/batches/", .any = routes::batches},
    {.path = "/api/chat", .post = routes::ollama_chat},
    {.path = "/api/generate", .post = routes::ollama_generate},
    {.path = "/api/embed", .post = routes::ollama_embed},
    {.path = "/api/embeddings", .post = routes::ollama_embeddings},
    {.path = "/api/tags", .get = routes::ollama_tags},
    {.path = "/api/ps", .get = routes::ollama_ps},
    {.path = "/api/show", .post = routes::ollama_show},
    {.path = "/api/version", .get = routes::ollama_version},
    {.path = "/api/pull", .post = routes::ollama_pull},
    {.path = "/api/push", .post = routes::ollama_change},
    {.path = "/api/create", .post = routes::ollama_change},
    {.path = "/api/copy", .post = routes::ollama_change},
    {.path = "/api/delete", .remove = routes::ollama_delete},
    {.path = "/v1/audio/transcriptions", .post = routes::transcriptions},
    {.path = "/v1/audio/translations", .post = routes::translations},
    {.path = "/v1/embeddings", .post = routes::embeddings},
    {.path = "/v2/embed", .post = routes::embed_by_type},
    {.path = "/pooling", .post = routes::pooling},
    {.path = "/classify", .post = routes::classify},
    {.path = "/score", .post = routes::score},
    {.path = "/v1/score", .post = routes::score},
    {.path = "/rerank", .post = routes::rerank},
    {.path = "/v1/rerank", .post = routes::rerank},
    {.path = "/v2/rerank", .post = routes::rerank},
    {.path = "/generative_scoring", .post = routes::generative_scoring},
    {.path = "/invocations", .post = routes::invocations},
    {.path = "/v1/load_lora_adapter",
     .post = routes::load_adapter,
     .enabled_by = &ServeFeatures::change_adapters},
    {.path = "/v1/unload_lora_adapter",
     .post = routes::unload_adapter,
     .enabled_by = &ServeFeatures::change_adapters},
    {.path = "/adapters", .post = routes::register_adapter, .enabled_by = &ServeFeatures::change_adapters},
    {.path = "/adapters/", .any = routes::unregister_adapter, .enabled_by = &ServeFeatures::change_adapters},
    {.path = "/tokenize", .post = routes::tokenize},
    {.path = "/detokenize", .post = routes::detokenize},
    {.path = "/tokenizer_info", .get = routes::tokenizer_info},
    {.path = "/server_info", .get = routes::server_info, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/sleep", .post = routes::sleep, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/wake_up", .post = routes::wake_up, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/is_sleeping", .get = routes::is_sleeping, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/pause", .post = routes::pause, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/resume", .post = routes::resume, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/is_paused", .get = routes::is_paused, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/collective_rpc", .post = routes::collective_rpc, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/update_weights_from_disk",
     .post = routes::update_weights_from_disk,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/init_weight_transfer_engine",
     .post = routes::init_weight_transfer,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/start_weight_update",
     .post = routes::start_weight_update,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/update_weights", .any = routes::update_weights, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/finish_weight_update",
     .post = routes::finish_weight_update,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/shutdown_weight_transfer_engine",
     .post = routes::shutdown_weight_transfer,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/update_weight_version",
     .post = routes::update_weight_version,
     .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/weight_info", .get = routes::weight_info, .enabled_by = &ServeFeatures::dev_mode},
    {.path = "/scale_elastic_ep", .post = routes::scale_engines},
    {.path = "/is_scaling_elastic_ep", .get = routes::is_scaling, .post = routes::is_scaling_too},
    {.path = "/start_profile", .post = routes::start_profile, .enabled_by = &ServeFeatures::profiles},
    {.path = "/stop_profile", .post = routes::stop_profile, .enabled_by = &ServeFeatures::profiles},
    {.path = "/reset_prefix_cache",
     .post = routes::reset_prefix_cache,
     .enabled_by = &ServeFeatures::dev_mode},
};

// Returns the route's row in the table of inference routes (openai/routes.h), or null if it has none.
const openai::Route* shared_facts(const Route& route) {
  const openai::Route* known = openai::find_route(route.path);
  return known && known->path == route.path ? known : nullptr;
}

http::Response error_response(const Route& route, const Error& error) {
  return openai::error_response_in(openai::protocol_of(route.path), error);
}

bool takes_form(const Route& route) {
  const openai::Route* known = shared_facts(route);
  return known && known->model == openai::ModelField::form;
}

// Paths that need no API key, because orchestrators request them.
constexpr std::string_view kPublicPaths[] = {"/health", "/ready"};

bool is_served(const Route& route, const ServeOptions& options) {
  return !route.enabled_by || options.features.*route.enabled_by;
}

const Route* find_route(std::string_view path, const ServeOptions& options) {
  const Route* found = nullptr;
  for (const Route& route : kRoutes) {
    if (!is_served(route, options)) continue;
    if (route.path == path) return &route;
    if (route.path.ends_with('/') && path.starts_with(route.path)) found = &route;
  }
  return found;
}

// Returns a redirection (307) if the path without slashes at its end is known.
std::optional<http::Response> without_slashes(const http::Request& request, std::string_view path,
                                              const ServeOptions& options) {
  const std::size_t size = path.find_last_not_of('/') + 1;
  if (size == path.size() || size == 0) return std::nullopt;
  const Route* found = find_route(path.substr(0, size), options);
  if (!found || found->path.ends_with('/')) return std::nullopt;
  http::Response response{.status = 307, .body = {}};
  const std::size_t prefix = request.path.size() - path.size();
  response.headers.add("Location", fmt::format("{}{}{}", request.path.substr(0, prefix + size),
                                               request.query.empty() ? "" : "?", request.query));
  return response;
}

// Returns the beginning of a text that a client has sent, for error messages.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kShown = 100;
  return quoted_text(text.substr(0, kShown)) + (text.size() > kShown ? ".." : "");
}

constexpr std::string_view kJsonType = "application/json";

// Ollama's examples send JSON with curl's default content type.
bool takes_any_type(const Route& route) {
  return openai::protocol_of(route.path) == openai::Protocol::ollama;
}

bool is_of_type(const http::Request& request, std::string_view wanted) {
  const std::string_view type = request.headers.find("Content-Type").value_or(kJsonType);
  return http::equal_ignoring_case(type.substr(0, type.find(';')), wanted);
}

// Reads the body and calls the handler on an intake thread, because this takes long for large bodies.
void post(const ServicePtr& service, const Route& route, const ExchangePtr& exchange) {
  const std::string_view type = takes_form(route) ? "multipart/form-data" : kJsonType;
  if (!route.any && !takes_any_type(route) && !is_of_type(exchange->request(), type))
    return exchange->respond(openai::error_response(
        415, fmt::format("the Content-Type must be {}, got {}", type,
                         excerpt(exchange->request().headers.find("Content-Type").value_or("")))));
  const bool taken = service->intake.try_post([service, &route, exchange] {
    // If memory runs out, the client gets an error response.
    const auto done = within_memory([&]() -> Result<> {
      auto refusal = exchange->decode_body(service->options.body_bytes_max);
      if (!refusal) return (route.any ? route.any : route.post)(service, exchange);
      exchange->respond(*std::move(refusal));
      return {};
    });
    if (!done) exchange->respond(error_response(route, done.error()));
  });
  if (taken) return;
  service->metrics.admission_rejected();
  exchange->respond(error_response(
      route, {ErrorCode::unavailable, "too many requests wait to be parsed: retry later", ""}));
}

// Runs a GET handler on the event loop. If memory runs out, only this request fails.
template <class Handler>
void respond_with(const Route& route, http::Exchange& exchange, Handler&& handler) {
  auto response = within_memory([&]() -> Result<http::Response> { return handler(); });
  exchange.respond(response ? *std::move(response) : error_response(route, response.error()));
}

// Returns whether monitors request this path every few seconds.
bool is_probe(std::string_view path) {
  constexpr std::string_view kProbes[] = {"/metrics", "/health",  "/ready",      "/load",
                                          "/ping",    "/version", "/server_info"};
  return std::ranges::find(kProbes, path) != std::end(kProbes);
}

// /ping allows both: SageMaker sends GET, some gateways send POST.
bool answers_posts(const Route& route) { return route.post || route.path == "/ping"; }

std::string allowed_methods(const Route& route) {
  std::string methods = route.get ? "GET, HEAD" : route.stream ? "GET" : "";
  const auto add = [&](std::string_view method) {
    methods += fmt::format("{}{}", methods.empty() ? "" : ", ", method);
  };
  if (answers_posts(route)) add("POST");
  if (route.remove) add("DELETE");
  return methods;
}

enum class Handling : std::uint8_t { none, get, remove, stream, body };

Handling handling_of(const Route& route, std::string_view method) {
  const bool reads = method == "GET" || method == "HEAD";
  if (route.get && (reads || (method == "POST" && !route.post && answers_posts(route)))) return Handling::get;
  if (route.remove && method == "DELETE") return Handling::remove;
  if (route.stream && method == "GET") return Handling::stream;
  return route.any || (route.post && method == "POST") ? Handling::body : Handling::none;
}

http::Response refused_method(const Route& route, const http::Request& request) {
  const std::string allowed = allowed_methods(route);
  http::Response response = openai::error_response(
      405, fmt::format("{} is not allowed for {}: use {}", request.method, excerpt(request.path), allowed));
  response.headers.add("Allow", allowed);
  return response;
}

bool generates_text(const Route& route) {
  const openai::Route* known = shared_facts(route);
  return known && known->generates();
}

http::Response transcribes_only(const Route& route, const ServeOptions& options) {
  return error_response(route, {ErrorCode::not_found,
                                fmt::format("the model {} only transcribes sound, so {} does not exist: use "
                                            "/v1/audio/transcriptions or /v1/audio/translations",
                                            options.rules.model_names.front(), route.path),
                                "model"});
}

// vLLM's server lacks these routes if the model does not generate text. /invocations serves all models.
std::optional<http::Response> pools_only(const Route& route, const EngineInfo& info) {
  const bool ollama = openai::protocol_of(route.path) == openai::Protocol::ollama;
  if (info.tasks.default_task == Task::generate || ollama || !generates_text(route) ||
      route.post == routes::invocations)
    return std::nullopt;
  return error_response(
      route, {ErrorCode::not_found,
              fmt::format("{} models do not generate text, so {} does not exist: send POST /pooling",
                          info.architecture, route.path),
              "model"});
}

std::string new_request_id() { return fmt::format("{:016x}{:016x}", secret_seed(), secret_seed()); }

// The flags that turn on the routes of a feature.
std::string_view flag_of(bool ServeFeatures::* feature) {
  if (feature == &ServeFeatures::change_adapters) return "--enable-lora --allow-runtime-lora-updating";
  return feature == &ServeFeatures::profiles ? "--profiler-config" : "--server-dev-mode";
}

http::Response no_route(std::string_view path, const ServeOptions& options) {
  for (const routes::RefusedRoute& refused : routes::refused_routes())
    if (path == refused.path)
      return openai::error_response(404,
                                    fmt::format("{} of vLLM is not supported: {}", path, refused.reason));
  for (const Route& route : kRoutes)
    if (route.path == path && route.enabled_by)
      return openai::error_response(
          404, fmt::format("{} needs a server with {}", path, flag_of(route.enabled_by)));
  const std::string_view meant = meant_name(path, route_paths(options));
  return openai::error_response(404,
                                fmt::format("the route {} does not exist{}", excerpt(path),
                                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

}  // namespace

std::vector<std::string_view> route_paths(const ServeOptions& options) {
  std::vector<std::string_view> paths;
  for (const Route& route : kRoutes)
    if (is_served(route, options)) paths.push_back(route.path);
  return paths;
}

std::string_view local_path(std::string_view path, std::string_view root) {
  while (root.ends_with('/')) root.remove_suffix(1);
  const std::string_view rest = path.starts_with(root) ? path.substr(root.size()) : path;
  return rest.starts_with('/') ? rest : path;
}

void count_answer(HttpMetrics& metrics, const ServeOptions& options, const http::Answered& answered) {
  if (is_probe(local_path(answered.path, options.root_path))) return;
  const Route* found = find_route(local_path(answered.path, options.root_path), options);
  const std::string_view path = found ? found->path : "none";
  if (options.observe.log_requests && answered.status >= 400)
    log_info("{} {}: status {}", answered.method, excerpt(answered.path), answered.status);
  metrics.count(path.ends_with('/') ? fmt::format("{}{{id}}", path) : std::string(path), answered);
}

std::optional<http::Response> refused_by_routes(const http::Request& request, const ServeOptions& options) {
  const std::string_view path = local_path(request.path, options.root_path);
  if (auto elsewhere = without_slashes(request, path, options)) return elsewhere;
  const Route* found = find_route(path, options);
  if (!found) return no_route(path, options);
  if (options.media.transcription && generates_text(*found)) return transcribes_only(*found, options);
  if (handling_of(*found, request.method) == Handling::none) return refused_method(*found, request);
  return std::nullopt;
}

void route(const std::shared_ptr<Service>& service, const ApiKeys& keys,
           std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  const std::string_view path = local_path(request.path, service->options.root_path);
  if (anthropic::is_client(path, request.headers)) {
    const std::string given = openai::request_id_of(request.headers);
    anthropic::amend_answer(*exchange, path, given.empty() ? new_request_id() : given);
  }
  if (service->options.features.request_id_headers) {
    const auto given = request.headers.find("X-Request-Id");
    exchange->add_header("X-Request-Id", given ? std::string(*given) : new_request_id());
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const bool page = service->options.features.page && reads && path == "/";
  const bool is_public = std::ranges::find(kPublicPaths, path) != std::end(kPublicPaths);
  if (!(reads && is_public))
    if (auto refusal = unauthorized(keys, request))
      return exchange->respond(page ? login_page() : *std::move(refusal));
  if (page) return exchange->respond(start_page());
  if (auto refusal = refused_by_routes(request, service->options))
    return exchange->respond(*std::move(refusal));
  const Route& found = *find_route(path, service->options);
  if (auto refusal = pools_only(found, service->engine_info)) return exchange->respond(*std::move(refusal));
  const std::string_view rest = path.substr(found.path.size());
  switch (handling_of(found, request.method)) {
    case Handling::get:
      return respond_with(found, *exchange, [&] { return found.get(*service, rest); });
    case Handling::remove:
      return respond_with(found, *exchange, [&] { return found.remove(*service, rest); });
    case Handling::stream:
      return found.stream(service, exchange);
    case Handling::body:
    case Handling::none:  // refused above
      return post(service, found, exchange);
  }
}

}  // namespace octavo
