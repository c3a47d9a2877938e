#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace octavo::grammar {

// Returns whether the format is enforced: all accepted texts have the format, but some rare valid texts are
// refused (listed in the source file).
bool is_enforced_format(std::string_view format);
// Returns whether the format is known: it is enforced, or does not constrain the characters of a text
// (int64, password).
bool is_format(std::string_view format);
// Returns the known format that an unknown format probably means: it differs only in case and punctuation.
std::optional<std::string_view> likely_format(std::string_view unknown);

// Returns a regular expression for an enforced format, or nullopt if it has none.
std::optional<std::string_view> format_pattern(std::string_view format);
// Returns a regular expression with long repetitions, for texts of `min` to `max` characters. It omits some
// of these texts, but its automaton is small if repetitions are counted.
std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max);
// Returns the automaton of an enforced format, which is made once.
const Automaton& format_automaton(std::string_view format);

}  // namespace octavo::grammar
