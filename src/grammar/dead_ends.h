// Rules of a grammar that no text matches, and the rule that is the cause.
#pragma once

#include <optional>
#include <vector>

#include "grammar/grammar.h"

namespace octavo::grammar {

class DeadEnds {
 public:
  // Looks at the rules from `first` on.
  DeadEnds(const Grammar& grammar, RuleId first);

  bool is_dead(RuleId rule) const { return !rule_lives_[rule]; }

  // The dead rules from this one to the cause: each calls the next one, and cannot do without it.
  // endless: the last one calls one of the others, so that a text would never end.
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
  // The nodes from which, or to which, living arcs lead.
  std::vector<bool> to_accepting(const Graph& graph) const;
  std::vector<bool> from_start(const Graph& graph) const;
  std::optional<ExprId> dead_arc(const Graph& graph) const;
  // The part without which a dead expression cannot do; nullopt: it is the cause itself.
  std::optional<ExprId> dead_part(const Expr& expr) const;

  const Grammar& g_;
  std::vector<bool> rule_lives_, expr_lives_;
};

}  // namespace octavo::grammar
