// SRV records (RFC 2782): a service's workers with port, priority and weight. Consul and headless services of
// Kubernetes publish them.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {

// Resolves the records of `name` ("_http._tcp.replicas.internal") and the addresses of their targets every
// interval_ms. server: IP address and port of the name server; "": that of the system. Errors:
// invalid_argument on "worker-srv" or "worker-srv-server".
Result<PolledOptions> poll_srv(const std::string& name, const std::string& server, int interval_ms);

}  // namespace octavo::fleet
