// Runs the lines of batches on the router's workers.
#pragma once

#include <memory>
#include <string_view>

#include "batches/host.h"
#include "fleet/route/route_context.h"
#include "fleet/route/tenants.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Returns whether the path belongs to files or batches.
bool names_batches(std::string_view path);

// The arguments must outlive the host.
batches::HostPtr batch_host(const RouteContext& context, http::AsyncClient& client, Tenants& tenants);

}  // namespace octavo::fleet
