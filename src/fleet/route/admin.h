// The requests that the router answers itself: health, metrics, models, workers. All other requests are
// forwarded to workers.
#pragma once

#include <optional>
#include <string_view>

#include "fleet/route/monitor.h"
#include "fleet/route/route_context.h"
#include "http/message.h"

namespace octavo::fleet {

// Header of a 503 response to /health. Set by a router that has no workers, but keeps requests in its queue.
inline constexpr std::string_view kKeepsRequests = "X-Octavo-Queue";

// Parses "http://host:port". Errors report the field "url".
Result<Endpoint> endpoint_of_url(std::string_view url);

// Parses the address of KV cache events into `endpoint`: "tcp://host:5557", or
// "tcp://host:5557,tcp://host:5558" with the address for replays, or "none". Errors report `field`.
Result<> read_kv_events(std::string_view text, std::string_view field, Endpoint& endpoint);

// Returns nullopt if the request must be forwarded to a worker.
std::optional<http::Response> admin_answer(const RouteContext& context, const http::Request& request);

}  // namespace octavo::fleet
