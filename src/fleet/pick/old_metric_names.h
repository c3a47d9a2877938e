// Names of llm-d's metrics before the prefix llm_d_epp_ was introduced. Its dashboards still use them.
#pragma once

#include <string>

namespace octavo::fleet {

// Appends a copy of each renamed metric of the page under its old name.
void add_old_metric_names(std::string& page);

}  // namespace octavo::fleet
