// Implements \b and \B of regular expressions. Both are first replaced by marks (bytes that do not occur in
// UTF-8). Then without_marks() removes the texts with a mark at a wrong position, and removes the marks from
// the other texts.
#pragma once

#include <cstdint>
#include <optional>

#include "grammar/automaton.h"
#include "grammar/grammar.h"
#include "grammar/regex_parser.h"

namespace octavo::grammar {

inline constexpr std::uint8_t kBoundaryMark = 0xFF, kNoBoundaryMark = 0xFE;

bool has_boundaries(const RegexTree& tree);

// Returns nullopt above kDfaStatesMax states.
std::optional<Automaton> without_marks(Grammar& grammar, ExprId expr);

}  // namespace octavo::grammar
