// Rewrites a grammar without changing its language. optimize() runs all passes.
#pragma once

#include "grammar/grammar.h"

namespace octavo::grammar {

// Replaces repetitions that would have too many states by counted rules.
Grammar outline_counters(Grammar grammar);

// Replaces calls of small rules by their bodies, so that the automata are merged.
Grammar inline_rules(Grammar grammar);

// Removes rules that the root does not reach. A rule without a name gets the name of a rule that calls it.
Grammar drop_unreachable(Grammar grammar);

inline Grammar optimize(Grammar grammar) {
  return drop_unreachable(inline_rules(outline_counters(std::move(grammar))));
}

// Estimates the NFA states of each expression. A call counts as one state. Large sums saturate.
std::vector<std::size_t> expression_sizes(const Grammar& grammar);

}  // namespace octavo::grammar
