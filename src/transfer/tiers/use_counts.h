// The number of prompts that had each of the latest blocks.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>

#include "base/hash.h"

namespace octavo {

class UseCounts {
 public:
  // most: maximum number of blocks with a count; the oldest counts are dropped.
  explicit UseCounts(std::size_t most) : most_(most) {}

  void count(std::span<const Hash128> keys) {
    for (const Hash128& key : keys) {
      const auto [place, is_new] = counts_.try_emplace(key);
      ++place->second;
      if (!is_new) continue;
      order_.push_back(key);
      if (order_.size() <= most_) continue;
      counts_.erase(order_.front());
      order_.pop_front();
    }
  }
  int of(const Hash128& key) const {
    const auto place = counts_.find(key);
    return place != counts_.end() ? place->second : 0;
  }

 private:
  std::size_t most_;
  std::unordered_map<Hash128, int, HashOfHash> counts_;
  std::deque<Hash128> order_;
};

}  // namespace octavo
