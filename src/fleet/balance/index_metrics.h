// Metrics of the policies' indexes of prefixes.
#pragma once

#include <string>

#include "fleet/balance/balancer.h"

namespace octavo::fleet {

// Appends the blocks of each index, and how many endpoints report KV events; the blocks of the others are
// estimates.
void write_index_metrics(std::string& out, const Balancer& balancer);

}  // namespace octavo::fleet
