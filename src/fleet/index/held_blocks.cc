#include "fleet/index/held_blocks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kBlockSizeMax = 1 << 16;  // tokens
// number of blocks that clear() and restore() change under one lock; more would make readers wait longer
constexpr std::size_t kAtOnce = 64;
constexpr Tier kTiers[] = {Tier::device, Tier::host, Tier::disk};

}  // namespace

HeldBlocks::HeldBlocks(std::size_t blocks_max)
    : blocks_max_(blocks_max), index_(std::numeric_limits<std::size_t>::max()) {}

void HeldBlocks::apply(EndpointId endpoint, const CacheEvent& event) {
  const std::lock_guard writer(writers_);
  if (event.kind == CacheEvent::Kind::cleared) return clear_held(endpoint);
  if (event.kind == CacheEvent::Kind::lost) return lose(endpoint);
  if (endpoint >= held_.size()) held_.resize(endpoint + std::size_t{1});
  Held& held = held_[endpoint];
  if (event.kind == CacheEvent::Kind::stored) {
    if (event.window || held.group.value_or(event.group) != event.group) return;
    event.tokens.empty() ? store_again(endpoint, held, event) : store(endpoint, held, event);
  } else if (held.group == event.group) {
    remove(endpoint, held, event);
  }
}

// Adds a tier to blocks that the endpoint already has.
void HeldBlocks::store_again(EndpointId endpoint, const Held& held, const CacheEvent& event) {
  const std::lock_guard lock(table_);
  for (const std::uint64_t block : event.blocks)
    if (const Name& known = held.names[held.names.find(block)]; known.used())
      index_.store(endpoint, known.key, event.tier);
}

void HeldBlocks::store(EndpointId endpoint, Held& held, const CacheEvent& event) {
  if (event.block_size <= 0 || event.block_size > kBlockSizeMax) return;
  const bool first = index_.entries() == 0;  // the first event defines the block size
  if (!first && event.block_size != block_size_) return;
  const auto size = static_cast<std::size_t>(event.block_size);
  if (event.tokens.size() / size < event.blocks.size()) return;
  for (const std::uint64_t block : event.blocks) held.names.prefetch(block);
  PrefixKey key = first_key(event.adapter, event.salt);
  if (event.parent) {
    const Name& parent = held.names[held.names.find(*event.parent)];
    if (!parent.used()) return;
    key = parent.key;
  }
  held.group = event.group;
  event_keys_.clear();
  for (std::size_t i = 0; i < event.blocks.size(); ++i) {
    key = next_key(key, std::span(event.tokens).subspan(i * size, size));
    event_keys_.push_back(key);
  }
  index_.prefetch(event_keys_);
  for (std::size_t i = 0; i < event_keys_.size(); ++i)
    if (!set_name(held, event.blocks[i], event_keys_[i])) event_keys_.resize(i);
  const std::lock_guard lock(table_);
  if (first) block_size_ = static_cast<int>(event.block_size);
  for (const PrefixKey stored : event_keys_) index_.store(endpoint, stored, event.tier);
  if (event_keys_.empty()) return;
  if (endpoint >= reports_.size()) reports_.resize(endpoint + std::size_t{1});
  reports_[endpoint] = true;
}

// Returns false if the endpoint has blocks_max blocks, or if the key is 0, which marks an empty slot.
bool HeldBlocks::set_name(Held& held, std::uint64_t hash, PrefixKey key) const {
  if (key == 0) return false;
  const std::size_t at = held.names.find(hash);
  if (held.names[at].used()) {
    held.names[at].key = key;
    return true;
  }
  if (held.names.used() == blocks_max_) return false;
  held.names.insert(at, {hash, key});
  return true;
}

