// Generates docs/reference/metrics.md from the metrics of all programs.
#pragma once

#include <string>

namespace octavo {

std::string metrics_page();

}  // namespace octavo
