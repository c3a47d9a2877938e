// Metrics of the policies' indexes of prefixes.
#pragma once

#include <string>

#include "fleet/balance/balancer.h"

namespace octavo::fleet {

// Appends the number of blocks of each index, and the number of endpoints that report KV events. Blocks of
// other endpoints are estimates.
void write_index_metrics(std::string& out, const Balancer& balancer);

}  // namespace octavo::fleet
