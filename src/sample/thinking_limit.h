// Ends an answer's thoughts when they have had as many tokens as the request allows.
#pragma once

#include <optional>

#include "request/request.h"

namespace octavo {

class ThinkingLimit {
 public:
  explicit ThinkingLimit(const std::optional<ThinkingBudget>& budget) : budget_(budget) {
    if (budget_) spent_ = budget_->spent;
  }

  // The answer goes on with this token. O(1).
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

  // The token that has thoughts counted; nothing: there is no limit.
  std::optional<TokenId> begin() const { return budget_ ? std::optional(budget_->begin) : std::nullopt; }
  // Whether what may come next depends on how many thoughts there are.
  bool counts() const { return spent_.has_value(); }
  // The token that must come next: the end of the thoughts. Nothing: any may.
  std::optional<TokenId> forced() const {
    return spent_ && *spent_ >= budget_->tokens ? std::optional(budget_->end) : std::nullopt;
  }

 private:
  std::optional<ThinkingBudget> budget_;
  std::optional<int> spent_ = {};  // of the thoughts that are open
};

}  // namespace octavo
