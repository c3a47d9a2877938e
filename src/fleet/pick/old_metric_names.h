// Names of llm-d's metrics before the prefix llm_d_epp_, which its dashboards still use.
#pragma once

#include <string>

namespace octavo::fleet {

// Appends a copy of each renamed metric on the page, with its old name.
void add_old_metric_names(std::string& page);

}  // namespace octavo::fleet
