// Finds rules that match no text, for error messages. Here, "dead" means that a rule or an expression matches
// no text.
#pragma once

#include <optional>
#include <vector>

#include "grammar/grammar.h"

namespace octavo::grammar {

class DeadEnds {
 public:
  DeadEnds(const Grammar& grammar, RuleId first);

  bool is_dead(RuleId rule) const { return !rule_lives_[rule]; }

  // A list of dead rules: the first one is given, each rule requires the next one, and the last one is the
  // cause. endless: the last rule requires an earlier rule of the list, so its texts would be infinite.
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
  // to_accepting() returns for each node whether a path without dead arcs leads from it to an accepting node.
  // from_start() returns for each node whether such a path leads to it from the start.
  std::vector<bool> to_accepting(const Graph& graph) const;
  std::vector<bool> from_start(const Graph& graph) const;
  std::optional<ExprId> dead_arc(const Graph& graph) const;
  // Returns the subexpression that makes a dead expression dead, or nullopt if the expression itself is the
  // cause.
  std::optional<ExprId> dead_part(const Expr& expr) const;

  const Grammar& g_;
  std::vector<bool> rule_lives_, expr_lives_;
};

}  // namespace octavo::grammar
