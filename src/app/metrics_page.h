// Makes docs/reference/metrics.md from the metrics pages of the programs.
#pragma once

#include <string>

namespace octavo {

std::string metrics_page();

}  // namespace octavo
