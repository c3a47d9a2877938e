// Rewrites a grammar without a change of its language. Each pass is a function from Grammar to Grammar;
// optimize() runs all passes in order.
#pragma once

#include "grammar/grammar.h"

namespace octavo::grammar {

// Converts repetitions with too many automaton states to counted rules.
Grammar outline_counters(Grammar grammar);

// Replaces calls of small rules with their bodies, so that their automata are merged.
Grammar inline_rules(Grammar grammar);

// Removes rules that cannot be reached from the root. Unnamed rules get the name of a caller.
Grammar drop_unreachable(Grammar grammar);

inline Grammar optimize(Grammar grammar) {
  return drop_unreachable(inline_rules(outline_counters(std::move(grammar))));
}

// Estimates the number of NFA states of each expression, with saturation. A call counts as one state.
std::vector<std::size_t> expression_sizes(const Grammar& grammar);

}  // namespace octavo::grammar
