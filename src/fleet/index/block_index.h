// Hash table from a block's prefix key to the endpoints that have the block.
// A key covers its block and all blocks before it. So the length of an endpoint's cached prefix needs few
// lookups: every 32nd block, and single blocks only where the holders differ (the idea of NVIDIA Dynamo's
// positional indexer). The method assumes that an endpoint with a block also has the blocks before it, as
// with engines that evict a prefix from its end. Otherwise the overlap is overestimated: the choice of the
// endpoint is worse, but outputs stay correct.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleet/index/overlap.h"
#include "fleet/index/prefix_keys.h"
#include "fleet/index/slot_table.h"

namespace octavo::fleet {

class BlockIndex {
 public:
  // entries_max: maximum number of (block, endpoint) pairs. store() refuses further pairs.
  explicit BlockIndex(std::size_t entries_max);

  // Stores a block, or adds a tier to a stored block. Returns false if the index is full.
  bool store(EndpointId endpoint, PrefixKey key, Tier tier = Tier::device);
  // Returns false if the block was not stored.
  bool remove(EndpointId endpoint, PrefixKey key, Tier tier = Tier::device);
  // Removes all blocks of an endpoint, in time linear in the size of the index.
  void clear(EndpointId endpoint);

  // Loads the entries of these keys into the processor's cache before store(), remove() or match(). So the
  // cache misses of many keys overlap; most of an event's time is cache misses.
  void prefetch(std::span<const PrefixKey> keys) const { prefetch(keys, 0, 1); }

  // Replaces all fields of `overlap` except block_size.
  void match(std::span<const PrefixKey> keys, Overlap& overlap) const;
  bool holds(EndpointId endpoint, PrefixKey key) const { return tiers(endpoint, key) != 0; }
  // Returns the tiers in which the endpoint has the block, as bits 1 << Tier.
  std::uint8_t tiers(EndpointId endpoint, PrefixKey key) const;

  std::size_t entries() const { return entries_; }
  std::size_t keys() const { return slots_.used(); }
  std::size_t bytes() const;

 private:
  // An endpoint that has the block, and its tiers as bits.
  struct Holder {
    EndpointId endpoint = kNoEndpoint;
    std::uint32_t tiers = 0;
    bool operator==(const Holder&) const = default;
  };
  // Most blocks are at one endpoint, which the slot contains. Several endpoints are in a list, sorted by id.
  struct Slot {
    std::uint64_t id() const { return key; }
    bool used() const { return first != 0; }

    PrefixKey key = 0;
    std::uint32_t first = 0;  // the only endpoint, as endpoint << 3 | tiers; 0: the slot is empty
    std::uint32_t list = 0;   // index in lists_ if several endpoints have the block; otherwise 0
  };

  static Holder unpacked(std::uint32_t packed) { return {packed >> 3, packed & 7}; }
  static std::uint32_t packed(Holder holder) { return holder.endpoint << 3 | holder.tiers; }

  void prefetch(std::span<const PrefixKey> keys, std::size_t first, std::size_t step) const;
  std::span<const std::uint32_t> holders(const Slot& slot) const;
  std::uint32_t* entry(Slot& slot, EndpointId endpoint);  // null: the endpoint does not have the block
  bool same_holders(const Slot& a, const Slot& b) const;
  void add_holder(Slot& slot, std::uint32_t holder);
  void drop(std::size_t place, EndpointId endpoint);

  std::size_t entries_max_;
  std::size_t entries_ = 0;
  SlotTable<Slot> slots_;
  std::vector<std::vector<std::uint32_t>> lists_;  // [0] is unused
  std::vector<std::uint32_t> free_lists_;
};

}  // namespace octavo::fleet
