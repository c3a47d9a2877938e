// Remembers the endpoint of each routing key or session, for the most recently used keys.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class StickyKeys {
 public:
  std::int64_t idle_max_us = std::int64_t{4} * 3600 * 1'000'000;
  std::int64_t keys_max = 1 << 20;  // above the limit, the least recently used key is dropped

  EndpointId find(std::string_view key) const;  // kNoEndpoint: unknown key
  std::int64_t keys_of(EndpointId endpoint) const {
    return endpoint < counts_.size() ? counts_[endpoint] : 0;
  }
  void put(std::string_view key, EndpointId endpoint, std::int64_t now_us);
  void forget(EndpointId endpoint);
  void forget(std::string_view key);
  void expire(std::int64_t now_us);

 private:
  struct Home {
    std::string key;
    EndpointId endpoint;
    std::int64_t used_us;
  };

  using Recent = std::list<Home>;

  void drop(Recent::iterator home);
  void count(EndpointId endpoint, int by);

  Recent recent_;  // most recently used first
  std::unordered_map<std::string, Recent::iterator> homes_;
  std::vector<std::int64_t> counts_;  // [EndpointId] number of keys
};

}  // namespace octavo::fleet
