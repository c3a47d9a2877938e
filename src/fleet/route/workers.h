// Follows the lists of workers that `octavo route` is configured with: Kubernetes, etcd, a file, DNS.
#pragma once

#include <memory>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/route/router_options.h"

namespace octavo::fleet {

// `balancer` must outlive the returned sources.
std::vector<std::unique_ptr<EndpointSource>> follow_workers(Balancer& balancer, const RouterOptions& options);

}  // namespace octavo::fleet
