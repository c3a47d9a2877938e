// Estimates the prefix caches of engines that send no KV cache events, from the prompts that each endpoint
// recently received.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "fleet/index/block_index.h"

namespace octavo::fleet {

class RecentPrefixes {
 public:
  // `blocks_max` is the maximum number of blocks of each endpoint. Above the limit, the least recently used
  // block is dropped. Blocks that no request uses for `ttl_us` are dropped, too (0: no limit).
  RecentPrefixes(std::size_t blocks_max, std::int64_t ttl_us);

  void sent(EndpointId endpoint, std::span<const PrefixKey> keys, std::int64_t now_us);
  // Sets the limit of one endpoint. Called when the endpoint's number of KV blocks is known.
  void limit(EndpointId endpoint, std::size_t blocks_max);
  void expire(std::int64_t now_us);
  void clear(EndpointId endpoint);
  void clear();

  void match(std::span<const PrefixKey> keys, Overlap& overlap) const { index_.match(keys, overlap); }
  std::size_t blocks(EndpointId endpoint) const;
  std::size_t blocks() const;

 private:
  using Index = std::uint32_t;
  struct Block {
    PrefixKey key = 0;
    std::int64_t sent_us = 0;
    Index older = 0;  // neighbour in the ring, which is ordered by sent_us; index 0 is the sentinel
    Index newer = 0;
  };
  struct History {
    std::size_t blocks_max = 0;
    std::vector<Block> blocks = std::vector<Block>(1);  // [0]: the sentinel; its `newer` is the oldest block
    std::vector<Index> free = {};
    std::unordered_map<PrefixKey, Index> index_of = {};
  };

  void touch(EndpointId endpoint, History& history, PrefixKey key, std::int64_t now_us);
  void forget_oldest(EndpointId endpoint, History& history);
  History& history(EndpointId endpoint);

  std::size_t blocks_max_;
  std::int64_t ttl_us_;
  BlockIndex index_;
  std::vector<History> histories_;  // [EndpointId]
};

}  // namespace octavo::fleet
