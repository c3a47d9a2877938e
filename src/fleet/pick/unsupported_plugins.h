// Plugins of llm-d's registry that do not exist here.
#pragma once

#include <string_view>

namespace octavo::fleet {

// Why, and what does the same here; "": the type is none of these.
std::string_view why_unsupported(std::string_view type);

}  // namespace octavo::fleet
