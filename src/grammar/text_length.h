// Limits regular languages of UTF-8 texts to a range of lengths in code points.
#pragma once

#include <cstdint>
#include <optional>

#include "grammar/automaton.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

struct LengthRange {
  std::uint32_t min = 0, max = kUnbounded;
  bool contains(LengthRange other) const { return min <= other.min && other.max <= max; }
};

// Returns the lengths of the shortest and the longest text. The automaton must be trimmed and
// deterministic.
LengthRange lengths_of(const Automaton& automaton);

// Returns an automaton for the texts with a wanted length; it is not minimized. Returns nullopt if it needs
// more than states_max states.
std::optional<Automaton> of_length(const Automaton& automaton, LengthRange wanted, std::size_t states_max);

// The same for an expression without calls and tokens. Repetitions are still counted at run time. Returns
// nullopt if the length depends on two long repetitions, or on a long repetition whose body has more than one
// code point.
std::optional<ExprId> of_length(Grammar& grammar, ExprId expr, LengthRange wanted);

}  // namespace octavo::grammar
