// The KV cache of an engine: the pool of blocks, the cache groups that use the pool, and the saved states
// of recurrent layers.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kv/block_pool.h"
#include "kv/saved_states.h"

namespace octavo {

// A set of layers with the same attention window. A sequence has one block table for all layers of the set.
struct CacheGroup {
  int window = 0;  // number of tokens to which a position attends, including itself; 0: no limit
};

// Returns the index of the first block to which positions from `position` on attend.
constexpr int first_needed_block(int window, int block_size, int position) {
  return window == 0 || position < window ? 0 : (position - window + 1) / block_size;
}

struct KvCache {
  KvCache(int num_blocks, int block_size, std::vector<CacheGroup> cache_groups)
      : groups(std::move(cache_groups)), pool(num_blocks, block_size, static_cast<int>(groups.size())) {}

  int group_count() const { return static_cast<int>(groups.size()); }
  const CacheGroup& group(int g) const { return groups[static_cast<std::size_t>(g)]; }

  int blocks_for(int tokens) const { return (tokens + pool.block_size() - 1) / pool.block_size(); }

  int first_needed(int g, int position) const {
    return first_needed_block(group(g).window, pool.block_size(), position);
  }

  // Returns the maximum number of blocks in group g that one sequence has at the same time. `tokens` is the
  // maximum length of the sequence. `ahead` is the maximum number of its tokens that are planned but not
  // computed yet.
  int peak_blocks(int g, int tokens, int ahead) const {
    const int window = group(g).window;
    const int all = blocks_for(tokens);
    return window == 0 || window + ahead >= tokens ? all : std::min(all, blocks_for(window + ahead) + 1);
  }

  int peak_blocks(int tokens, int ahead) const {
    int sum = 0;
    for (int g = 0; g < group_count(); ++g) sum += peak_blocks(g, tokens, ahead);
    return sum;
  }

  std::vector<CacheGroup> groups;
  BlockPool pool;
  // nullopt: the model has no recurrent layers, or their states are not saved
  std::optional<SavedStates> saved_states = {};
};

}  // namespace octavo
