// process_* metrics with the names of Prometheus' client libraries, read from /proc.
#pragma once

#include <string>

namespace octavo {

// In Prometheus' text format, without the values that cannot be read.
std::string process_metrics();

}  // namespace octavo
