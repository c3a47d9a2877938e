#include <utility>

#include "grammar/passes/passes.h"

namespace octavo::grammar {

Grammar drop_unreachable(Grammar grammar) {
  std::vector<bool> expr_seen(grammar.exprs.size(), false);
  std::vector<RuleId> number(grammar.rules.size(), UINT32_MAX);
  std::vector<RuleId> order{grammar.root};
  number[grammar.root] = 0;
  std::vector<ExprId> work;
  for (std::size_t i = 0; i < order.size(); ++i) {
    work.push_back(grammar.rules[order[i]].body);
    while (!work.empty()) {
      const ExprId id = work.back();
      work.pop_back();
      if (expr_seen[id]) continue;
      expr_seen[id] = true;
      if (auto* call = std::get_if<Call>(&grammar.exprs[id].node)) {
        if (number[call->rule] == UINT32_MAX) {
          number[call->rule] = static_cast<RuleId>(order.size());
          order.push_back(call->rule);
          std::string& name = grammar.rules[call->rule].name;
          if (name.empty()) name = grammar.rules[order[i]].name;
        }
        call->rule = number[call->rule];
      }
      for_children(grammar.exprs[id], [&](ExprId child) { work.push_back(child); });
    }
  }
  std::vector<Rule> rules;
  for (const RuleId rule : order) rules.push_back(std::move(grammar.rules[rule]));
  grammar.rules = std::move(rules);
  grammar.root = 0;
  return grammar;
}

}  // namespace octavo::grammar
