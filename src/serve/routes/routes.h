// Finds and calls the handler of a request.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "http/exchange.h"
#include "openai/api_key.h"
#include "serve/service.h"

namespace octavo {

// Returns the OpenAPI document of all routes, without limits that depend on a model.
boost::json::object api_of_all_routes();

// Returns the paths of the server's routes. A path that ends with '/' also matches longer paths.
std::vector<std::string_view> route_paths(const ServeOptions& options);

// Returns the path without the prefix `root` (--root-path). As in FastAPI, clients can send paths with or
// without this prefix.
std::string_view local_path(std::string_view path, std::string_view root);

// Counts the response in the metrics, except for health probes and /metrics, as in vLLM.
void count_answer(HttpMetrics& metrics, const ServeOptions& options, const http::Answered& answered);

// Returns the response to a request whose path or method no route accepts: 307 (slashes at the end of the
// path), 404 or 405. Returns nullopt for other requests.
std::optional<http::Response> refused_by_routes(const http::Request& request, const ServeOptions& options);

// Answers the exchange, directly or later on the service's threads. Without a valid key, only GET /health
// and GET /ready are answered.
void route(const std::shared_ptr<Service>& service, const ApiKeys& keys,
           std::shared_ptr<http::Exchange> exchange);

}  // namespace octavo
