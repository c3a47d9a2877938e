// States of recurrent layers kept behind prefixes, as numbers: a bounded pool of slots, each found by the
// content of its prefix. A state knows only the end of what was computed, so a prefix in the cache is of use
// just where one was kept, as in vLLM's aligned Mamba cache.
//
// Everything is allocated by the constructor. find() is O(1), take() walks all slots: it comes once for each
// state that is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/block_pool.h"
#include "kv/state_pool.h"

namespace octavo {

class SavedStates {
 public:
  // Slots [first, first + count).
  SavedStates(int first, int count);

  int count() const { return static_cast<int>(states_.size()); }
  int writing() const { return writing_; }  // taken, and neither kept nor given back yet

  // The slot of the state behind this prefix, or kNoState.
  int find(PrefixId prefix) const;

  // The state is of use to somebody now: others are lost first.
  void touch(int slot) { at(slot).used = ++now_; }

  // Somebody reads the state: it stays where it is until as many unpin() it.
  void pin(int slot) { ++at(slot).pins; }
  void unpin(int slot);

  // A slot to write to: a blank one, else that of the state least recently used, which is lost. kNoState: all
  // are being written or read.
  int take();

  // The slot was written, and its state is found from now on. A second state of one prefix is dropped.
  void keep(int slot, PrefixId prefix);
  // It was written in vain.
  void give_back(int slot);

  // Forgets every state that is not being written; those that are read stay where they are, and are not found.
  void reset();

 private:
  struct State {
    PrefixId prefix = kEmptyPrefix;  // kEmptyPrefix: blank
    bool writing = false;
    int pins = 0;
    std::uint64_t used = 0;  // when
    int next_in_bucket = kNoState;
  };

  State& at(int slot) { return states_[static_cast<std::size_t>(slot - first_)]; }
  const State& at(int slot) const { return states_[static_cast<std::size_t>(slot - first_)]; }
  std::size_t bucket(PrefixId prefix) const { return prefix & (buckets_.size() - 1); }
  void forget(int slot);

  int first_;
  int writing_ = 0;
  std::uint64_t now_ = 0;
  std::vector<State> states_;
  std::vector<int> buckets_;  // first slot of each; a power of two of them
};

}  // namespace octavo
