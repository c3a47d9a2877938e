// Transition table of a rule without calls. Inside strings, most tokens are allowed; the table makes the
// walk through the trie of the vocabulary fast.
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

  // Returns true if no text of the rule is empty or a prefix of another text. Repetitions of the rule are
  // then unambiguous.
  bool prefix_free() const { return prefix_free_; }

  // Returns nullopt if the mask needs more than `most` trie nodes.
  std::optional<StateMask> mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                std::size_t most) const;

  // Returns the state that nearly every byte leads to, both from `state` and from the hub itself. Example:
  // the inside of a string in which some names are excluded. Returns nullopt if there is no such state.
  std::optional<StateId> hub(const Tables& tables, StateId state) const;

  // Returns the number of bytes, at most `bytes_max`, for which two states accept the same continuations
  // and can end at the same positions (after the first byte). The result can be too small if the search is
  // long. Adds the visited nodes to `cost` and stops above `most`.
  std::size_t alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most, std::size_t& cost) const;

  // Returns the mask of a state as a difference from the mask of `other`. `alike` is the result of alike():
  // shorter texts need no check.
  std::optional<StateMask> mask_near(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                     StateId other, std::shared_ptr<const StateMask> of_other,
                                     std::size_t alike, std::size_t most) const;

  // Returns the mask of an unbounded repetition of the rule. It includes the number of repetitions in each
  // token. Requires prefix_free().
  std::optional<StateMask> repeated(const Tables& tables, const Vocabulary& vocabulary, StateId start,
                                    std::size_t most) const;

  // Trie nodes at which a repetition may end, so that text after the rule may follow.
  struct OpenNodes {
    struct Node {
      std::uint32_t node, repeats;  // trie node, and number of complete repetitions before it
    };
    std::vector<Node> nodes;
    std::size_t visited = 0;
  };
  // Returns the nodes whose byte is in `wanted`, or nullopt if it needs more than `most` trie nodes.
  std::optional<OpenNodes> open_after_repeats(const Tables& tables, const Vocabulary& vocabulary,
                                              StateId start, const ByteSet& wanted, std::size_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  StateId first_ = 0;
  int classes_ = 0;
  // The states that one character leads to, by kind.
  struct Onward {
    struct Target {
      std::uint32_t state;
      KindSet kinds;  // some characters of these kinds lead to the state
    };
    // all characters of these kinds lead to states in which the rule cannot end
    KindSet lives;
    std::vector<Target> targets;
  };
  // kinds[n - 1]: kinds of which any text of n characters can follow without reaching the end of the rule.
  // unbounded: the last element is also valid for longer texts.
  struct Safe {
    std::vector<KindSet> kinds;
    bool unbounded = false;
    bool allows(KindSet text, std::size_t characters) const;
  };
  class SafeTexts;
  // Position in a text of repetitions.
  struct Repeats {
    std::uint32_t state, repeats, characters;
    bool complete;  // whether a repetition ends here
  };
  Repeats repeat(const Tables& tables, std::uint32_t start, const Repeats& at, std::uint8_t byte) const;
  // Calls visit(state, kind) for each state that a character of the kind leads to. The state is kNowhere if
  // the rule does not continue or can end inside the character.
  template <class Visit>
  void for_each_character(const Tables& tables, std::uint32_t state, Visit&& visit) const;
  Onward onward(const Tables& tables, std::uint32_t state) const;
  // Returns the kinds of which every single character is a complete text of the rule.
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
