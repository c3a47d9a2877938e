// Converts EndpointPickerConfigs of older versions of llm-d and the Gateway API Inference Extension.
#pragma once

#include <boost/json/fwd.hpp>

namespace octavo::fleet {

// Replaces old names of sections, plugin types and parameters by current ones. Reports no errors, since the
// parser does.
void update_old_config(boost::json::object& file);

}  // namespace octavo::fleet
