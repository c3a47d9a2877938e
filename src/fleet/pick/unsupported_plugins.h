// Plugins of llm-d's registry that are not supported.
#pragma once

#include <string_view>

namespace octavo::fleet {

// The reason, and the replacement in this project; "": the type is none of these.
std::string_view why_unsupported(std::string_view type);

}  // namespace octavo::fleet
