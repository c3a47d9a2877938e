// The endpoint that each key stays with, for the last used keys, at most keys_max.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class StickyKeys {
 public:
  std::int64_t idle_max_us = std::int64_t{4} * 3600 * 1'000'000;
  std::int64_t keys_max = 1 << 20;  // more: the least recently used key is forgotten

  EndpointId find(std::string_view key) const;  // kNoEndpoint if unknown
  void put(std::string_view key, EndpointId endpoint, std::int64_t now_us);
  void forget(EndpointId endpoint);
  void expire(std::int64_t now_us);

 private:
  struct Home {
    std::string key;
    EndpointId endpoint;
    std::int64_t used_us;
  };

  void drop_last();

  std::list<Home> recent_;  // the last used first
  std::unordered_map<std::string, std::list<Home>::iterator> homes_;
};

}  // namespace octavo::fleet
