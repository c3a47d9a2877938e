// The formats of JSON Schema, as regular languages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/automaton.h"

namespace octavo::grammar {

// Whether texts are held to the format: those of the format and nothing else, though not every exotic one
// (the comments in the source say what is left out).
bool is_enforced_format(std::string_view format);
// Whether the format is known: enforced, or one that says nothing of a text's characters (int64, password).
bool is_format(std::string_view format);
// The known format that an unknown one probably means: it differs only in case and punctuation.
std::optional<std::string_view> likely_format(std::string_view unknown);

// A regular expression for the whole text of an enforced format, where it has one.
std::optional<std::string_view> format_pattern(std::string_view format);
// Such an expression with long repetitions for texts of min to max characters only: not all of these, but
// small as an automaton where repetitions are counted.
std::optional<std::string> format_pattern_within(std::string_view format, std::uint32_t min,
                                                 std::uint32_t max);
// The texts of an enforced format; made once in the life of the process.
const Automaton& format_automaton(std::string_view format);

}  // namespace octavo::grammar
