// Slots for the saved states of recurrent layers. find() looks up a state by the content of the prefix. A
// state is valid for exactly one prefix length, so a cached prefix is usable only at lengths at which a
// state was saved, as in vLLM's aligned Mamba cache.
//
// The constructor allocates all memory. find() is O(1). take() scans all slots, but it runs only once per
// saved state.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_pool.h"
#include "kv/state_pool.h"

namespace octavo {

// Is notified when saved states change. Calls come from the thread that uses SavedStates.
class StateObserver {
 public:
  virtual void state_kept(int slot, PrefixId prefix) = 0;
  virtual void state_used(int slot) = 0;
  virtual void state_removed(int slot) = 0;  // called before the slot is written again

 protected:
  ~StateObserver() = default;
};

class SavedStates {
 public:
  // The slots are first .. first + count - 1.
  SavedStates(int first, int count);

  // The observer must outlive this object.
  void observe(StateObserver& observer) { observer_ = &observer; }
  // After a restart: sets the prefix of the state that an empty slot had in the earlier process, and marks
  // the state as the most recently used one.
  void restore(int slot, PrefixId prefix);

  int count() const { return static_cast<int>(states_.size()); }
  int writing() const { return writing_; }  // number of slots between take() and keep() or give_back()

  int find(PrefixId prefix) const;

  void touch(int slot);

  // Adds a reader of the state. The slot is not reused until unpin() was called once for each pin().
  void pin(int slot) { ++at(slot).pins; }
  void unpin(int slot);

  // Returns a slot to write: an empty slot or, if all slots have states, the least recently used one, whose
  // state is lost. Returns kNoState if all slots are being written or read.
  int take();

  // Called when the slot is written. find() then returns the slot. If another slot has a state of the same
  // prefix, that state is removed.
  void keep(int slot, PrefixId prefix);
  // Frees a slot that take() returned, without a state.
  void give_back(int slot);

  // Removes all states except those being written. A state with readers stays in its slot until the last
  // unpin(), but find() does not return it.
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
  std::vector<int> buckets_;  // first slot of each hash bucket; the size is a power of two
  StateObserver* observer_ = nullptr;
};

}  // namespace octavo
