// Converts EndpointPickerConfigs of older versions of the Gateway API Inference Extension and of llm-d.
#pragma once

#include <boost/json/fwd.hpp>

namespace octavo::fleet {

// Renames sections, plugin types and parameters of older versions to their current names. Does not report
// errors: the reader of the file does.
void update_old_config(boost::json::object& file);

}  // namespace octavo::fleet
