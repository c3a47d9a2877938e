// A rule without calls, as a table. Most of a vocabulary can be the inside of a string, and such a table is
// the fast way through the trie for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "grammar/state_mask.h"
#include "grammar/tables.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

class DenseRule {
 public:
  // nullopt for rules with calls or tokens, and for automata that are nondeterministic or too large. States
  // [first, end) are the rule's.
  static std::optional<DenseRule> make(const Tables& tables, StateId first, StateId end);

  // No text of the rule begins another one, and none is empty: a run of repetitions can be read in one way
  // only.
  bool prefix_free() const { return prefix_free_; }

  // Masks are given up, nullopt, when more than `most` nodes of the trie would have to be looked at.
  std::optional<StateMask> mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                std::size_t most) const;

  // The state to which nearly every byte leads from this state and from itself, such as the inside of a
  // string after the excluded names; nullopt: there is no such state.
  std::optional<StateId> hub(const Tables& tables, StateId state) const;

  // Number of bytes, at most `bytes_max`, for which two states are alike: the same texts of this length lead
  // on from both, and end at the same positions after the first byte. May return less if the search is long.
  // Adds its cost in nodes to `cost`, and stops when that exceeds `most`.
  std::size_t alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most, std::size_t& cost) const;

  // The mask of a state by its difference from that of another one: only texts are followed on which the two
  // part, and of those no shorter ones than `alike` bytes.
  std::optional<StateMask> mask_near(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                     StateId other, std::shared_ptr<const StateMask> of_other,
                                     std::size_t alike, std::size_t most) const;

  // The mask of unbounded repetitions of the rule, with the number of repetitions behind each token and open
  // node. The rule must be prefix-free.
  std::optional<StateMask> repeated(const Tables& tables, const Vocabulary& vocabulary, StateId start,
                                    std::size_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  StateId first_ = 0;
  int classes_ = 0;
  // The state after one byte.
  std::uint32_t next(const Tables& tables, std::uint32_t state, std::uint8_t byte) const {
    return next_[state * static_cast<std::size_t>(classes_) + tables.byte_class[byte]];
  }

  std::vector<std::uint32_t> next_;  // [state - first][byte class]
  std::vector<ByteSet> bytes_;       // bytes that may come next
  std::vector<bool> accepting_, ends_;
  bool prefix_free_ = false;
};

// The mask of at least `min` and at most `max` repetitions, out of that of unbounded ones.
StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words);

}  // namespace octavo::grammar
