// Makes docs/reference/metrics.md from the programs' metrics.
#pragma once

#include <string>

namespace octavo {

std::string metrics_page();

}  // namespace octavo
