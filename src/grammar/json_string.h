#pragma once

#include <optional>

#include "grammar/grammar.h"

namespace octavo::grammar {

// Returns one character of a string in every spelling: unescaped, \n, \u000a, or a surrogate pair.
ExprId string_character(Grammar& grammar);
// Returns one character of a string's content: any code point, unescaped.
ExprId content_character(Grammar& grammar);

// Converts a language of contents to the language of their JSON spellings, without quotes. Characters that
// need no escape are unchanged; the others may have every spelling that JSON allows. Returns nullopt if
// this needs too many states.
std::optional<Automaton> spelled(const Automaton& contents);

Automaton between_quotes(const Automaton& spellings);
// Acts like spelled() above, for an expression of `contents`. Large repetitions stay repetitions.
std::optional<ExprId> spelled(Grammar& grammar, const Grammar& contents, ExprId expr);

}  // namespace octavo::grammar
