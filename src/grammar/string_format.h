#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace octavo::grammar {

// Returns true if grammars enforce the format. Then all texts of the grammar have the format, but some rare
// valid texts are missing (see the .cc file).
bool is_enforced_format(std::string_view format);
// Returns true if the format is enforced, or if it is known and does not constrain strings (int64, password).
bool is_format(std::string_view format);
// If the unknown format differs from a known one only in case or punctuation, returns the known one.
std::optional<std::string_view> likely_format(std::string_view unknown);

// Returns the format's regular expression, or nullopt if the format is not enforced or has none.
std::optional<std::string_view> format_pattern(std::string_view format);
// Returns a regular expression for the texts of the format that have `min` to `max` characters. It omits some
// of them, so that its automaton is small if repetitions are counted at run time.
std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max);
// Returns the format's automaton, which is built at the first call.
const Automaton& format_automaton(std::string_view format);

}  // namespace octavo::grammar
