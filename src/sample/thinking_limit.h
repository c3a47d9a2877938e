// Ends the reasoning of an answer after the number of tokens that the request allows.
#pragma once

#include <optional>

#include "request/request.h"

namespace octavo {

class ThinkingLimit {
 public:
  explicit ThinkingLimit(const std::optional<ThinkingBudget>& budget) : budget_(budget) {
    if (budget_) spent_ = budget_->spent;
  }

  // O(1).
  void append(TokenId id) {
    if (!budget_) return;
    if (id == budget_->begin) {
      spent_ = 0;
    } else if (id == budget_->end) {
      spent_.reset();
    } else if (spent_) {
      ++*spent_;
    }
  }

  // Returns the token that begins reasoning; nullopt: no limit.
  std::optional<TokenId> begin() const { return budget_ ? std::optional(budget_->begin) : std::nullopt; }
  // Returns true if the next token can depend on the length of the reasoning.
  bool counts() const { return spent_.has_value(); }
  // Returns the token that must come next, which ends the reasoning; nullopt: any token.
  std::optional<TokenId> forced() const {
    return spent_ && *spent_ >= budget_->tokens ? std::optional(budget_->end) : std::nullopt;
  }

 private:
  std::optional<ThinkingBudget> budget_;
  std::optional<int> spent_ = {};  // number of reasoning tokens so far; nullopt: the text is not reasoning
};

}  // namespace octavo
