// The router's own routes: health, metrics, models, workers. Everything else goes to a replica.
#pragma once

#include <optional>

#include "fleet/route/monitor.h"
#include "fleet/route/route_context.h"
#include "http/message.h"

namespace octavo::fleet {

// "http://host:port" as an endpoint. Errors: field "url".
Result<Endpoint> endpoint_of_url(std::string_view url);

// Parses the address of an endpoint's KV cache events: "tcp://host:5557", "tcp://host:5557,tcp://host:5558"
// with the replay address, or "none". Errors: on `field`.
Result<> read_kv_events(std::string_view text, std::string_view field, Endpoint& endpoint);

// nullopt if the route is not the router's own.
std::optional<http::Response> admin_answer(const RouteContext& context, const http::Request& request);

}  // namespace octavo::fleet
