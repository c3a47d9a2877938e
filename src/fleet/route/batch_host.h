// Runs the requests of OpenAI batch files on the router's workers.
#pragma once

#include <memory>
#include <string_view>

#include "batches/host.h"
#include "fleet/route/route_context.h"
#include "fleet/route/tenants.h"
#include "http/async_client.h"

namespace octavo::fleet {

bool names_batches(std::string_view path);

batches::HostPtr batch_host(const RouteContext& context, http::AsyncClient& client, Tenants& tenants);

}  // namespace octavo::fleet
