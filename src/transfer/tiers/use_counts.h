// Counts for each block how many requests used it, so that a tier stores only blocks that are used
// repeatedly (store_threshold).
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
  // most: number of blocks with a count. The oldest counts are dropped.
  explicit UseCounts(std::size_t most) : most_(most) {}

  // If the same request was the last one to use a block, the block's count does not grow. So the n answers of
  // one request usually count once.
  void count(RequestId request, std::span<const Hash128> keys) {
    for (const Hash128& key : keys) {
      const auto [found, is_new] = counts_.try_emplace(key);
      Uses& uses = found->second;
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
    const auto found = counts_.find(key);
    return found != counts_.end() ? found->second.count : 0;
  }

 private:
  struct Uses {
    int count = 0;
    RequestId last = 0;  // request that used the block last
  };

  std::size_t most_;
  std::unordered_map<Hash128, Uses, HashOfHash> counts_;
  std::deque<Hash128> order_;
};

}  // namespace octavo
