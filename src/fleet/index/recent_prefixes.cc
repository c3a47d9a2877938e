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
  Place place = 0;
  if (const auto found = h.places.find(key); found != h.places.end()) {
    place = found->second;
    h.blocks[h.blocks[place].older].newer = h.blocks[place].newer;
    h.blocks[h.blocks[place].newer].older = h.blocks[place].older;
  } else {
    if (h.places.size() >= h.blocks_max) forget_oldest(endpoint, h);
    if (h.free.empty()) {
      h.free.push_back(static_cast<Place>(h.blocks.size()));
      h.blocks.emplace_back();
    }
    place = h.free.back();
    h.free.pop_back();
    h.places.emplace(key, place);
    index_.store(endpoint, key);
  }
  const Place newest = h.blocks[0].older;
  h.blocks[place] = {.key = key, .sent_us = now_us, .older = newest, .newer = 0};
  h.blocks[newest].newer = place;
  h.blocks[0].older = place;
}

void RecentPrefixes::forget_oldest(EndpointId endpoint, History& h) {
  const Place oldest = h.blocks[0].newer;
  const Block block = h.blocks[oldest];
  h.blocks[0].newer = block.newer;
  h.blocks[block.newer].older = 0;
  h.free.push_back(oldest);
  h.places.erase(block.key);
  index_.remove(endpoint, block.key);
}

void RecentPrefixes::limit(EndpointId endpoint, std::size_t blocks_max) {
  History& h = history(endpoint);
  h.blocks_max = blocks_max;
  while (h.places.size() > blocks_max) forget_oldest(endpoint, h);
}

void RecentPrefixes::expire(std::int64_t now_us) {
  if (ttl_us_ == 0) return;
  for (EndpointId endpoint = 0; endpoint < histories_.size(); ++endpoint) {
    History& h = histories_[endpoint];
    while (!h.places.empty() && h.blocks[h.blocks[0].newer].sent_us + ttl_us_ <= now_us)
      forget_oldest(endpoint, h);
  }
}

void RecentPrefixes::clear(EndpointId endpoint) {
  if (endpoint >= histories_.size()) return;
  for (const auto& [key, place] : histories_[endpoint].places) index_.remove(endpoint, key);
  histories_[endpoint] = {.blocks_max = blocks_max_};
}

void RecentPrefixes::clear() {
  for (EndpointId endpoint = 0; endpoint < histories_.size(); ++endpoint) clear(endpoint);
}

std::size_t RecentPrefixes::blocks() const {
  std::size_t count = 0;
  for (const History& history : histories_) count += history.places.size();
  return count;
}

std::size_t RecentPrefixes::blocks(EndpointId endpoint) const {
  return endpoint < histories_.size() ? histories_[endpoint].places.size() : 0;
}

}  // namespace octavo::fleet
