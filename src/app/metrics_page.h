// docs/reference/metrics.md, from the pages that the programs write.
#pragma once

#include <string>

namespace octavo {

std::string metrics_page();

}  // namespace octavo
