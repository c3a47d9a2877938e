#include "engine/cache/tier_events.h"

#include <algorithm>
#include <utility>

#include "transfer/kv_pieces.h"

namespace octavo {

// Returns whether events are enabled. A `cleared` event makes subscribers assume that the tiers are empty,
// too, so the function forgets all reported blocks after such an event.
bool TierEvents::listening() {
  if (log_ == nullptr) return false;
  if (log_->clears() == clears_) return true;
  clears_ = log_->clears();
  for (auto& [medium, reported] : reported_) reported.clear();
  not_below_.clear();
  return true;
}

void TierEvents::report(Hash128 piece, const KvEvent& event, std::span<const std::int32_t> tokens) {
  if (!reported_.at(event.medium).try_emplace(piece, Name{event.group, event.key}).second) return;
  log_->write(event, tokens);
  if (event.medium == KvMedium::host) {
    not_below_.insert_or_assign(piece, Stored{event, {tokens.begin(), tokens.end()}});
  } else {
    not_below_.erase(piece);
  }
}

void TierEvents::report_stored(const KvConnector& tier, const PrefixHold& hold,
                               std::span<const Hash128> keys) {
  if (!listening()) return;
  const std::span<const Hash128> names(hold.keys);
  keys = keys.first(std::min(keys.size(), names.size()));
  for (int group = 0; group < groups_; ++group) {
    std::vector<Hash128> pieces;
    for (const Hash128& key : keys) pieces.push_back(piece_key(key, group));
    for (const KvMedium medium : {KvMedium::host, KvMedium::storage}) {
      const std::vector<bool> held = tier.held(medium, pieces);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!held[i]) continue;
        const std::size_t size = hold.tokens.size() / names.size();
        report(pieces[i],
               {.kind = KvEvent::Kind::stored,
                .group = group,
                .key = names[i],
                .parent_key = i == 0 ? Hash128{} : names[i - 1],
                .extra = hold.identity,
                .medium = medium},
               std::span(hold.tokens).subspan(i * size, size));
      }
    }
  }
}

void TierEvents::report_changes(KvConnector& tier) {
  const std::vector<Hash128> written = tier.take_written_below();
  if (!written.empty() && listening()) {
    const std::vector<bool> held = tier.held(KvMedium::storage, written);
    for (std::size_t i = 0; i < written.size(); ++i) {
      const auto stored = not_below_.find(written[i]);
      // Skip blocks that no event has reported in host memory (report_stored() reports them when a prompt
      // uses them), that are already reported in storage, or that storage no longer has.
      if (stored == not_below_.end() || !held[i]) continue;
      Stored mine = std::move(stored->second);
      mine.event.medium = KvMedium::storage;
      report(written[i], mine.event, mine.tokens);
    }
  }
  for (auto& [medium, reported] : reported_) {
    const std::vector<Hash128> removed_keys = tier.take_removed(medium);
    if (removed_keys.empty() || !listening()) continue;
    const std::vector<bool> held = tier.held(medium, removed_keys);
    for (std::size_t i = 0; i < removed_keys.size(); ++i) {
      const auto name = reported.find(removed_keys[i]);
      // Skip blocks that no event has reported, and blocks that the tier has stored again after it removed
      // them.
      if (name == reported.end() || held[i]) continue;
      log_->write({.kind = KvEvent::Kind::removed,
                   .group = name->second.group,
                   .key = name->second.key,
                   .medium = medium});
      reported.erase(name);
      if (medium == KvMedium::host) not_below_.erase(removed_keys[i]);
    }
  }
}

}  // namespace octavo
