// The blocks that each endpoint has cached, as the engines report them in KV cache events. The index is
// exact if no event is lost. Routing policies read it to prefer endpoints that have cached the prompt.
// The index computes keys from the tokens in the events. The engine's hashes only identify the parent block
// or the removed block, so engines with different hash functions and seeds share one index.
// Thread-safe. A writer hashes tokens without blocking readers. Readers wait only while a writer changes the
// table: for the blocks of one event, or for 64 blocks of clear() or restore().
#pragma once

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
#include "fleet/index/slot_table.h"

namespace octavo::fleet {

class HeldBlocks {
 public:
  // `blocks_max` is the maximum number of blocks of each endpoint. Further blocks are ignored.
  explicit HeldBlocks(std::size_t blocks_max);

  // Applies an event. Ignores a block if its parent is unknown, if its block size differs from the index's,
  // or if it belongs to a layer group other than the endpoint's first group with full attention.
  void apply(EndpointId endpoint, const CacheEvent& event);
  void clear(EndpointId endpoint);

  // Returns the endpoint's blocks, without a position in its event stream. Returns nullopt if the endpoint
  // has not reported any block. Other writers wait during the call, readers do not.
  std::optional<HeldDump> dump(EndpointId endpoint) const;
  // Replaces the endpoint's blocks by the blocks of the dump, up to blocks_max. If the dump's block size
  // differs from the index's, the endpoint loses its blocks and the call returns false.
  bool restore(EndpointId endpoint, const HeldDump& dump);

  // Read lock: the table does not change while a Reading exists. One Reading must not be shared by threads.
  class Reading {
   public:
    explicit Reading(const HeldBlocks& held) : held_(held), lock_(held.table_) {}
    void match(std::span<const PrefixKey> keys, Overlap& overlap) const { held_.index_.match(keys, overlap); }
    // Returns whether the endpoint has reported a block since it was last cleared.
    bool reports(EndpointId endpoint) const {
      return endpoint < held_.reports_.size() && held_.reports_[endpoint];
    }
    // Returns the tokens per block; 0 until an endpoint has reported a block.
    int block_size() const { return held_.block_size_; }

   private:
    const HeldBlocks& held_;
    const std::shared_lock<std::shared_mutex> lock_;
  };
  Reading read() const { return Reading(*this); }

  std::size_t blocks(EndpointId endpoint) const;
  IndexSize size() const;

 private:
  struct Name {
    std::uint64_t id() const { return hash; }
    bool used() const { return key != 0; }

    std::uint64_t hash = 0;
    PrefixKey key = 0;
  };
  struct Held {
    SlotTable<Name> names{16};  // maps the engine's hash of a block to its key
    std::optional<std::int64_t> group = {};
  };

  void store(EndpointId endpoint, Held& held, const CacheEvent& event);
  bool set_name(Held& held, std::uint64_t hash, PrefixKey key) const;
  void store_again(EndpointId endpoint, const Held& held, const CacheEvent& event);
  void remove(EndpointId endpoint, Held& held, const CacheEvent& event);
  void clear_held(EndpointId endpoint);
  void lose(EndpointId endpoint);  // removes the blocks, and marks the endpoint as not reporting

  std::size_t blocks_max_;
  // A writer holds this mutex for the whole call. It guards held_, event_keys_ and removed_names_.
  mutable std::mutex writers_;
  mutable std::shared_mutex table_;  // guards all other members, which readers use
  std::vector<Held> held_;           // [EndpointId]
  std::vector<PrefixKey> event_keys_;
  // the engine's hashes of the removed blocks, in the order of event_keys_
  std::vector<std::uint64_t> removed_names_;
  int block_size_ = 0;
  BlockIndex index_;
  std::vector<bool> reports_;  // [EndpointId]
};

}  // namespace octavo::fleet
