// The terminals of Lark's library `common`.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::grammar {

// The regular expression of a terminal; nullopt: the library has no terminal of this name.
std::optional<std::string_view> lark_common(std::string_view name);

}  // namespace octavo::grammar
