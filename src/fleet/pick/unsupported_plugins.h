// Plugins of llm-d without support.
#pragma once

#include <string_view>

namespace octavo::fleet {

// Returns why the type has no support, and what to use instead; "" for other types.
std::string_view why_unsupported(std::string_view type);

}  // namespace octavo::fleet
