// Allocates slots for the recurrent states of running sequences.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"

namespace octavo {

inline constexpr int kNoState = -1;

class StatePool {
 public:
  explicit StatePool(int slots) {
    for (int slot = slots; slot-- > 0;) free_.push_back(slot);
  }

  int free() const { return static_cast<int>(free_.size()); }

  // Returns a free slot. There must be one. A step in flight may still write the state of an ended sequence
  // into the slot. That causes no error, because steps run in order and a new sequence starts from a state
  // whose values are 0.
  int take() {
    CHECK(!free_.empty(), "all states are taken");
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void give_back(int slot) { free_.push_back(slot); }

 private:
  std::vector<int> free_;
};

}  // namespace octavo
