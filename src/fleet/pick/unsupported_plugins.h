// Plugins of llm-d that this picker does not support.
#pragma once

#include <string_view>

namespace octavo::fleet {

// Returns why the type is not supported, and what to use instead. Returns "" if the type is not in the
// list.
std::string_view why_unsupported(std::string_view type);

}  // namespace octavo::fleet
