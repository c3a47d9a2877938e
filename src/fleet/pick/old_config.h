// EndpointPickerConfigs of older versions of the Gateway API Inference Extension and of llm-d.
#pragma once

#include <boost/json/fwd.hpp>

namespace octavo::fleet {

// Gives sections, plugin types and parameters of older versions their names of today. Mistakes stay in the
// file: its reader names them.
void update_old_config(boost::json::object& file);

}  // namespace octavo::fleet
