// Names that llm-d's metrics had before llm_d_epp_*: its dashboards still read them.
#pragma once

#include <string>

namespace octavo::fleet {

// Appends each metric of the page that had another name, under that name.
void add_old_metric_names(std::string& page);

}  // namespace octavo::fleet
