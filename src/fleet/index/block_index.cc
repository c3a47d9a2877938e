#include "fleet/index/block_index.h"

#include <algorithm>

#include "base/check.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kSlotsMin = 1024;
constexpr std::size_t kJump = 32;  // number of blocks that a lookup skips

std::uint32_t bit(Tier tier) { return 1U << static_cast<unsigned>(tier); }

// Adds `blocks` to the count of the fastest tier in `tiers`.
void count(Hits& hits, std::uint32_t tiers, std::uint32_t blocks) {
  if (tiers & bit(Tier::device)) {
    hits.device += blocks;
  } else if (tiers & bit(Tier::host)) {
    hits.host += blocks;
  } else {
    hits.disk += blocks;
  }
}

}  // namespace

BlockIndex::BlockIndex(std::size_t entries_max) : entries_max_(entries_max), slots_(kSlotsMin), lists_(1) {}

void BlockIndex::prefetch(std::span<const PrefixKey> keys, std::size_t first, std::size_t step) const {
  const auto each = [&](auto&& touch) {
    for (std::size_t at = first; at < keys.size(); at += step) touch(slots_.home(keys[at]));
  };
  each([](const Slot& slot) { __builtin_prefetch(&slot); });
  each([this](const Slot& slot) { __builtin_prefetch(&lists_[slot.list]); });
  each([this](const Slot& slot) { __builtin_prefetch(lists_[slot.list].data()); });
}

std::span<const std::uint32_t> BlockIndex::holders(const Slot& slot) const {
  if (slot.first == 0) return {};
  if (slot.list == 0) return {&slot.first, 1};
  return lists_[slot.list];
}

bool BlockIndex::same_holders(const Slot& a, const Slot& b) const {
  if (a.list == 0 && b.list == 0) return a.first == b.first;
  return std::ranges::equal(holders(a), holders(b));
}

std::uint32_t* BlockIndex::entry(Slot& slot, EndpointId endpoint) {
  if (slot.list == 0) return unpacked(slot.first).endpoint == endpoint ? &slot.first : nullptr;
  const auto found = std::ranges::lower_bound(lists_[slot.list], endpoint << 3);
  return found != lists_[slot.list].end() && unpacked(*found).endpoint == endpoint ? &*found : nullptr;
}

bool BlockIndex::store(EndpointId endpoint, PrefixKey key, Tier tier) {
  CHECK(endpoint < (1U << 28), "endpoint {}", endpoint);
  const std::size_t at = slots_.find(key);
  if (slots_[at].used()) {
    if (std::uint32_t* holder = entry(slots_[at], endpoint)) {
      *holder |= bit(tier);
      return true;
    }
  }
  if (entries_ == entries_max_) return false;
  ++entries_;
  if (slots_[at].used()) {
    add_holder(slots_[at], packed({endpoint, bit(tier)}));
    return true;
  }
  slots_.insert(at, {key, packed({endpoint, bit(tier)}), 0});
  return true;
}

void BlockIndex::add_holder(Slot& slot, std::uint32_t holder) {
  if (slot.list == 0) {
    if (free_lists_.empty()) {
      free_lists_.push_back(static_cast<std::uint32_t>(lists_.size()));
      lists_.emplace_back();
    }
    slot.list = free_lists_.back();
    free_lists_.pop_back();
    lists_[slot.list].assign(1, slot.first);
  }
  auto& list = lists_[slot.list];
  list.insert(std::ranges::lower_bound(list, holder), holder);
}

bool BlockIndex::remove(EndpointId endpoint, PrefixKey key, Tier tier) {
  const std::size_t at = slots_.find(key);
  if (!slots_[at].used()) return false;
  std::uint32_t* holder = entry(slots_[at], endpoint);
  if (!holder || (*holder & bit(tier)) == 0) return false;
  *holder &= ~bit(tier);
  if (unpacked(*holder).tiers == 0) drop(at, endpoint);
  return true;
}

// Removes the endpoint from the slot. Removes the slot, too, if it was the only endpoint.
void BlockIndex::drop(std::size_t at, EndpointId endpoint) {
  Slot& slot = slots_[at];
  --entries_;
  if (slot.list == 0) return slots_.erase(at);
  auto& list = lists_[slot.list];
  std::erase_if(list, [&](std::uint32_t holder) { return unpacked(holder).endpoint == endpoint; });
  if (list.size() > 1) return;
  slot.first = list.front();
  std::vector<std::uint32_t>().swap(list);
  free_lists_.push_back(slot.list);
  slot.list = 0;
}

void BlockIndex::clear(EndpointId endpoint) {
  std::vector<PrefixKey> keys;
  for (const Slot& slot : slots_.slots())
    for (const std::uint32_t holder : holders(slot))
      if (unpacked(holder).endpoint == endpoint) keys.push_back(slot.key);
  for (const PrefixKey key : keys) drop(slots_.find(key), endpoint);
}

std::uint8_t BlockIndex::tiers(EndpointId endpoint, PrefixKey key) const {
  for (const std::uint32_t holder : holders(slots_[slots_.find(key)]))
    if (unpacked(holder).endpoint == endpoint) return static_cast<std::uint8_t>(unpacked(holder).tiers);
  return 0;
}

void BlockIndex::match(std::span<const PrefixKey> keys, Overlap& overlap) const {
  overlap.clear();
  overlap.prompt_blocks = static_cast<std::uint32_t>(keys.size());
  prefetch(keys, kJump - 1, kJump);
  // Adds the blocks from `at` to `next` to the hits of the endpoints in `slot` that also have all earlier
  // blocks.
  std::size_t at = 0;
  const auto step = [&](std::size_t next, const Slot& slot) {
    for (const std::uint32_t packed_holder : holders(slot)) {
      const Holder holder = unpacked(packed_holder);
      Hits& hits = overlap.at(holder.endpoint);
      if (hits.blocks() != at) continue;  // the endpoint lacks an earlier block
      if (at == 0) overlap.holders.push_back(holder.endpoint);
      count(hits, holder.tiers, static_cast<std::uint32_t>(next - at));
    }
    at = next;
  };
  while (at < keys.size()) {
    const Slot& here = slots_[slots_.find(keys[at])];
    if (here.first == 0) return;
    step(at + 1, here);
    // If two blocks have the same endpoints, all blocks between them are at these endpoints, too.
    while (at + kJump <= keys.size() && same_holders(here, slots_[slots_.find(keys[at + kJump - 1])]))
      step(at + kJump, here);
  }
}

std::size_t BlockIndex::bytes() const {
  std::size_t bytes = slots_.bytes() + lists_.capacity() * sizeof(lists_[0]);
  for (const auto& list : lists_) bytes += list.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace octavo::fleet
