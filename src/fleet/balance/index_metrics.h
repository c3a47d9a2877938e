// Metrics of the policies' prefix indexes.
#pragma once

#include <string>

#include "fleet/balance/balancer.h"

namespace octavo::fleet {

// Appends the number of blocks of each index, and the number of endpoints that report KV cache events. The
// blocks of all other endpoints are estimates.
void write_index_metrics(std::string& out, const Balancer& balancer);

}  // namespace octavo::fleet
