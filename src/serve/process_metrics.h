// process_* metrics, with the names of Prometheus' client libraries. The values come from /proc.
#pragma once

#include <string>

namespace octavo {

// Returns the metrics in Prometheus' text format. Leaves out values that cannot be read.
std::string process_metrics();

}  // namespace octavo
