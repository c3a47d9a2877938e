// Remembers which engine has the blocks of each session, with several engines. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "request/session.h"

namespace octavo::remote {

class SessionPlaces {
 public:
  // Maximum number of sessions. The least recently used one is forgotten first.
  static constexpr std::size_t kSessionsMax = 65'536;

  std::optional<std::size_t> find(const SessionKey& key) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) return std::nullopt;
    order_.splice(order_.end(), order_, found->second.order);
    return found->second.engine;
  }
  void set(const SessionKey& key, std::size_t engine) {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(key); found != places_.end()) {
      found->second.engine = engine;
      order_.splice(order_.end(), order_, found->second.order);
      return;
    }
    if (places_.size() >= kSessionsMax) {
      places_.erase(order_.front());
      order_.pop_front();
    }
    places_[key] = {engine, order_.insert(order_.end(), key)};
  }

 private:
  struct Place {
    std::size_t engine = 0;
    std::list<SessionKey>::iterator order;
  };

  std::mutex mutex_;
  std::map<SessionKey, Place> places_;
  std::list<SessionKey> order_;  // least recently used first
};

}  // namespace octavo::remote
