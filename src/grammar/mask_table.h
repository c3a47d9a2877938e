// Token masks of parser configurations, computed when first asked for and kept.
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

  // Sets the bits of all tokens that may follow, the end-of-text tokens among them when the text may end
  // here. `mask` has vocabulary.mask_words() words; bit i % 32 of word i / 32 is token i. Whether there are
  // any; nullopt when states().exhausted().
  std::optional<bool> fill(ConfigId config, std::span<std::int32_t> mask);

  // Finds the masks of literal text before they are asked for, as far as kAheadWork goes.
  void look_ahead();

  // The configuration after one token; kDeadConfig when the token may not follow, or states().exhausted().
  ConfigId step_token(ConfigId config, TokenId token);

  std::size_t byte_size() const { return byte_size_ + states_.byte_size(); }

 private:
  // A configuration's mask: the union of the shared masks of its states, and of the tokens that only this
  // stack allows.
  struct ConfigMask {
    std::vector<std::shared_ptr<const StateMask>> shared;
    TokenSet own;
  };
  // The only tokens that may follow a state inside a literal: few_tokens_[first, first + count). Most states
  // of a schema are such, so they have no StateMask.
  struct Few {
    static constexpr std::uint32_t kUnknown = UINT32_MAX,
                                   kMany = UINT32_MAX - 1;  // kMany: it has a StateMask
    std::uint32_t first = 0, count = kUnknown;
  };
  // How to name a rule's states across grammars.
  struct RuleKey {
    std::optional<Hash128> hash;         // nullopt: the rule reaches too many states
    std::vector<std::uint32_t> numbers;  // numbers of its own states, from the first one on
  };

  // walk_trie by the parser. Below a step that leads nowhere because work ran out nothing is visited.
  template <class Visit>
  std::size_t walk(std::uint32_t node, ConfigId config, Visit&& visit);
  const ConfigMask* mask_of(ConfigId config);  // nullptr when exhausted
  // Fills the mask of a configuration of one state below which nothing on the stack counts: whether there are
  // any tokens. nullopt for other configurations.
  std::optional<bool> fill_lone(ConfigId config, std::span<std::int32_t> mask);
  std::optional<std::span<const TokenId>> few(StateId state);  // nullopt: the state has a StateMask
  std::shared_ptr<const StateMask> state_mask(StateId state);
  MadeStates::Counter near_bounds(StateId counted);
  std::shared_ptr<const StateMask>& mask_slot(StateId state);
  StateMask compute(StateId state);
  // The mask of a state without a hub, in a rule that calls nothing. Stored as the difference from an earlier
  // mask that is alike for some bytes (the states of a pattern with a length differ only in the length), or
  // from nothing.
  StateMask compute_dense(const DenseRule& table, StateId state);
  // Keeps a state as a base for later masks, if its mask has no base and its walk was long.
  void add_model(StateId state, const StateMask& mask);
  // The mask of a rule that calls nothing, whose nodes are counted; given up: it has taken all that was left.
  StateMask spent(std::optional<StateMask> mask);
  // Finds what every token does from the state on its own: fills accepted_ and open_, returns the nodes
  // looked at.
  std::size_t follow(StateId state);
  // Follows all paths below a trie node from a plain state of a rule, by its edges; reach(node, state) sees
  // the nodes where another state begins. Returns how many nodes were looked at.
  template <class Take, class Reach>
  std::size_t walk_plain(std::uint32_t node, StateId state, Take&& take, Reach&& reach);
  std::optional<Hash128> key_of(StateId state);
  // For a state of a rule that calls nothing: the key of the automaton that begins at it, which other rules
  // may share.
  std::optional<Hash128> key_of_what_follows(StateId root);
  const RuleKey& rule_key(RuleId rule);
  const DenseRule* dense(RuleId rule);  // nullptr without one, or if states().exhausted()
  // Whether the mask is so small that it is sooner computed than found in the shared cache.
  bool is_small(StateId state);

  const Tables& tables_;
  const Vocabulary& vocabulary_;
  ParseStates states_;
  std::vector<RuleId> rule_of_state_;
  std::vector<StateId> rule_end_;  // one beyond the last state of each rule
  std::vector<bool> rule_calls_;   // whether it calls others or asks for special tokens
  std::vector<bool> plain_;  // states that read bytes and nothing else, in one way, and do not end the rule
  std::unordered_map<RuleId, RuleKey> rule_keys_;
  std::unordered_map<RuleId, std::optional<DenseRule>> dense_;
  std::unordered_map<RuleId, std::vector<StateId>> models_;  // states that are bases of other masks
  std::vector<Few> few_;                                     // by state
  std::vector<TokenId> few_tokens_;
  std::vector<std::shared_ptr<const StateMask>> state_masks_;    // by state
  std::vector<std::unique_ptr<const ConfigMask>> config_masks_;  // by configuration
  // Scratch.
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  std::vector<std::uint32_t> rule_numbers_, state_numbers_;
  std::vector<std::pair<std::uint32_t, ConfigId>> walk_;
  std::vector<std::pair<std::uint32_t, StateId>> plain_walk_;
  std::vector<TokenId> accepted_, own_;
  std::vector<std::uint32_t> open_;
  std::size_t byte_size_ = 0;
};

}  // namespace octavo::grammar
