#include "kv/saved_states.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace octavo {

SavedStates::SavedStates(int first, int count)
    : first_(first),
      states_(static_cast<std::size_t>(count)),
      buckets_(std::bit_ceil(2 * static_cast<std::size_t>(count)), kNoState) {
  CHECK(count > 0, "{} states", count);
}

int SavedStates::find(PrefixId prefix) const {
  int slot = buckets_[bucket(prefix)];
  while (slot != kNoState && at(slot).prefix != prefix) slot = at(slot).next_in_bucket;
  return slot;
}

int SavedStates::take() {
  int oldest = kNoState;
  for (int slot = first_; slot < first_ + count(); ++slot)
    if (!at(slot).writing && at(slot).pins == 0 && (oldest == kNoState || at(slot).used < at(oldest).used)) oldest = slot;
  if (oldest == kNoState) return kNoState;
  forget(oldest);
  at(oldest).writing = true;
  ++writing_;
  return oldest;
}

void SavedStates::keep(int slot, PrefixId prefix) {
  give_back(slot);
  if (const int twin = find(prefix); twin != kNoState) return touch(twin);
  insert(slot, prefix);
  if (observer_ != nullptr) observer_->state_kept(slot, prefix);
}

void SavedStates::restore(int slot, PrefixId prefix) {
  CHECK(!at(slot).writing && at(slot).prefix == kEmptyPrefix && find(prefix) == kNoState,
        "slot {} or prefix {} has a state", slot, prefix);
  insert(slot, prefix);
}

void SavedStates::insert(int slot, PrefixId prefix) {
  at(slot).used = ++now_;
  at(slot).prefix = prefix;
  int& first = buckets_[bucket(prefix)];
  at(slot).next_in_bucket = first;
  first = slot;
}

void SavedStates::touch(int slot) {
  at(slot).used = ++now_;
  if (observer_ != nullptr) observer_->state_used(slot);
}

void SavedStates::give_back(int slot) {
  CHECK(at(slot).writing, "state {} is not being written", slot);
  at(slot) = {};
  --writing_;
}

void SavedStates::unpin(int slot) {
  CHECK(at(slot).pins > 0, "state {} has no readers", slot);
  --at(slot).pins;
}

void SavedStates::forget(int slot) {
  if (at(slot).prefix == kEmptyPrefix) return;
  if (observer_ != nullptr) observer_->state_removed(slot);
  int* link = &buckets_[bucket(at(slot).prefix)];
  while (*link != slot) link = &at(*link).next_in_bucket;
  *link = at(slot).next_in_bucket;
  at(slot) = {.pins = at(slot).pins};
}

void SavedStates::reset() {
  for (int slot = first_; slot < first_ + count(); ++slot) forget(slot);
}

}  // namespace octavo
