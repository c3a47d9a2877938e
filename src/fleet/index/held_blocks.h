// Which endpoint holds which prefixes, as their engines tell it: exact as far as their events are complete.
//
// Keys are made here from the tokens that events carry; an engine's own names of blocks only say which block
// follows or goes, so engines with different hashes and seeds share one index.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "fleet/index/block_index.h"
#include "fleet/index/cache_event.h"

namespace octavo::fleet {

class HeldBlocks {
 public:
  // blocks_max: remembered of one endpoint; those that come beyond them are not.
  explicit HeldBlocks(std::size_t blocks_max);

  // What cannot be used is passed over: blocks after an unknown one, groups of layers other than the
  // endpoint's first that sees all tokens, blocks of another size than those in the index.
  void apply(EndpointId endpoint, const CacheEvent& event);
  void clear(EndpointId endpoint);

  void match(std::span<const PrefixKey> keys, Overlap& overlap) const { index_.match(keys, overlap); }
  std::size_t blocks(EndpointId endpoint) const;
  // Tokens of a block; 0: no block has been told of yet.
  int block_size() const { return block_size_; }

 private:
  struct Held {
    std::unordered_map<std::uint64_t, PrefixKey> keys = {};  // by the engine's names
    std::optional<std::int64_t> group = {};
  };

  void store(EndpointId endpoint, Held& held, const CacheEvent& event);
  void remove(EndpointId endpoint, Held& held, const CacheEvent& event);

  std::size_t blocks_max_;
  int block_size_ = 0;
  BlockIndex index_;
  std::vector<Held> held_;  // [EndpointId]
};

}  // namespace octavo::fleet
