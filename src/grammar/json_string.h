// The texts of JSON strings as regular languages.
#pragma once

#include <optional>

#include "grammar/grammar.h"

namespace octavo::grammar {

// One character of a string in any of its spellings: itself, \n, \u000a, a surrogate pair.
ExprId string_character(Grammar& grammar);
// One character of a string's content: any code point, not escaped.
ExprId content_character(Grammar& grammar);

// Converts a language of contents to the language of their spellings between the quotes: characters that need
// no escape are unchanged, the others may have every spelling that JSON allows. nullopt beyond the state
// limit.
std::optional<Automaton> spelled(const Automaton& contents);

// Spellings with the quotes around them.
Automaton between_quotes(const Automaton& spellings);
// The same as spelled() for an expression of `contents`, whose large repetitions stay what they are.
std::optional<ExprId> spelled(Grammar& grammar, const Grammar& contents, ExprId expr);

}  // namespace octavo::grammar
