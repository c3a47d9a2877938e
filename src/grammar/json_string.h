#pragma once

#include <optional>

#include "grammar/grammar.h"

namespace octavo::grammar {

// Matches one character of a JSON string in all spellings: unescaped, \n, \u000a, or a surrogate pair.
ExprId string_character(Grammar& grammar);
// Matches one character of a string's content (the string without escapes): any code point.
ExprId content_character(Grammar& grammar);

// Converts an automaton for contents to one for their JSON spellings, without quotes. Characters that need no
// escape stay unescaped; the others may have any spelling that JSON allows. Returns nullopt if there are too
// many states.
std::optional<Automaton> spelled(const Automaton& contents);

Automaton between_quotes(const Automaton& spellings);
// Converts an expression of the grammar `contents` in the same way, without unrolling large repetitions.
std::optional<ExprId> spelled(Grammar& grammar, const Grammar& contents, ExprId expr);

}  // namespace octavo::grammar
