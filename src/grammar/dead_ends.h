// Finds rules that match no text, for error messages. A rule or expression that matches no text is called
// dead.
#pragma once

#include <optional>
#include <vector>

#include "grammar/grammar.h"

namespace octavo::grammar {

class DeadEnds {
 public:
  DeadEnds(const Grammar& grammar, RuleId first);

  bool is_dead(RuleId rule) const { return !rule_lives_[rule]; }

  // The dead rules from a given rule to the cause. Each rule requires the next one. endless: the last rule
  // requires an earlier one, so its texts would be infinite.
  struct Chain {
    std::vector<RuleId> rules;
    bool endless = false;
  };
  Chain chain_from(RuleId dead) const;

 private:
  void look_at(RuleId rule);
  bool lives(const Expr& expr) const;
  bool lives(const Graph& graph) const;
  bool lives(const AnyOrder& parts) const;
  // to_accepting() returns for each node whether arcs that are not dead lead from it to an accepting node.
  // from_start() returns the same for arcs from the start to the node.
  std::vector<bool> to_accepting(const Graph& graph) const;
  std::vector<bool> from_start(const Graph& graph) const;
  std::optional<ExprId> dead_arc(const Graph& graph) const;
  // Returns the dead part that makes the expression dead. nullopt: the expression itself is the cause.
  std::optional<ExprId> dead_part(const Expr& expr) const;

  const Grammar& g_;
  std::vector<bool> rule_lives_, expr_lives_;
};

}  // namespace octavo::grammar
