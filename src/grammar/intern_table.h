// Hash table with open addressing that gives equal values the same id (hash-consing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::grammar {

class InternTable {
 public:
  InternTable() { clear(); }
  void clear() {
    slots_.assign(kSlotsMin, {});
    count_ = 0;
  }

  // Returns the id with this hash for which same(id) is true. If no id matches, adds and returns the id from
  // make().
  template <class Same, class Make>
  std::uint32_t find_or_add(std::uint64_t hash, Same&& same, Make&& make) {
    if (count_ * 2 >= slots_.size()) grow();
    const auto tag = static_cast<std::uint32_t>(hash >> 32) | 1u;
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.tag == 0) {
        ++count_;
        const std::uint32_t id = make();
        slots_[i] = {tag, id, hash};
        return id;
      }
      if (slot.hash == hash && same(slot.id)) return slot.id;
    }
  }
  std::size_t byte_size() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint32_t tag = 0;  // 0: empty slot
    std::uint32_t id = 0;
    std::uint64_t hash = 0;
  };

  static constexpr std::size_t kSlotsMin = 64;

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.tag == 0) continue;
      std::size_t i = slot.hash & (slots_.size() - 1);
      while (slots_[i].tag != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace octavo::grammar
