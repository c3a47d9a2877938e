#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace octavo::grammar {

// Returns true if the grammar enforces the format. All its texts have the format; some rare valid texts are
// missing (see the source file).
bool is_enforced_format(std::string_view format);
// Returns true if the format is enforced, or known to constrain no text (int64, password).
bool is_format(std::string_view format);
// If the unknown format differs from a known one only in case or punctuation, returns the known one.
std::optional<std::string_view> likely_format(std::string_view unknown);

// Returns nullopt if the format is not enforced or has no regular expression.
std::optional<std::string_view> format_pattern(std::string_view format);
// Returns a regular expression for texts of `min` to `max` characters. It omits some texts, but its
// automaton is small when repetitions are counted at run time.
std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max);
// The automaton is made once.
const Automaton& format_automaton(std::string_view format);

}  // namespace octavo::grammar
