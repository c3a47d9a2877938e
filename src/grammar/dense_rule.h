// Transition table of a rule without calls. It makes masks fast for states that allow most tokens, such as
// states inside strings.
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
  // The rule has the states [first, end). Returns nullopt if it has calls or special tokens, or if its
  // automaton is nondeterministic or too large.
  static std::optional<DenseRule> make(const Tables& tables, StateId first, StateId end);

  // Returns true if no text of the rule is empty and none is a prefix of another one. Then a text can be
  // divided into repetitions of the rule in only one way.
  bool prefix_free() const { return prefix_free_; }

  // Returns the mask of a state, or nullopt if it needs more than `most` trie nodes.
  std::optional<StateMask> mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                std::size_t most) const;

  // Returns a state (the hub) to which many bytes lead from `state`, and nearly all bytes lead from the hub
  // itself. Example: the inside of a string that must differ from some names. Returns nullopt if there is no
  // hub.
  std::optional<StateId> hub(const Tables& tables, StateId state) const;

  // Returns the largest n <= bytes_max for which both states accept the same continuations of n bytes, and
  // the rule can end at the same positions in them (after the first byte). The result can be too small if the
  // search takes too long. Adds the search's work in trie nodes to `cost`, and stops when `cost` is above
  // `most`.
  std::size_t alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most, std::size_t& cost) const;

  // Returns the mask of a state as a difference from the mask of `other`. alike: result of alike() for both
  // states; tokens of at most this number of bytes need no check.
  std::optional<StateMask> mask_near(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                     StateId other, std::shared_ptr<const StateMask> of_other,
                                     std::size_t alike, std::size_t most) const;

  // Returns the mask of an unbounded repetition of the rule, with the number of repetitions in each token.
  // Requires prefix_free().
  std::optional<StateMask> repeated(const Tables& tables, const Vocabulary& vocabulary, StateId start,
                                    std::size_t most) const;

  // Trie nodes at which a repetition may end, so that the text after the rule may begin there.
  struct OpenNodes {
    struct Node {
      std::uint32_t node, repeats;  // trie node, and number of complete repetitions before it
    };
    std::vector<Node> nodes;
    std::size_t visited = 0;
  };
  // Returns those nodes whose byte is in `wanted`, or nullopt if the search needs more than `most` trie
  // nodes.
  std::optional<OpenNodes> open_after_repeats(const Tables& tables, const Vocabulary& vocabulary,
                                              StateId start, const ByteSet& wanted, std::size_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  StateId first_ = 0;
  int classes_ = 0;
  // The states to which one character leads, by the character's kind.
  struct Onward {
    struct Target {
      std::uint32_t state;
      KindSet kinds;  // some characters of these kinds lead to the state
    };
    // all characters of these kinds lead to states in which the rule cannot end
    KindSet lives;
    std::vector<Target> targets;
  };
  // kinds[n - 1]: any n characters of these kinds can follow without reaching the end of the rule. unbounded:
  // the last element is also valid for more characters.
  struct Safe {
    std::vector<KindSet> kinds;
    bool unbounded = false;
    bool allows(KindSet text, std::size_t characters) const;
  };
  class SafeTexts;
  // Position in a text that consists of repetitions.
  struct Repeats {
    std::uint32_t state, repeats, characters;
    bool complete;  // whether a repetition ends at this position
  };
  Repeats repeat(const Tables& tables, std::uint32_t start, const Repeats& at, std::uint8_t byte) const;
  // Calls visit(state, kind) for each state that a character of the kind leads to. The state is kNowhere if
  // the rule does not continue or can end inside the character.
  template <class Visit>
  void for_each_character(const Tables& tables, std::uint32_t state, Visit&& visit) const;
  Onward onward(const Tables& tables, std::uint32_t state) const;
  // Returns the kinds for which each character alone is a complete text of the rule.
  KindSet whole_texts(const Tables& tables, std::uint32_t start) const;
  std::uint32_t next(const Tables& tables, std::uint32_t state, std::uint8_t byte) const {
    return next_[state * static_cast<std::size_t>(classes_) + tables.byte_class[byte]];
  }

  std::vector<std::uint32_t> next_;  // index: [state - first][byte class]
  std::vector<ByteSet> bytes_;       // bytes that can follow each state
  std::vector<bool> accepting_, ends_;
  bool prefix_free_ = false;
};

// Derives the mask of `min` to `max` repetitions from the mask of unbounded ones.
StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words);

}  // namespace octavo::grammar
