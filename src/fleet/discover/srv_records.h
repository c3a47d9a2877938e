// SRV records (RFC 2782): the workers of a service, each with a port, a priority and a weight of its own, as
// DNS has them, Consul's and that of Kubernetes' headless services among others.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {

// The records of `name` ("_http._tcp.replicas.internal") and the addresses of their targets, resolved every
// interval_ms. server: "host:port" of the name server, with an IP address; "": the system's. Errors:
// invalid_argument on "worker-srv" or "worker-srv-server".
Result<PolledOptions> poll_srv(const std::string& name, const std::string& server, int interval_ms);

}  // namespace octavo::fleet
