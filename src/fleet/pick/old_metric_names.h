// Old names of llm-d's metrics, from before the prefix llm_d_epp_. llm-d's dashboards still use them.
#pragma once

#include <string>

namespace octavo::fleet {

// For each renamed metric on the page, appends a copy with its old name.
void add_old_metric_names(std::string& page);

}  // namespace octavo::fleet
