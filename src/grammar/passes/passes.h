// Rewrites a grammar without changing its language. optimize() runs all passes in order.
#pragma once

#include "grammar/grammar.h"

namespace octavo::grammar {

// Makes counted rules of repetitions with too many states.
Grammar outline_counters(Grammar grammar);

// Replaces calls of small rules by their bodies, so that the automata are merged.
Grammar inline_rules(Grammar grammar);

// Removes rules that the root does not reach. A rule without a name gets that of a caller.
Grammar drop_unreachable(Grammar grammar);

inline Grammar optimize(Grammar grammar) {
  return drop_unreachable(inline_rules(outline_counters(std::move(grammar))));
}

// Estimates the NFA states of each expression. A call counts as one state. Large sums saturate.
std::vector<std::size_t> expression_sizes(const Grammar& grammar);

}  // namespace octavo::grammar
