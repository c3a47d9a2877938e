// Converts EndpointPickerConfigs from older versions of llm-d and of the Gateway API Inference Extension.
#pragma once

#include <boost/json/fwd.hpp>

namespace octavo::fleet {

// Replaces old names of sections, plugin types and parameters by the current names. Ignores errors, because
// the parser reports them later.
void update_old_config(boost::json::object& file);

}  // namespace octavo::fleet
