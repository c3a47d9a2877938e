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
    recent_.front().endpoint = endpoint;
    recent_.front().used_us = now_us;
    return;
  }
  recent_.push_front({std::string(key), endpoint, now_us});
  homes_.emplace(recent_.front().key, recent_.begin());
  if (std::ssize(recent_) > keys_max) drop_last();
}

void StickyKeys::forget(EndpointId endpoint) {
  for (auto it = recent_.begin(); it != recent_.end();) {
    const auto next = std::next(it);
    if (it->endpoint == endpoint) {
      homes_.erase(it->key);
      recent_.erase(it);
    }
    it = next;
  }
}

void StickyKeys::expire(std::int64_t now_us) {
  while (!recent_.empty() && now_us - recent_.back().used_us > idle_max_us) drop_last();
}

void StickyKeys::drop_last() {
  homes_.erase(recent_.back().key);
  recent_.pop_back();
}

}  // namespace octavo::fleet
