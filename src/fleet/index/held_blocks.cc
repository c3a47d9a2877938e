#include "fleet/index/held_blocks.h"

#include <limits>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kBlockSizeMax = 1 << 16;  // tokens

}  // namespace

HeldBlocks::HeldBlocks(std::size_t blocks_max)
    : blocks_max_(blocks_max), index_(std::numeric_limits<std::size_t>::max()) {}

void HeldBlocks::apply(EndpointId endpoint, const CacheEvent& event) {
  if (event.kind == CacheEvent::Kind::cleared) return clear(endpoint);
  if (endpoint >= held_.size()) held_.resize(endpoint + std::size_t{1});
  Held& held = held_[endpoint];
  if (event.kind == CacheEvent::Kind::stored) {
    store(endpoint, held, event);
  } else if (held.group == event.group) {
    remove(endpoint, held, event);
  }
}

void HeldBlocks::store(EndpointId endpoint, Held& held, const CacheEvent& event) {
  if (event.window || held.group.value_or(event.group) != event.group) return;
  if (event.tokens.empty()) {
    for (const std::uint64_t block : event.blocks)
      if (const auto known = held.keys.find(block); known != held.keys.end())
        index_.store(endpoint, known->second, event.tier);
    return;
  }
  if (event.block_size <= 0 || event.block_size > kBlockSizeMax) return;
  if (index_.entries() == 0) block_size_ = static_cast<int>(event.block_size);
  const auto size = static_cast<std::size_t>(block_size_);
  if (event.block_size != block_size_ || event.tokens.size() / size < event.blocks.size()) return;
  PrefixKey key = first_key(event.adapter, event.salt);
  if (event.parent) {
    const auto parent = held.keys.find(*event.parent);
    if (parent == held.keys.end()) return;
    key = parent->second;
  }
  held.group = event.group;
  for (std::size_t i = 0; i < event.blocks.size(); ++i) {
    key = next_key(key, std::span(event.tokens).subspan(i * size, size));
    if (held.keys.size() == blocks_max_ && !held.keys.contains(event.blocks[i])) return;
    held.keys[event.blocks[i]] = key;
    index_.store(endpoint, key, event.tier);
  }
}

void HeldBlocks::remove(EndpointId endpoint, Held& held, const CacheEvent& event) {
  for (const std::uint64_t block : event.blocks) {
    const auto known = held.keys.find(block);
    if (known == held.keys.end()) continue;
    index_.remove(endpoint, known->second, event.tier);
    if (!index_.holds(endpoint, known->second)) held.keys.erase(known);
  }
}

void HeldBlocks::clear(EndpointId endpoint) {
  if (endpoint >= held_.size()) return;
  for (const auto& [block, key] : held_[endpoint].keys)
    for (const Tier tier : {Tier::device, Tier::host, Tier::disk}) index_.remove(endpoint, key, tier);
  held_[endpoint] = {};
}

std::size_t HeldBlocks::blocks(EndpointId endpoint) const {
  return endpoint < held_.size() ? held_[endpoint].keys.size() : 0;
}

}  // namespace octavo::fleet
