// Restricts regular languages of UTF-8 texts to a range of lengths in code points.
#pragma once

#include <cstdint>
#include <optional>

#include "grammar/automaton.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

struct LengthRange {
  std::uint32_t min = 0, max = kUnbounded;  // in code points
  bool contains(LengthRange other) const { return min <= other.min && other.max <= max; }
};

// Returns the lengths of the shortest and the longest text of a trimmed deterministic automaton.
LengthRange lengths_of(const Automaton& automaton);

// Returns the automaton's texts with these lengths, not minimized; nullopt above states_max states.
std::optional<Automaton> of_length(const Automaton& automaton, LengthRange wanted, std::size_t states_max);

// Acts like of_length() above, for an expression without calls and tokens. Repetitions are counted, not
// unrolled. Returns nullopt if the length depends on two long repetitions, or on one whose body is not a
// single code point.
std::optional<ExprId> of_length(Grammar& grammar, ExprId expr, LengthRange wanted);

}  // namespace octavo::grammar
