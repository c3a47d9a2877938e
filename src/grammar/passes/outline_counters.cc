#include <algorithm>

#include "grammar/limits.h"
#include "grammar/passes/passes.h"

namespace octavo::grammar {

Grammar outline_counters(Grammar grammar) {
  std::vector<std::size_t> sizes = expression_sizes(grammar);
  // Children have smaller ids than their parents, so inner repetitions are rewritten first.
  const std::size_t count = grammar.exprs.size();
  for (ExprId id = 0; id < count; ++id) {
    std::size_t size = 1;
    if (auto* repeat = std::get_if<Repeat>(&grammar.exprs[id].node)) {
      const bool bounded = repeat->max != kUnbounded;
      const std::size_t copies = bounded ? repeat->max : repeat->min + std::size_t{1};
      size = std::max<std::size_t>(1, sizes[repeat->body]) * copies;
      if (size > kUnrollStatesMax && copies > 2) {
        const Repeat counted = *repeat;
        const RuleId body = grammar.rule("", counted.body);
        const RuleId rule = grammar.rule("", grammar.call(body));
        grammar.rules[rule].min = counted.min;
        grammar.rules[rule].max = counted.max;
        grammar.exprs[id] = {Call{rule}};
        size = 1;
      }
    } else if (const auto* literal = std::get_if<Literal>(&grammar.exprs[id].node)) {
      size = literal->bytes.size();
    } else if (const auto* leaf = std::get_if<Leaf>(&grammar.exprs[id].node)) {
      size = leaf->automaton->states.size();
    } else {
      for_children(grammar.exprs[id], [&](ExprId child) { size += sizes[child]; });
    }
    sizes[id] = size;
  }
  return grammar;
}

}  // namespace octavo::grammar