void HeldBlocks::remove(EndpointId endpoint, Held& held, const CacheEvent& event) {
  event_keys_.clear();
  removed_names_.clear();
  for (const std::uint64_t block : event.blocks) held.names.prefetch(block);
  for (const std::uint64_t block : event.blocks) {
    const Name& known = held.names[held.names.find(block)];
    if (!known.used()) continue;
    removed_names_.push_back(block);
    event_keys_.push_back(known.key);
  }
  index_.prefetch(event_keys_);
  const std::lock_guard lock(table_);
  for (std::size_t i = 0; i < event_keys_.size(); ++i) {
    index_.remove(endpoint, event_keys_[i], event.tier);
    if (index_.holds(endpoint, event_keys_[i])) continue;
    // The event may contain a block twice.
    if (const std::size_t at = held.names.find(removed_names_[i]); held.names[at].used())
      held.names.erase(at);
  }
}

void HeldBlocks::clear(EndpointId endpoint) {
  const std::lock_guard writer(writers_);
  lose(endpoint);
}

void HeldBlocks::lose(EndpointId endpoint) {
  clear_held(endpoint);
  const std::lock_guard lock(table_);
  if (endpoint < reports_.size()) reports_[endpoint] = false;
}

// Removes blocks in small batches, so that readers do not wait long.
void HeldBlocks::clear_held(EndpointId endpoint) {
  if (endpoint >= held_.size()) return;
  const Held removed = std::exchange(held_[endpoint], {});
  for (std::span<const Name> left = removed.names.slots(); !left.empty();) {
    const auto some = left.first(std::min(left.size(), kAtOnce));
    left = left.subspan(some.size());
    const std::lock_guard lock(table_);
    for (const Name& name : some)
      if (name.used())
        for (const Tier tier : kTiers) index_.remove(endpoint, name.key, tier);
  }
}

std::optional<HeldDump> HeldBlocks::dump(EndpointId endpoint) const {
  const std::lock_guard writer(writers_);  // blocks other writers, but not readers
  if (endpoint >= held_.size() || !held_[endpoint].group) return std::nullopt;
  const Held& held = held_[endpoint];
  HeldDump dump{.block_size = block_size_, .group = *held.group};
  dump.blocks.reserve(held.names.used());
  for (const Name& name : held.names.slots())
    if (name.used()) dump.blocks.push_back({name.hash, name.key, index_.tiers(endpoint, name.key)});
  return dump;
}

bool HeldBlocks::restore(EndpointId endpoint, const HeldDump& dump) {
  const std::lock_guard writer(writers_);
  clear_held(endpoint);
  const bool first = index_.entries() == 0;
  if (dump.block_size > kBlockSizeMax || (!first && dump.block_size != block_size_)) return false;
  if (endpoint >= held_.size()) held_.resize(endpoint + std::size_t{1});
  Held& held = held_[endpoint];
  held.group = dump.group;
  const std::size_t count = std::min(dump.blocks.size(), blocks_max_);
  for (std::size_t i = 0; i < count; ++i) set_name(held, dump.blocks[i].name, dump.blocks[i].key);
  for (std::size_t i = 0; i < count;) {
    const std::lock_guard lock(table_);
    block_size_ = dump.block_size;
    if (endpoint >= reports_.size()) reports_.resize(endpoint + std::size_t{1});
    reports_[endpoint] = true;
    for (const std::size_t end = std::min(i + kAtOnce, count); i < end; ++i)
      for (const Tier tier : kTiers)
        if (dump.blocks[i].tiers >> static_cast<unsigned>(tier) & 1)
          index_.store(endpoint, dump.blocks[i].key, tier);
  }
  return true;
}

IndexSize HeldBlocks::size() const {
  const std::lock_guard writer(writers_);
  IndexSize size;
  for (const Held& held : held_) size.blocks += static_cast<std::int64_t>(held.names.used());
  size.reporting = std::ranges::count(reports_, true);
  return size;
}

std::size_t HeldBlocks::blocks(EndpointId endpoint) const {
  const std::lock_guard writer(writers_);
  return endpoint < held_.size() ? held_[endpoint].names.used() : 0;
}

}  // namespace octavo::fleet
