// Finds the handler of a request.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "http/exchange.h"
#include "openai/api_key.h"
#include "serve/service.h"

namespace octavo {

// The OpenAPI document of all routes, without a model's limits.
boost::json::object api_of_all_routes();

// Paths of the server's routes; a path that ends in '/' includes all paths below it.
std::vector<std::string_view> route_paths(const ServeOptions& options);

// Adds the answer to the metrics. As in vLLM, does not count probes and /metrics.
void count_answer(Service& service, const http::Answered& answered);

// Answers the exchange, at once or later on the service's threads. Without a valid key only GET /health and
// /ready are answered.
void route(const std::shared_ptr<Service>& service, const ApiKeys& keys,
           std::shared_ptr<http::Exchange> exchange);

}  // namespace octavo
