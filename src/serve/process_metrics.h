// What Prometheus' clients tell of their own process (process_*), read from /proc.
#pragma once

#include <string>

namespace octavo {

// In Prometheus' text format; what cannot be read is left out.
std::string process_metrics();

}  // namespace octavo
