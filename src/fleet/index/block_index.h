// Hash table from a block's prefix key to the endpoints that have the block. HeldBlocks and RecentPrefixes
// use it to find the cached part of a prompt.
//
// A block's key depends on all earlier tokens of the prompt. So a lookup of the longest cached prefix reads
// only every 32nd block, and reads single blocks where the list of endpoints changes (as in NVIDIA Dynamo's
// positional indexer). The index assumes that an endpoint that has a block also has all earlier blocks. This
// holds for engines that evict a prefix from its end. If the assumption fails, the router overestimates the
// cached prefix and may choose a slower endpoint. Outputs stay correct.
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
  // `entries_max` is the maximum number of (block, endpoint) pairs. store() refuses to add more.
  explicit BlockIndex(std::size_t entries_max);

  // Stores a block, or adds a tier to a stored block. Returns false if the index is full.
  bool store(EndpointId endpoint, PrefixKey key, Tier tier = Tier::device);
  bool remove(EndpointId endpoint, PrefixKey key, Tier tier = Tier::device);
  // Removes all blocks of an endpoint, in time linear in the size of the index.
  void clear(EndpointId endpoint);

  // Loads the entries of the keys into the CPU cache. Call it before store(), remove() or match() with many
  // keys, so that their cache misses overlap. Applying an event spends most of its time on cache misses.
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
  // An endpoint that has the block. `tiers` has the bit 1 << Tier for each tier.
  struct Holder {
    EndpointId endpoint = kNoEndpoint;
    std::uint32_t tiers = 0;
    bool operator==(const Holder&) const = default;
  };
  // Most blocks are at one endpoint, which `first` contains. For a block at several endpoints, lists_ has a
  // list of them, sorted by endpoint id.
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
  void drop(std::size_t slot_index, EndpointId endpoint);

  std::size_t entries_max_;
  std::size_t entries_ = 0;
  SlotTable<Slot> slots_;
  std::vector<std::vector<std::uint32_t>> lists_;  // [0] is unused
  std::vector<std::uint32_t> free_lists_;
};

}  // namespace octavo::fleet
