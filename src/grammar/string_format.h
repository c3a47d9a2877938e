// The formats of JSON Schema, as regular languages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace octavo::grammar {

// Whether the format is enforced: all accepted texts have the format, but some rare valid texts are refused
// (listed in the source file).
bool is_enforced_format(std::string_view format);
// Whether the format is known: it is enforced, or does not constrain the characters of a text (int64,
// password).
bool is_format(std::string_view format);
// The known format that an unknown format probably means: it differs only in case and punctuation.
std::optional<std::string_view> likely_format(std::string_view unknown);

// A regular expression for an enforced format; nullopt: it has none.
std::optional<std::string_view> format_pattern(std::string_view format);
// A regular expression with long repetitions, only for texts of min to max characters. It omits some of these
// texts, but its automaton is small if repetitions are counted.
std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max);
// The automaton of an enforced format. Made once for each format.
const Automaton& format_automaton(std::string_view format);

}  // namespace octavo::grammar
