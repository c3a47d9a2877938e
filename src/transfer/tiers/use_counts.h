// Counts the prompts that contained each of the latest blocks.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>

#include "base/hash.h"
#include "request/request.h"

namespace octavo {

class UseCounts {
 public:
  // most: maximum number of blocks that have a count; the oldest counts are removed.
  explicit UseCounts(std::size_t most) : most_(most) {}

  // Counts a use of these blocks. Several answers of a request count once, unless another request with the
  // block is counted in between.
  void count(RequestId request, std::span<const Hash128> keys) {
    for (const Hash128& key : keys) {
      const auto [place, is_new] = counts_.try_emplace(key);
      Uses& uses = place->second;
      if (is_new || uses.last != request) ++uses.count;
      uses.last = request;
      if (!is_new) continue;
      order_.push_back(key);
      if (order_.size() <= most_) continue;
      counts_.erase(order_.front());
      order_.pop_front();
    }
  }
  int of(const Hash128& key) const {
    const auto place = counts_.find(key);
    return place != counts_.end() ? place->second.count : 0;
  }

 private:
  struct Uses {
    int count = 0;
    RequestId last = 0;  // id of the request that was counted last
  };

  std::size_t most_;
  std::unordered_map<Hash128, Uses, HashOfHash> counts_;
  std::deque<Hash128> order_;
};

}  // namespace octavo
