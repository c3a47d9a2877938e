// Hash table with open addressing, for slots of a few bytes. A lookup costs one cache miss, and prefetch()
// lets the misses of several lookups overlap. BlockIndex and HeldBlocks use it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fleet/index/huge_pages.h"

namespace octavo::fleet {

// A Slot has id(), which returns the key as std::uint64_t, and used(), which is false for Slot().
template <class Slot>
class SlotTable {
 public:
  // `slots` is the initial number of slots, a power of two.
  explicit SlotTable(std::size_t slots) : slots_(slots), shift_(64 - std::countr_zero(slots)) {}

  std::size_t used() const { return used_; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }
  std::span<const Slot> slots() const { return slots_; }
  const Slot& operator[](std::size_t at) const { return slots_[at]; }
  Slot& operator[](std::size_t at) { return slots_[at]; }

  // Returns the slot at which a search for `id` begins.
  const Slot& home(std::uint64_t id) const { return slots_[home_of(id)]; }
  void prefetch(std::uint64_t id) const { __builtin_prefetch(&home(id)); }
  // Returns the index of the slot with `id`. If no slot has `id`, returns the empty slot to store it in.
  std::size_t find(std::uint64_t id) const {
    std::size_t at = home_of(id);
    while (slots_[at].used() && slots_[at].id() != id) at = (at + 1) & mask();
    return at;
  }
  // Stores a new slot at `at`, a result of find(). Doubles the table if more than 3/4 of the slots would be
  // used.
  void insert(std::size_t at, Slot slot) {
    if ((used_ + 1) * 4 > slots_.size() * 3) {
      grow();
      at = find(slot.id());
    }
    slots_[at] = std::move(slot);
    ++used_;
  }
  // Moves later slots back instead of leaving tombstones, so that lookups stay fast after many erasures.
  void erase(std::size_t hole) {
    --used_;
    for (std::size_t at = (hole + 1) & mask(); slots_[at].used(); at = (at + 1) & mask()) {
      const std::size_t start = home_of(slots_[at].id());
      if (((at - start) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
    slots_[hole] = {};
  }

 private:
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home_of(std::uint64_t id) const {
    return static_cast<std::size_t>(id * 0x9E3779B97F4A7C15U) >> shift_;
  }
  void grow() {
    std::vector<Slot, HugePages<Slot>> old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (Slot& slot : old)
      if (slot.used()) slots_[find(slot.id())] = std::move(slot);
  }

  std::vector<Slot, HugePages<Slot>> slots_;
  int shift_;
  std::size_t used_ = 0;
};

}  // namespace octavo::fleet
