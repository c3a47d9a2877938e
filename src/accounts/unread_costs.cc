#include "accounts/unread_costs.h"

#include <memory>

namespace octavo {

UnreadCosts::Open UnreadCosts::open(const std::string& id) const {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->open[id];
  }
  const auto close = [state = state_, id](const void*) {
    const std::lock_guard lock(state->mutex);
    if (const auto found = state->open.find(id); --found->second == 0) state->open.erase(found);
  };
  return Open(state_.get(), close);
}

void UnreadCosts::put(const std::string& id, const AnswerCost& cost) {
  const std::lock_guard lock(state_->mutex);
  const auto [entry, is_new] = state_->costs.try_emplace(id);
  entry->second += cost;  // a response whose tools run on MCP servers has several generations
  if (!is_new) return;
  state_->ids.push_back(id);
  if (state_->ids.size() <= kMost) return;
  state_->costs.erase(state_->ids.front());
  state_->ids.pop_front();
}

std::optional<AnswerCost> UnreadCosts::take(std::string_view id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->costs.find(std::string(id));
  if (found == state_->costs.end() || state_->open.contains(found->first)) return std::nullopt;
  const AnswerCost cost = found->second;
  state_->costs.erase(found);
  return cost;
}

}  // namespace octavo
