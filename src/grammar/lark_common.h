#pragma once

#include <optional>
#include <string_view>

namespace octavo::grammar {

// Returns the regular expression of a terminal in Lark's library `common`, or nullopt.
std::optional<std::string_view> lark_common(std::string_view name);

}  // namespace octavo::grammar
