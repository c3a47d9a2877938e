#include "grammar/dead_ends.h"

#include <algorithm>
#include <utility>

namespace octavo::grammar {

// Most rules have lower ids than the rules that they call. So a pass from the last rule to the first decides
// most rules, and further passes decide the others.
DeadEnds::DeadEnds(const Grammar& grammar, RuleId first)
    : g_(grammar), rule_lives_(grammar.rules.size(), false), expr_lives_(grammar.exprs.size(), false) {
  for (RuleId rule = 0; rule < first; ++rule) rule_lives_[rule] = true;
  constexpr int kPassesMax = 64;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    bool changed = false, dead = false;
    for (auto rule = static_cast<RuleId>(g_.rules.size()); rule-- > first;) {
      if (rule_lives_[rule]) continue;
      look_at(rule);
      changed = changed || rule_lives_[rule];
      dead = dead || !rule_lives_[rule];
    }
    if (!changed || !dead) return;
  }
  // After kPassesMax passes, some rules in call cycles are still undecided. Reports no rule as dead.
  rule_lives_.assign(rule_lives_.size(), true);
}

// Decides children before their parents. Uses a list instead of recursion, because expressions may be deep.
void DeadEnds::look_at(RuleId rule) {
  std::vector<std::pair<ExprId, bool>> work{{g_.rules[rule].body, false}};
  while (!work.empty()) {
    const auto [id, children_done] = work.back();
    work.pop_back();
    if (expr_lives_[id]) continue;
    if (children_done) {
      expr_lives_[id] = lives(g_.exprs[id]);
      continue;
    }
    work.emplace_back(id, true);
    for_children(g_.exprs[id], [&](ExprId child) { work.emplace_back(child, false); });
  }
  rule_lives_[rule] = g_.rules[rule].min == 0 || expr_lives_[g_.rules[rule].body];
}

bool DeadEnds::lives(const Expr& expr) const {
  const auto alive = [&](ExprId id) { return expr_lives_[id]; };
  if (const auto* sequence = std::get_if<Sequence>(&expr.node))
    return std::ranges::all_of(sequence->parts, alive);
  if (const auto* choice = std::get_if<Choice>(&expr.node))
    return std::ranges::any_of(choice->branches, alive);
  if (const auto* repeat = std::get_if<Repeat>(&expr.node)) return repeat->min == 0 || alive(repeat->body);
  if (const auto* call = std::get_if<Call>(&expr.node)) return rule_lives_[call->rule];
  if (const auto* leaf = std::get_if<Leaf>(&expr.node)) return !is_empty(*leaf->automaton);
  if (const auto* graph = std::get_if<Graph>(&expr.node)) return lives(*graph);
  if (const auto* parts = std::get_if<AnyOrder>(&expr.node)) return lives(*parts);
  return true;
}

namespace {

// Returns the nodes that are reachable from the nodes in `work`.
std::vector<bool> spread(std::uint32_t nodes,
                         const std::vector<std::pair<std::uint32_t, std::uint32_t>>& arcs,
                         std::vector<std::uint32_t> work) {
  std::vector<std::vector<std::uint32_t>> next(nodes);
  for (const auto& [from, to] : arcs) next[from].push_back(to);
  std::vector<bool> reached(nodes, false);
  for (const std::uint32_t node : work) reached[node] = true;
  while (!work.empty()) {
    const std::uint32_t node = work.back();
    work.pop_back();
    for (const std::uint32_t to : next[node])
      if (!reached[to]) {
        reached[to] = true;
        work.push_back(to);
      }
  }
  return reached;
}

}  // namespace

std::vector<bool> DeadEnds::from_start(const Graph& graph) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arcs;
  for (const Graph::Arc& arc : graph.arcs)
    if (!arc.label || expr_lives_[*arc.label]) arcs.emplace_back(arc.from, arc.to);
  return spread(graph.nodes, arcs, {0});
}

std::vector<bool> DeadEnds::to_accepting(const Graph& graph) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arcs;
  for (const Graph::Arc& arc : graph.arcs)
    if (!arc.label || expr_lives_[*arc.label]) arcs.emplace_back(arc.to, arc.from);
  return spread(graph.nodes, arcs, graph.accepting);
}

// Returns a dead arc that alone makes the graph dead, or otherwise the first reachable dead arc.
std::optional<ExprId> DeadEnds::dead_arc(const Graph& graph) const {
  const std::vector<bool> before = from_start(graph), after = to_accepting(graph);
  std::optional<ExprId> first;
  for (const Graph::Arc& arc : graph.arcs) {
    if (!before[arc.from] || !arc.label || expr_lives_[*arc.label]) continue;
    if (after[arc.to]) return arc.label;
    if (!first) first = arc.label;
  }
  return first;
}

bool DeadEnds::lives(const Graph& graph) const {
  const std::vector<bool> nodes = from_start(graph);
  return std::ranges::any_of(graph.accepting, [&](std::uint32_t node) { return nodes[node]; });
}

bool DeadEnds::lives(const AnyOrder& parts) const {
  std::uint32_t possible = parts.others && expr_lives_[*parts.others] ? parts.min : 0, required = 0;
  for (std::size_t i = 0; i < parts.parts.size(); ++i) {
    const bool alive = expr_lives_[parts.parts[i]];
    if (parts.required[i] && !alive) return false;
    required += parts.required[i];
    possible += alive;
  }
  return parts.min <= parts.max && possible >= parts.min && required <= parts.max;
}

std::optional<ExprId> DeadEnds::dead_part(const Expr& expr) const {
  const auto first_dead = [&](const std::vector<ExprId>& parts) {
    const auto it = std::ranges::find_if(parts, [&](ExprId id) { return !expr_lives_[id]; });
    return it == parts.end() ? std::nullopt : std::optional(*it);
  };
  if (const auto* sequence = std::get_if<Sequence>(&expr.node)) return first_dead(sequence->parts);
  if (const auto* choice = std::get_if<Choice>(&expr.node)) return first_dead(choice->branches);
  if (const auto* repeat = std::get_if<Repeat>(&expr.node)) return repeat->body;
  if (const auto* graph = std::get_if<Graph>(&expr.node)) return dead_arc(*graph);
  if (const auto* parts = std::get_if<AnyOrder>(&expr.node)) {
    for (std::size_t i = 0; i < parts->parts.size(); ++i)
      if (parts->required[i] && !expr_lives_[parts->parts[i]]) return parts->parts[i];
    const bool too_many = std::ranges::count(parts->required, true) > parts->max || parts->min > parts->max;
    if (!too_many) return first_dead(parts->parts);
  }
  return std::nullopt;
}

DeadEnds::Chain DeadEnds::chain_from(RuleId dead) const {
  Chain chain{{dead}};
  std::optional<ExprId> at = g_.rules[dead].body;
  while (at) {
    const Expr& expr = g_.exprs[*at];
    if (const auto* call = std::get_if<Call>(&expr.node)) {
      chain.endless = std::ranges::find(chain.rules, call->rule) != chain.rules.end();
      if (chain.endless) break;
      chain.rules.push_back(call->rule);
      at = g_.rules[call->rule].body;
    } else {
      at = dead_part(expr);
    }
  }
  return chain;
}

}  // namespace octavo::grammar
