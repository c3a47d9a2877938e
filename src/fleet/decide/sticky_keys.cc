#include "fleet/decide/sticky_keys.h"

#include <iterator>

namespace octavo::fleet {

EndpointId StickyKeys::find(std::string_view key) const {
  const auto found = homes_.find(std::string(key));
  return found != homes_.end() ? found->second->endpoint : kNoEndpoint;
}

void StickyKeys::put(std::string_view key, EndpointId endpoint, std::int64_t now_us) {
  if (const auto found = homes_.find(std::string(key)); found != homes_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    count(recent_.front().endpoint, -1);
    count(endpoint, 1);
    recent_.front().endpoint = endpoint;
    recent_.front().used_us = now_us;
    return;
  }
  recent_.push_front({std::string(key), endpoint, now_us});
  homes_.emplace(recent_.front().key, recent_.begin());
  count(endpoint, 1);
  if (std::ssize(recent_) > keys_max) drop(std::prev(recent_.end()));
}

void StickyKeys::forget(EndpointId endpoint) {
  for (auto it = recent_.begin(); it != recent_.end();) {
    const auto next = std::next(it);
    if (it->endpoint == endpoint) drop(it);
    it = next;
  }
}

void StickyKeys::forget(std::string_view key) {
  if (const auto found = homes_.find(std::string(key)); found != homes_.end()) drop(found->second);
}

void StickyKeys::expire(std::int64_t now_us) {
  while (!recent_.empty() && now_us - recent_.back().used_us > idle_max_us) drop(std::prev(recent_.end()));
}

void StickyKeys::drop(Recent::iterator home) {
  count(home->endpoint, -1);
  homes_.erase(home->key);
  recent_.erase(home);
}

void StickyKeys::count(EndpointId endpoint, int by) {
  if (endpoint >= counts_.size()) counts_.resize(endpoint + std::size_t{1});
  counts_[endpoint] += by;
}

}  // namespace octavo::fleet
