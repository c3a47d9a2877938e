// The routes that the router answers: health, metrics, models, workers. It forwards all others to replicas.
#pragma once

#include <optional>

#include "fleet/route/monitor.h"
#include "fleet/route/route_context.h"
#include "http/message.h"

namespace octavo::fleet {

// Returns the endpoint for "http://host:port". Errors: field "url".
Result<Endpoint> endpoint_of_url(std::string_view url);

// Parses the address of KV cache events: "tcp://host:5557", "tcp://host:5557,tcp://host:5558" with the replay
// address, or "none". Errors: on `field`.
Result<> read_kv_events(std::string_view text, std::string_view field, Endpoint& endpoint);

// Returns nullopt if the router must forward the request.
std::optional<http::Response> admin_answer(const RouteContext& context, const http::Request& request);

}  // namespace octavo::fleet
