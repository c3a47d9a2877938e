// process_* as Prometheus' clients report them, read from /proc.
#pragma once

#include <string>

namespace octavo {

// In Prometheus' text format; what cannot be read is left out.
std::string process_metrics();

}  // namespace octavo
