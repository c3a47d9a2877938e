#include <algorithm>

#include "grammar/limits.h"
#include "grammar/passes/passes.h"

namespace octavo::grammar {

namespace {

// Maximum number of automaton states of a rule that is inlined.
constexpr std::size_t kInlineStatesMax = 24;

// Returns true if the expression has a loop in which more than 16 different bytes are allowed. Such a rule is
// not inlined: its masks are large, and its callers should share them.
bool has_wide_loop(const Grammar& grammar, ExprId id, bool in_loop) {
  const Expr& expr = grammar.exprs[id];
  if (const auto* set = std::get_if<ByteSet>(&expr.node)) {
    int count = 0;
    for (unsigned b = 0; b < 256; ++b) count += set->has(b);
    return in_loop && count > 16;
  }
  if (const auto* leaf = std::get_if<Leaf>(&expr.node))
    return std::ranges::any_of(leaf->automaton->states, [](const State& state) {
      int count = 0;
      for (const Edge& edge : state.edges) count += edge.high - edge.low + 1;
      return count > 16;
    });
  const auto* repeat = std::get_if<Repeat>(&expr.node);
  bool found = false;
  for_children(expr, [&](ExprId child) {
    found = found || has_wide_loop(grammar, child, in_loop || (repeat && repeat->max > 4));
  });
  return found;
}

bool calls_any(const Grammar& grammar, ExprId id) {
  const Expr& expr = grammar.exprs[id];
  bool found = std::holds_alternative<Call>(expr.node);
  for_children(expr, [&](ExprId child) { found = found || calls_any(grammar, child); });
  return found;
}

// If a rule only calls another rule, its callers call that rule directly.
void skip_forwarding_rules(Grammar& grammar) {
  const auto next = [&](RuleId rule) -> const Call* {
    const Rule& r = grammar.rules[rule];
    return r.counted() ? nullptr : std::get_if<Call>(&grammar.exprs[r.body].node);
  };
  for (Expr& expr : grammar.exprs) {
    auto* call = std::get_if<Call>(&expr.node);
    if (!call) continue;
    RuleId target = call->rule;
    // without this limit, rules that only call themselves or each other would make the loop endless
    constexpr int kStepsMax = 8;
    for (int step = 0; step < kStepsMax && next(target); ++step) target = next(target)->rule;
    call->rule = target;
  }
}

}  // namespace

Grammar inline_rules(Grammar grammar) {
  skip_forwarding_rules(grammar);
  // Each round inlines rules without calls. After that, other rules may have no calls.
  for (int round = 0; round < 4; ++round) {
    const std::vector<std::size_t> sizes = expression_sizes(grammar);
    std::vector<bool> fits(grammar.rules.size());
    bool any = false;
    for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) {
      const Rule& r = grammar.rules[rule];
      fits[rule] = rule != grammar.root && !r.counted() && !r.unique_items && sizes[r.body] <= kInlineStatesMax &&
                   grammar.exprs[r.body].depth <= 8 && !calls_any(grammar, r.body) &&
                   !has_wide_loop(grammar, r.body, false);
    }
    // The bodies of counted rules and the expressions of AnyOrder must stay calls.
    const auto keep = [&](ExprId call) { fits[std::get<Call>(grammar.exprs[call].node).rule] = false; };
    for (const Rule& r : grammar.rules) {
      if (r.counted()) keep(r.body);
      if (std::holds_alternative<AnyOrder>(grammar.exprs[r.body].node))
        for_children(grammar.exprs[r.body], keep);
    }
    const std::size_t count = grammar.exprs.size();
    for (ExprId id = 0; id < count; ++id) {
      Expr& expr = grammar.exprs[id];
      const auto* call = std::get_if<Call>(&expr.node);
      if (!call || !fits[call->rule]) continue;
      const ExprId body = grammar.rules[call->rule].body;
      expr.node = Sequence{{body}};
      any = true;
    }
    if (!any) break;
  }
  return grammar;
}

}  // namespace octavo::grammar
