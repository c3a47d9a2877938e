// A rule without calls, as a table. Most tokens of a vocabulary are possible inside a string; a table walks
// the trie fast in this case.
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
  // nullopt: the rule has calls or tokens, or its automaton is nondeterministic or too large. The rule has
  // the states [first, end).
  static std::optional<DenseRule> make(const Tables& tables, StateId first, StateId end);

  // No text of the rule is empty or the beginning of another one, so repetitions can be read in only one way.
  bool prefix_free() const { return prefix_free_; }

  // The token mask of a state; nullopt if it needs more than `most` trie nodes.
  std::optional<StateMask> mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                std::size_t most) const;

  // The state to which nearly every byte leads, from `state` and from itself. Example: the inside of a
  // string, after excluded names. nullopt: no such state.
  std::optional<StateId> hub(const Tables& tables, StateId state) const;

  // Number of bytes, at most `bytes_max`, for which two states are alike: both accept the same continuations
  // of this length, and can end at the same positions after the first byte. The result can be too small if
  // the search is long. Adds the number of examined nodes to `cost`, and stops when it exceeds `most`.
  std::size_t alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most, std::size_t& cost) const;

  // The mask of a state, as its difference from the mask of another state. Only texts on which the states
  // differ are examined; they have at least `alike` bytes.
  std::optional<StateMask> mask_near(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                     StateId other, std::shared_ptr<const StateMask> of_other,
                                     std::size_t alike, std::size_t most) const;

  // The mask of unbounded repetitions of the rule, with the number of repetitions after each token and open
  // node. The rule must be prefix-free.
  std::optional<StateMask> repeated(const Tables& tables, const Vocabulary& vocabulary, StateId start,
                                    std::size_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  StateId first_ = 0;
  int classes_ = 0;
  // The kinds of which every character leads from a state to state `to`, without the rule's end inside.
  struct Onward {
    std::uint32_t to = kNowhere;
    KindSet kinds = 0;
  };
  Onward onward(const Tables& tables, std::uint32_t state) const;
  std::uint32_t next(const Tables& tables, std::uint32_t state, std::uint8_t byte) const {
    return next_[state * static_cast<std::size_t>(classes_) + tables.byte_class[byte]];
  }

  std::vector<std::uint32_t> next_;  // [state - first][byte class]
  std::vector<ByteSet> bytes_;       // bytes that can come next
  std::vector<bool> accepting_, ends_;
  bool prefix_free_ = false;
};

// The mask of at least `min` and at most `max` repetitions, derived from the mask of unbounded repetitions.
StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words);

}  // namespace octavo::grammar
