// Sends a request to all workers, and returns one response with all their responses. Used for requests that
// change engines, such as clearing caches, loading adapters or weights, and pausing.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

bool means_all_workers(const http::Request& request);

// Must be called on the loop's thread. Calls `done` once, when all workers have responded.
void fan_out(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             std::function<void()> done);

}  // namespace octavo::fleet
