// Which endpoint holds which prefixes, as the engines report it: exact if their events are complete.
//
// Keys are made here from the tokens that events carry; an engine's own names of blocks only say which block
// follows or goes, so engines with different hashes and seeds share one index.
//
// Safe from any thread. Writers hash tokens while others read; readers wait only while the blocks of one
// event are put into the table.
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
  // blocks_max: limit per endpoint; further blocks are not remembered.
  explicit HeldBlocks(std::size_t blocks_max);

  // Skips blocks that it cannot use: those after an unknown one, groups of layers other than the
  // endpoint's first that sees all tokens, blocks of another size than those in the index.
  void apply(EndpointId endpoint, const CacheEvent& event);
  void clear(EndpointId endpoint);

  // The blocks that an endpoint holds now, without a position; nullopt: it has reported none. Writers wait.
  std::optional<HeldDump> dump(EndpointId endpoint) const;
  // Replaces the blocks of an endpoint by the dump's, up to blocks_max. False if the dump's block size
  // differs from that of the other endpoints; the endpoint has no blocks then.
  bool restore(EndpointId endpoint, const HeldDump& dump);

  // A consistent view: the table does not change while a Reading exists. One thread only.
  class Reading {
   public:
    explicit Reading(const HeldBlocks& held) : held_(held), lock_(held.table_) {}
    void match(std::span<const PrefixKey> keys, Overlap& overlap) const { held_.index_.match(keys, overlap); }
    // Whether the endpoint has reported a block since it was last cleared.
    bool tells(EndpointId endpoint) const { return endpoint < held_.tells_.size() && held_.tells_[endpoint]; }
    // Tokens of a block; 0 until an endpoint has reported a block.
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
    boost::unordered_flat_map<std::uint64_t, PrefixKey> keys = {};  // by the engine's names
    std::optional<std::int64_t> group = {};
  };

  void store(EndpointId endpoint, Held& held, const CacheEvent& event);
  void store_again(EndpointId endpoint, const Held& held, const CacheEvent& event);
  void remove(EndpointId endpoint, Held& held, const CacheEvent& event);
  void clear_held(EndpointId endpoint);
  void lose(EndpointId endpoint);  // and the endpoint reports no more

  std::size_t blocks_max_;
  mutable std::mutex writers_;       // one at a time; of held_, event_keys_ and gone_names_
  mutable std::shared_mutex table_;  // of the rest, which only the writer changes
  std::vector<Held> held_;           // [EndpointId]
  std::vector<PrefixKey> event_keys_;  // of the event at hand
  std::vector<std::uint64_t>
      gone_names_;  // the engine's names of removed blocks that are known; of event_keys_
  int block_size_ = 0;
  BlockIndex index_;
  std::vector<bool> tells_;  // [EndpointId]
};

}  // namespace octavo::fleet
