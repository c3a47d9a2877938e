// Reads SRV records (RFC 2782), which contain the workers of a service with port, priority and weight.
// Consul and headless services of Kubernetes publish them.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {

// Resolves the records of `name`, such as "_http._tcp.replicas.internal", and the addresses of their
// targets, every interval_ms. `server` is the IP address and port of the name server; "" means the system's
// name server. Errors report "worker-srv" or "worker-srv-server".
Result<PolledOptions> poll_srv(const std::string& name, const std::string& server, int interval_ms);

}  // namespace octavo::fleet
