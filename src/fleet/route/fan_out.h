// Requests for all workers, such as clearing caches, loading adapters or weights, pausing engines. The router
// sends them to each worker. The response contains all answers.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

bool means_all_workers(const http::Request& request);

// Call it on the loop's thread. done: called once, when all workers have answered.
void fan_out(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             std::function<void()> done);

}  // namespace octavo::fleet
