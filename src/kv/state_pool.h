// Slots for the recurrent states of running sequences, as numbers.
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

  // A slot must be free. It may hold the state of another sequence that a step in flight still computes:
  // steps run in order, and a new sequence starts from zeros, so this does no harm.
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
