// Where recurrent layers keep the states of running sequences, as numbers: slots of one size.
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

  // One must be free. What it holds is of another sequence, perhaps one that a step in flight still computes:
  // steps follow each other, and a sequence begins with a state of zeros whatever is there.
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
