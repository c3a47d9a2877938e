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

// The lengths of the shortest and the longest text of a trimmed deterministic automaton.
LengthRange lengths_of(const Automaton& automaton);

// The automaton's texts with these lengths, not minimized. nullopt: more than states_max states.
std::optional<Automaton> of_length(const Automaton& automaton, LengthRange wanted, std::size_t states_max);

// As above, for an expression without calls and tokens; repetitions are counted, not unrolled. nullopt: the
// length depends on two long repetitions, or on one whose body is not a single code point.
std::optional<ExprId> of_length(Grammar& grammar, ExprId expr, LengthRange wanted);

}  // namespace octavo::grammar
