// Rewrites of a grammar that keep its language. Each is a function Grammar -> Grammar; optimize() runs them
// in order.
#pragma once

#include "grammar/grammar.h"

namespace octavo::grammar {

// Turns repetitions too large to be written out as automaton states into counted rules.
Grammar outline_counters(Grammar grammar);

// Puts the bodies of small rules in the place of their calls, so that their automata become one.
Grammar inline_rules(Grammar grammar);

// Drops rules that the root never reaches. Rules without a name get the name of a caller.
Grammar drop_unreachable(Grammar grammar);

inline Grammar optimize(Grammar grammar) {
  return drop_unreachable(inline_rules(outline_counters(std::move(grammar))));
}

// An estimate of the NFA states of each expression, saturating; a call counts as one.
std::vector<std::size_t> expression_sizes(const Grammar& grammar);

}  // namespace octavo::grammar
