// A rule without calls, as a transition table. Inside a string, most tokens of a vocabulary are possible; a
// table makes the walk through the trie fast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "grammar/character_kinds.h"
#include "grammar/state_mask.h"
#include "grammar/tables.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

class DenseRule {
 public:
  // Returns nullopt if the rule has calls or tokens, or if its automaton is nondeterministic or too large.
  // The rule has the states [first, end).
  static std::optional<DenseRule> make(const Tables& tables, StateId first, StateId end);

  // Returns whether no text of the rule is empty or the beginning of another one. Then repetitions can be
  // read in only one way.
  bool prefix_free() const { return prefix_free_; }

  // Returns the token mask of a state, or nullopt if it needs more than `most` trie nodes.
  std::optional<StateMask> mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                std::size_t most) const;

  // Returns the state to which nearly every byte leads, from `state` and from itself; nullopt if it does
  // not exist. Example: the inside of a string, after excluded names.
  std::optional<StateId> hub(const Tables& tables, StateId state) const;

  // Returns the number of bytes, at most `bytes_max`, for which two states are alike: both accept the same
  // continuations of this length, and can end at the same positions after the first byte. If the search is
  // long, the result can be too small. Adds the number of examined nodes to `cost`, and stops when it
  // exceeds `most`.
  std::size_t alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most, std::size_t& cost) const;

  // Returns the mask of a state as a difference from the mask of `other`. Examines only texts for which the
  // states differ. These texts have at least `alike` bytes.
  std::optional<StateMask> mask_near(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                     StateId other, std::shared_ptr<const StateMask> of_other,
                                     std::size_t alike, std::size_t most) const;

  // Returns the mask of unbounded repetitions of the rule, with the number of repetitions after each token
  // and open node. The rule must be prefix-free.
  std::optional<StateMask> repeated(const Tables& tables, const Vocabulary& vocabulary, StateId start,
                                    std::size_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  StateId first_ = 0;
  int classes_ = 0;
  // The kinds whose characters all lead from a state to the state `to`, without passing the rule's end.
  struct Onward {
    std::uint32_t to = kNowhere;
    KindSet kinds = 0;
  };
  Onward onward(const Tables& tables, std::uint32_t state) const;
  std::uint32_t next(const Tables& tables, std::uint32_t state, std::uint8_t byte) const {
    return next_[state * static_cast<std::size_t>(classes_) + tables.byte_class[byte]];
  }

  std::vector<std::uint32_t> next_;  // index: [state - first][byte class]
  std::vector<ByteSet> bytes_;       // bytes that can follow, by state
  std::vector<bool> accepting_, ends_;
  bool prefix_free_ = false;
};

// Returns the mask of `min` to `max` repetitions, derived from the mask of unbounded repetitions.
StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words);

}  // namespace octavo::grammar
