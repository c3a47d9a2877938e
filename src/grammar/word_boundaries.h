// \b and \B of regular expressions. Each is first replaced by a mark: a byte that does not occur in UTF-8.
// The automaton then keeps only texts whose marks have valid positions, and removes the marks.
#pragma once

#include <cstdint>
#include <optional>

#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/regex_parser.h"

namespace octavo::grammar {

inline constexpr std::uint8_t kBoundaryMark = 0xFF, kNoBoundaryMark = 0xFE;

bool has_boundaries(const RegexTree& tree);

// Returns the automaton of an expression without its marks; nullopt above kDfaStatesMax states.
std::optional<Automaton> without_marks(Grammar& grammar, ExprId expr);

}  // namespace octavo::grammar
