// Requests that mean every worker, not the one that happens to be chosen: caches to empty, adapters and
// weights to load, engines to pause. Each worker gets them; the answer says what each has said.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

bool means_all_workers(const http::Request& request);

// On the loop's thread. done: once, when all have answered.
void fan_out(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             std::function<void()> done);

}  // namespace octavo::fleet
