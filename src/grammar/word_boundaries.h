// \b and \B of regular expressions. A pattern is first written with marks in their place, bytes that no UTF-8 has; the
// automaton then keeps the texts whose marks are where they may be, and drops the marks.
#pragma once

#include <cstdint>
#include <optional>

#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/regex_parser.h"

namespace octavo::grammar {

inline constexpr std::uint8_t kBoundaryMark = 0xFF, kNoBoundaryMark = 0xFE;

bool has_boundaries(const RegexTree& tree);

// The texts of an expression with marks. nullopt: more than kDfaStatesMax states.
std::optional<Automaton> without_marks(Grammar& grammar, ExprId expr);

}  // namespace octavo::grammar
