// Slots of the saved states of recurrent layers. The number of slots is fixed; find() looks them up by the
// content of their prefix. A state belongs to exactly one length, so a cached prefix is usable only at
// lengths for which a state was saved, as in vLLM's aligned Mamba cache.
//
// The constructor allocates all memory. find() is O(1). take() scans all slots; it runs once per saved state.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_pool.h"
#include "kv/state_pool.h"

namespace octavo {

// Receives changes to saved states.
class StateObserver {
 public:
  virtual void state_kept(int slot, PrefixId prefix) = 0;  // see SavedStates::keep
  virtual void state_used(int slot) = 0;
  virtual void state_removed(int slot) = 0;  // before the slot is written again

 protected:
  ~StateObserver() = default;
};

class SavedStates {
 public:
  // Slots [first, first + count).
  SavedStates(int first, int count);

  // Notifies the observer from now on; it must outlive this object.
  void observe(StateObserver& observer) { observer_ = &observer; }
  // Gives an empty slot the state that it had in an earlier process, as the most recently used one.
  void restore(int slot, PrefixId prefix);

  int count() const { return static_cast<int>(states_.size()); }
  int writing() const {
    return writing_;
  }  // returns the number of slots between take() and keep() or
     // give_back()

  // Returns the slot of the state at the end of this prefix, or kNoState.
  int find(PrefixId prefix) const;

  // Marks the state as recently used.
  void touch(int slot);

  // Adds a reader: the state stays in its slot until unpin() has been called once for each pin().
  void pin(int slot) { ++at(slot).pins; }
  void unpin(int slot);

  // Returns a slot to write: an empty slot or, if all have states, the least recently used one, whose state
  // is lost. Returns kNoState if all slots are being written or read.
  int take();

  // Called when the slot is written: find() then returns its state. Another state of the same prefix is
  // removed.
  void keep(int slot, PrefixId prefix);
  // Frees a taken slot without a state.
  void give_back(int slot);

  // Removes all states except those being written. States with readers stay in their slots, but find() no
  // longer returns them.
  void reset();

 private:
  struct State {
    PrefixId prefix = kEmptyPrefix;  // kEmptyPrefix: no state
    bool writing = false;
    int pins = 0;
    std::uint64_t used = 0;
    int next_in_bucket = kNoState;
  };

  State& at(int slot) { return states_[static_cast<std::size_t>(slot - first_)]; }
  const State& at(int slot) const { return states_[static_cast<std::size_t>(slot - first_)]; }
  std::size_t bucket(PrefixId prefix) const { return prefix & (buckets_.size() - 1); }
  void forget(int slot);
  void insert(int slot, PrefixId prefix);

  int first_;
  int writing_ = 0;
  std::uint64_t now_ = 0;
  std::vector<State> states_;
  std::vector<int> buckets_;  // first slot of each bucket; size is a power of two
  StateObserver* observer_ = nullptr;
};

}  // namespace octavo
