// process_* metrics with the names of Prometheus' client libraries, read from /proc.
#pragma once

#include <string>

namespace octavo {

// The metrics in Prometheus' text format. Leaves out values that cannot be read.
std::string process_metrics();

}  // namespace octavo
