#include <algorithm>

#include "grammar/passes/passes.h"

namespace octavo::grammar {

std::vector<std::size_t> expression_sizes(const Grammar& grammar) {
  constexpr std::size_t kCap = 1u << 30;
  std::vector<std::size_t> sizes(grammar.exprs.size());
  for (std::size_t id = 0; id < sizes.size(); ++id) {  // children have smaller ids than their parents
    const Expr& expr = grammar.exprs[id];
    std::size_t size = 1;
    if (const auto* literal = std::get_if<Literal>(&expr.node)) {
      size = literal->bytes.size();
    } else if (const auto* leaf = std::get_if<Leaf>(&expr.node)) {
      size = leaf->automaton->states.size();
    } else if (const auto* repeat = std::get_if<Repeat>(&expr.node)) {
      const std::size_t copies = repeat->max == kUnbounded ? repeat->min + std::size_t{1} : repeat->max;
      size = std::min(kCap, std::max<std::size_t>(1, sizes[repeat->body]) * copies);
    } else {
      for_children(expr, [&](ExprId child) { size = std::min(kCap, size + sizes[child]); });
    }
    sizes[id] = size;
  }
  return sizes;
}

}  // namespace octavo::grammar
