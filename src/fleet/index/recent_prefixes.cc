#include "fleet/index/recent_prefixes.h"

#include <limits>
#include <ranges>

namespace octavo::fleet {

RecentPrefixes::RecentPrefixes(std::size_t blocks_max, std::int64_t ttl_us)
    : blocks_max_(blocks_max), ttl_us_(ttl_us), index_(std::numeric_limits<std::size_t>::max()) {}

RecentPrefixes::History& RecentPrefixes::history(EndpointId endpoint) {
  while (endpoint >= histories_.size()) histories_.push_back({.blocks_max = blocks_max_});
  return histories_[endpoint];
}

void RecentPrefixes::sent(EndpointId endpoint, std::span<const PrefixKey> keys, std::int64_t now_us) {
  History& h = history(endpoint);
  if (keys.size() > h.blocks_max) keys = keys.first(h.blocks_max);
  // Touches the last block first, so that the end of the prefix is dropped before its beginning.
  for (const PrefixKey key : std::views::reverse(keys)) touch(endpoint, h, key, now_us);
}

void RecentPrefixes::touch(EndpointId endpoint, History& h, PrefixKey key, std::int64_t now_us) {
  Index index = 0;
  if (const auto found = h.index_of.find(key); found != h.index_of.end()) {
    index = found->second;
    h.blocks[h.blocks[index].older].newer = h.blocks[index].newer;
    h.blocks[h.blocks[index].newer].older = h.blocks[index].older;
  } else {
    if (h.index_of.size() >= h.blocks_max) forget_oldest(endpoint, h);
    if (h.free.empty()) {
      h.free.push_back(static_cast<Index>(h.blocks.size()));
      h.blocks.emplace_back();
    }
    index = h.free.back();
    h.free.pop_back();
    h.index_of.emplace(key, index);
    index_.store(endpoint, key);
  }
  const Index newest = h.blocks[0].older;
  h.blocks[index] = {.key = key, .sent_us = now_us, .older = newest, .newer = 0};
  h.blocks[newest].newer = index;
  h.blocks[0].older = index;
}

void RecentPrefixes::forget_oldest(EndpointId endpoint, History& h) {
  const Index oldest = h.blocks[0].newer;
  const Block block = h.blocks[oldest];
  h.blocks[0].newer = block.newer;
  h.blocks[block.newer].older = 0;
  h.free.push_back(oldest);
  h.index_of.erase(block.key);
  index_.remove(endpoint, block.key);
}

void RecentPrefixes::limit(EndpointId endpoint, std::size_t blocks_max) {
  History& h = history(endpoint);
  h.blocks_max = blocks_max;
  while (h.index_of.size() > blocks_max) forget_oldest(endpoint, h);
}

void RecentPrefixes::expire(std::int64_t now_us) {
  if (ttl_us_ == 0) return;
  for (EndpointId endpoint = 0; endpoint < histories_.size(); ++endpoint) {
    History& h = histories_[endpoint];
    while (!h.index_of.empty() && h.blocks[h.blocks[0].newer].sent_us + ttl_us_ <= now_us)
      forget_oldest(endpoint, h);
  }
}

void RecentPrefixes::clear(EndpointId endpoint) {
  if (endpoint >= histories_.size()) return;
  for (const auto& [key, index] : histories_[endpoint].index_of) index_.remove(endpoint, key);
  histories_[endpoint] = {.blocks_max = blocks_max_};
}

void RecentPrefixes::clear() {
  for (EndpointId endpoint = 0; endpoint < histories_.size(); ++endpoint) clear(endpoint);
}

std::size_t RecentPrefixes::blocks() const {
  std::size_t count = 0;
  for (const History& history : histories_) count += history.index_of.size();
  return count;
}

std::size_t RecentPrefixes::blocks(EndpointId endpoint) const {
  return endpoint < histories_.size() ? histories_[endpoint].index_of.size() : 0;
}

}  // namespace octavo::fleet
