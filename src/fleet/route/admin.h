// The router's own routes: health, metrics, models, workers. All others are forwarded to replicas.
#pragma once

#include <optional>

#include "fleet/route/monitor.h"
#include "fleet/route/route_context.h"
#include "http/message.h"

namespace octavo::fleet {

// The endpoint for "http://host:port". Errors: field "url".
Result<Endpoint> endpoint_of_url(std::string_view url);

// Parses addresses of KV cache events: "tcp://host:5557", "tcp://host:5557,tcp://host:5558" with the replay
// address, or "none". Errors: on `field`.
Result<> read_kv_events(std::string_view text, std::string_view field, Endpoint& endpoint);

// nullopt: the route is not one of the router's own.
std::optional<http::Response> admin_answer(const RouteContext& context, const http::Request& request);

}  // namespace octavo::fleet
