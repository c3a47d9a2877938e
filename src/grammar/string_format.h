// The formats of JSON Schema that are regular languages.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::grammar {

// A regular expression for the whole string: texts of the format, and nothing else, though not every exotic
// one (the comment in the source says what is left out). nullopt for formats that are not enforced.
std::optional<std::string_view> format_pattern(std::string_view format);

}  // namespace octavo::grammar
