// Regular languages of UTF-8 texts, cut to those of a given number of code points.
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

// The shortest and the longest text of a trimmed deterministic automaton.
LengthRange lengths_of(const Automaton& automaton);

// The automaton's texts of these lengths, not minimized; nullopt when that takes more than states_max states.
std::optional<Automaton> of_length(const Automaton& automaton, LengthRange wanted, std::size_t states_max);

// The same for an expression without calls and tokens, with repetitions counted and not written out; nullopt
// where the length depends on two long repetitions at once, or on one of more than single code points.
std::optional<ExprId> of_length(Grammar& grammar, ExprId expr, LengthRange wanted);

}  // namespace octavo::grammar
