#include "engine/tier_events.h"

#include <algorithm>

#include "transfer/kv_pieces.h"

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
  for (int group = 0; group < groups_; ++group) {
    std::vector<Hash128> pieces;
    for (const Hash128& key : keys) pieces.push_back(piece_key(key, group));
    const std::vector<bool> there = tier.held(pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!there[i] || !told_.try_emplace(pieces[i], Name{group, names[i]}).second) continue;
      const std::size_t size = hold.tokens.size() / names.size();
      log_->write({.kind = KvEvent::Kind::stored,
                   .group = group,
                   .key = names[i],
                   .parent_key = i == 0 ? Hash128{} : names[i - 1],
                   .extra = hold.identity,
                   .medium = KvMedium::storage},
                  std::span(hold.tokens).subspan(i * size, size));
    }
  }
}

void TierEvents::tell_removed(KvConnector& tier) {
  const std::vector<Hash128> gone = tier.take_gone();
  if (gone.empty() || !listening()) return;
  const std::vector<bool> there = tier.held(gone);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const auto told = told_.find(gone[i]);
    if (told == told_.end() || there[i]) continue;  // it has come again meanwhile
    log_->write({.kind = KvEvent::Kind::removed,
                 .group = told->second.group,
                 .key = told->second.key,
                 .medium = KvMedium::storage});
    told_.erase(told);
  }
}

}  // namespace octavo
