#include "sample/token_history.h"

namespace octavo {

std::size_t TokenHistory::slot_of(TokenId id) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(static_cast<std::uint32_t>(id) * 0x9E3779B1u >> 7) & mask;
  while (slots_[slot] != 0 && ids_[slots_[slot] - 1] != id) slot = (slot + 1) & mask;
  return slot;
}

std::optional<std::size_t> TokenHistory::find(TokenId id) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t position = slots_[slot_of(id)];
  return position == 0 ? std::nullopt : std::optional(position - 1);
}

std::size_t TokenHistory::find_or_insert(TokenId id) {
  if (2 * (ids_.size() + 1) > slots_.size()) {
    slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), 0);
    for (std::size_t i = 0; i < ids_.size(); ++i) slots_[slot_of(ids_[i])] = i + 1;
  }
  std::size_t& slot = slots_[slot_of(id)];
  if (slot == 0) {
    ids_.push_back(id);
    counts_.push_back(0);
    slot = ids_.size();
  }
  return slot - 1;
}

}  // namespace octavo
