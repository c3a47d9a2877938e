// The blocks that each endpoint has, from the engines' events. It is exact if the events are complete.
//
// Keys are computed here from the tokens in the events. The engines' own hashes only identify the previous
// block or the removed block, so engines with different hashes and seeds share one index.
//
// Safe from any thread. Writers hash tokens while others read. Readers wait only while the blocks of one
// event are stored.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "fleet/index/block_index.h"
#include "fleet/index/cache_event.h"
#include "fleet/index/held_dump.h"
#include "fleet/index/index_size.h"

namespace octavo::fleet {

class HeldBlocks {
 public:
  // blocks_max: limit for each endpoint; further blocks are ignored.
  explicit HeldBlocks(std::size_t blocks_max);

  // Applies an event. Ignores blocks that it cannot use: those after an unknown block, those of other sizes
  // than in the index, and those of other groups than the endpoint's first group whose layers use all tokens.
  void apply(EndpointId endpoint, const CacheEvent& event);
  void clear(EndpointId endpoint);

  // The current blocks of an endpoint, without a position; nullopt: it has reported none. Writers wait.
  std::optional<HeldDump> dump(EndpointId endpoint) const;
  // Replaces the endpoint's blocks with those of the dump, up to blocks_max. False: the dump's block size
  // differs from that of the other endpoints; then the endpoint has no blocks.
  bool restore(EndpointId endpoint, const HeldDump& dump);

  // A consistent view: the table does not change while a Reading exists. Not thread-safe.
  class Reading {
   public:
    explicit Reading(const HeldBlocks& held) : held_(held), lock_(held.table_) {}
    void match(std::span<const PrefixKey> keys, Overlap& overlap) const { held_.index_.match(keys, overlap); }
    // Whether the endpoint has reported a block since it was last cleared.
    bool tells(EndpointId endpoint) const { return endpoint < held_.tells_.size() && held_.tells_[endpoint]; }
    // Number of tokens of a block; 0 until an endpoint has reported a block.
    int block_size() const { return held_.block_size_; }

   private:
    const HeldBlocks& held_;
    const std::shared_lock<std::shared_mutex> lock_;
  };
  Reading read() const { return Reading(*this); }

  std::size_t blocks(EndpointId endpoint) const;
  IndexSize size() const;

 private:
  struct Held {
    boost::unordered_flat_map<std::uint64_t, PrefixKey> keys = {};  // keys by the engine's hashes
    std::optional<std::int64_t> group = {};
  };

  void store(EndpointId endpoint, Held& held, const CacheEvent& event);
  void store_again(EndpointId endpoint, const Held& held, const CacheEvent& event);
  void remove(EndpointId endpoint, Held& held, const CacheEvent& event);
  void clear_held(EndpointId endpoint);
  void lose(EndpointId endpoint);  // also marks the endpoint as not reporting

  std::size_t blocks_max_;
  mutable std::mutex writers_;       // allows one writer at a time; guards held_, event_keys_ and gone_names_
  mutable std::shared_mutex table_;  // guards the other members, which only the writer changes
  std::vector<Held> held_;           // [EndpointId]
  std::vector<PrefixKey> event_keys_;  // keys of the current event
  std::vector<std::uint64_t>
      gone_names_;  // the engine's hashes of removed blocks that are known; in the order of event_keys_
  int block_size_ = 0;
  BlockIndex index_;
  std::vector<bool> tells_;  // [EndpointId]
};

}  // namespace octavo::fleet
