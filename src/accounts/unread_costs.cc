#include "accounts/unread_costs.h"

#include <utility>

namespace octavo {

void UnreadCosts::put(std::string id, const AnswerCost& cost) {
  const std::lock_guard lock(mutex_);
  costs_[id] += cost;  // a response with tools on servers is several generations
  ids_.push_back(std::move(id));
  if (ids_.size() <= kMost) return;
  costs_.erase(ids_.front());
  ids_.pop_front();
}

std::optional<AnswerCost> UnreadCosts::take(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = costs_.find(std::string(id));
  if (found == costs_.end()) return std::nullopt;
  const AnswerCost cost = found->second;
  costs_.erase(found);
  return cost;
}

}  // namespace octavo
