#include "engine/tier_events.h"

#include <algorithm>

namespace octavo {

// Whether anybody wants to know; who was told that everything is gone believes it of the tier, too.
bool TierEvents::listening() {
  if (log_ == nullptr) return false;
  if (log_->clears() != clears_) told_.clear();
  clears_ = log_->clears();
  return true;
}

void TierEvents::tell_stored(const KvConnector& tier, const PrefixHold& hold, std::span<const Hash128> keys) {
  if (!listening()) return;
  const std::span<const Hash128> names(hold.keys);
  keys = keys.first(std::min(keys.size(), names.size()));
  const std::vector<bool> there = tier.held(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!there[i] || !told_.try_emplace(keys[i], names[i]).second) continue;
    const std::size_t size = hold.tokens.size() / names.size();
    log_->write({.kind = KvEvent::Kind::stored,
                 .key = names[i],
                 .parent_key = i == 0 ? Hash128{} : names[i - 1],
                 .extra = hold.identity,
                 .medium = KvMedium::storage},
                std::span(hold.tokens).subspan(i * size, size));
  }
}

void TierEvents::tell_removed(KvConnector& tier) {
  const std::vector<Hash128> gone = tier.take_gone();
  if (gone.empty() || !listening()) return;
  const std::vector<bool> there = tier.held(gone);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const auto told = told_.find(gone[i]);
    if (told == told_.end() || there[i]) continue;  // it has come again meanwhile
    log_->write({.kind = KvEvent::Kind::removed, .key = told->second, .medium = KvMedium::storage});
    told_.erase(told);
  }
}

}  // namespace octavo
