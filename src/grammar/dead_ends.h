// Finds rules that match no text, and the rule that is the cause.
#pragma once

#include <optional>
#include <vector>

#include "grammar/grammar.h"

namespace octavo::grammar {

class DeadEnds {
 public:
  // Checks the rules from `first` to the last.
  DeadEnds(const Grammar& grammar, RuleId first);

  bool is_dead(RuleId rule) const { return !rule_lives_[rule]; }

  // The dead rules from this one to the cause. Each requires the next one. endless: the last rule requires
  // an earlier one, so a text would never end.
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
  // For each node: whether an accepting node can be reached from it over living arcs, or the node from the
  // start.
  std::vector<bool> to_accepting(const Graph& graph) const;
  std::vector<bool> from_start(const Graph& graph) const;
  std::optional<ExprId> dead_arc(const Graph& graph) const;
  // Returns the dead part that makes the expression dead, or nullopt if the expression itself is the cause.
  std::optional<ExprId> dead_part(const Expr& expr) const;

  const Grammar& g_;
  std::vector<bool> rule_lives_, expr_lives_;
};

}  // namespace octavo::grammar
