// Limits the number of reasoning tokens of a sequence. The engine calls forced() before it samples a token.
#pragma once

#include <optional>

#include "request/request.h"

namespace octavo {

class ThinkingLimit {
 public:
  explicit ThinkingLimit(const std::optional<ThinkingBudget>& budget) : budget_(budget) {
    if (budget_) spent_ = budget_->spent;
  }

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

  // Returns the token that begins reasoning, or nullopt if the request has no limit.
  std::optional<TokenId> begin() const { return budget_ ? std::optional(budget_->begin) : std::nullopt; }
  // Returns whether the model is reasoning. Only then can the limit affect the next token.
  bool counts() const { return spent_.has_value(); }
  // Returns the token that ends the reasoning if the number of reasoning tokens has reached the limit, and
  // otherwise nullopt.
  std::optional<TokenId> forced() const {
    return spent_ && *spent_ >= budget_->tokens ? std::optional(budget_->end) : std::nullopt;
  }

 private:
  std::optional<ThinkingBudget> budget_;
  std::optional<int> spent_ = {};  // number of reasoning tokens so far; nullopt: the model is not reasoning
};

}  // namespace octavo
