// Computes token masks of parser configurations on demand, and keeps them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "grammar/dense_rule.h"
#include "grammar/parse_states.h"
#include "grammar/state_mask.h"
#include "grammar/tables.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

// Not thread-safe.
class MaskTable {
 public:
  MaskTable(const Tables& tables, const Vocabulary& vocabulary);

  ParseStates& states() { return states_; }

  // Sets the bits of all tokens that can follow, including end-of-text tokens if the text may end. `mask`
  // has vocabulary.mask_words() words; bit i % 32 of word i / 32 is token i. Returns whether any token can
  // follow, or nullopt if states().exhausted().
  std::optional<bool> fill(ConfigId config, std::span<std::int32_t> mask);

  // Computes masks of literal text in advance, within kAheadWork.
  void look_ahead();

  // Returns the configuration after one token, or kDeadConfig if the token cannot follow or
  // states().exhausted().
  ConfigId step_token(ConfigId config, TokenId token);

  std::size_t byte_size() const { return byte_size_ + states_.byte_size(); }

 private:
  // The mask of a configuration: the union of its states' shared masks, and the tokens that are allowed
  // only with this stack.
  struct ConfigMask {
    std::vector<std::shared_ptr<const StateMask>> shared;
    TokenSet own;
  };
  // The tokens that can follow a state inside a literal: few_.tokens[first, first + count). There are few
  // of them, and the state has no StateMask. Most states of a schema are of this kind.
  struct Few {
    static constexpr std::uint32_t kUnknown = UINT32_MAX,
                                   kMany = UINT32_MAX - 1;  // kMany: the state has a StateMask
    std::uint32_t first = 0, count = kUnknown;
  };
  // The tokens that can follow a state, whatever its stack, and the trie nodes at which the rule may end
  // before the token does.
  struct Followed {
    std::vector<TokenId> accepted;
    std::vector<std::uint32_t> open;
  };
  // The tokens of the states with few tokens; `states` is indexed by state.
  struct FewTokens {
    std::vector<Few> states;
    std::vector<TokenId> tokens;
  };
  // Identifies the states of a rule across grammars.
  struct RuleKey {
    std::optional<Hash128> hash;         // nullopt: the rule reaches too many states
    std::vector<std::uint32_t> numbers;  // numbers of the rule's states, from its first state
  };

  // Calls walk_trie with the parser's states. If the work is exhausted, it skips all nodes below.
  template <class Visit>
  std::size_t walk(std::uint32_t node, ConfigId config, Visit&& visit);
  const ConfigMask* mask_of(ConfigId config);  // null if the work is exhausted
  // Fills the mask of a configuration that has one state and does not depend on its stack. Returns whether
  // any token can follow, or nullopt for other configurations.
  std::optional<bool> fill_lone(ConfigId config, std::span<std::int32_t> mask);
  std::optional<std::span<const TokenId>> few(StateId state);  // nullopt if the state has a StateMask
  std::shared_ptr<const StateMask> state_mask(StateId state);
  MadeStates::Counter near_bounds(StateId counted);
  std::shared_ptr<const StateMask>& mask_slot(StateId state);
  StateMask compute(StateId state);
  // Computes the mask of a state without a hub, in a rule without calls. The mask is stored as a difference
  // from an earlier mask that is equal for the first bytes, or completely. States of a pattern with a
  // length, for example, differ only in the length.
  StateMask compute_dense(const DenseRule& table, StateId state);
  // Keeps the state as a base for later masks, if its mask has no base and took a long walk.
  void add_model(StateId state, const StateMask& mask);
  // Counts the work for the mask of a rule without calls. nullopt: the mask used all the remaining work.
  StateMask spent(std::optional<StateMask> mask);
  // Examines all tokens from the state, without a stack, and fills found_. Returns the number of examined
  // nodes.
  std::size_t follow(StateId state);
  // Follows all paths below a trie node by the edges of a plain state. Calls reach(node, state) for nodes
  // at which another state begins. Returns the number of examined nodes.
  template <class Take, class Reach>
  std::size_t walk_plain(std::uint32_t node, StateId state, Take&& take, Reach&& reach);
  std::optional<Hash128> key_of(StateId state);
  // Returns the key of the automaton from this state, in a rule without calls. Other rules can have the
  // same automaton.
  std::optional<Hash128> key_of_what_follows(StateId root);
  const RuleKey& rule_key(RuleId rule);
  const DenseRule* dense(RuleId rule);  // null if the rule has no table, or if states().exhausted()
  // Returns whether it is faster to compute the mask than to look it up in the shared cache.
  bool is_small(StateId state);

  const Tables& tables_;
  const Vocabulary& vocabulary_;
  ParseStates states_;
  std::vector<RuleId> rule_of_state_;
  std::vector<StateId> rule_end_;  // index after the last state of each rule
  std::vector<bool> rule_calls_;   // whether the rule calls others or contains special tokens
  std::vector<bool> plain_;        // whether the state reads only bytes, is deterministic, and does not end
                                   // the rule
  std::unordered_map<RuleId, RuleKey> rule_keys_;
  std::unordered_map<RuleId, std::optional<DenseRule>> dense_;
  std::unordered_map<RuleId, std::vector<StateId>> models_;  // states that are bases of other masks, by rule
  FewTokens few_;
  std::vector<std::shared_ptr<const StateMask>> state_masks_;    // by state
  std::vector<std::unique_ptr<const ConfigMask>> config_masks_;  // by configuration
  // The members below are reused memory.
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  std::vector<std::uint32_t> rule_numbers_, state_numbers_;
  std::vector<std::pair<std::uint32_t, ConfigId>> walk_;
  std::vector<std::pair<std::uint32_t, StateId>> plain_walk_;
  Followed found_;
  std::vector<TokenId> own_;
  std::size_t byte_size_ = 0;
};

}  // namespace octavo::grammar
