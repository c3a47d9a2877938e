// Computes the token masks of parser configurations (parse_states.h) on demand, and caches them.
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

  // Sets the bits of all tokens that can follow. End-of-text tokens are included if the text may end. Bit i
  // % 32 of word i / 32 is token i; `mask` has vocabulary.mask_words() words. Returns true if any token can
  // follow, or nullopt if states().exhausted().
  std::optional<bool> fill(ConfigId config, std::span<std::int32_t> mask);

  // Computes masks of literal text before they are needed, within kAheadWork.
  void look_ahead();

  // Returns kDeadConfig if the token cannot follow or states().exhausted().
  ConfigId step_token(ConfigId config, TokenId token);

  std::size_t byte_size() const { return byte_size_ + states_.byte_size(); }

 private:
  // The mask of a configuration: the union of the masks of its states (shared), plus tokens that only this
  // stack allows.
  struct ConfigMask {
    std::vector<std::shared_ptr<const StateMask>> shared;
    TokenSet own;
  };
  // The tokens that can follow a state inside a literal: few_.tokens[first, first + count). Most states of
  // a schema are inside literals, and storing a few tokens is cheaper than a StateMask.
  struct Few {
    static constexpr std::uint32_t kUnknown = UINT32_MAX,
                                   kMany = UINT32_MAX - 1;  // kMany: the state has a StateMask
    std::uint32_t first = 0, count = kUnknown;
  };
  // The tokens that can follow a state on any stack, and the trie nodes at which the rule may end inside a
  // token.
  struct Followed {
    std::vector<TokenId> accepted;
    std::vector<std::uint32_t> open;
  };
  // The tokens of all states with few tokens: states[i] is a range in `tokens`.
  struct FewTokens {
    std::vector<Few> states;
    std::vector<TokenId> tokens;
  };
  struct Dense {
    std::optional<DenseRule> rule;  // table of a rule; nullopt: the rule has none
    ByteSet wanted;                 // argument of the last open_after_repeats()
    DenseRule::OpenNodes open;
  };
  // Identifies a rule across grammars.
  struct RuleKey {
    // hash of the states that the rule reaches; nullopt: there are too many
    std::optional<Hash128> hash;
    // for each state of the rule, its number in the hashed list
    std::vector<std::uint32_t> numbers;
  };

  // walk_trie() over the parser's states. If the work is exhausted, it skips the remaining nodes.
  template <class Visit>
  std::size_t walk(std::uint32_t node, ConfigId config, Visit&& visit);
  // null if the work is exhausted
  const ConfigMask* mask_of(ConfigId config);
  // Adds tokens in which the rule of `state` ends and the text after the rule continues. after:
  // configuration after the rule.
  void add_open_tokens(StateId state, const StateMask& mask, ConfigId after);
  // Fills the mask directly if the configuration has one state and does not depend on its stack; otherwise
  // returns nullopt. The value is true if any token can follow.
  std::optional<bool> fill_lone(ConfigId config, std::span<std::int32_t> mask);
  std::optional<std::span<const TokenId>> few(StateId state);  // nullopt if the state has a StateMask
  std::shared_ptr<const StateMask> state_mask(StateId state);
  MadeStates::Counter near_bounds(StateId counted);
  // Returns nodes at which a repetition may end and whose byte is in `wanted`. Returns an empty list if the
  // work is exhausted.
  std::span<const DenseRule::OpenNodes::Node> open_after_repeats(StateId counted, ByteSet wanted);
  std::shared_ptr<const StateMask>& mask_slot(StateId state);
  StateMask compute(StateId state);
  // Computes the mask of a state in a rule without calls that has no hub. If an earlier mask starts with
  // the same bytes, it stores the difference from that mask. States of a pattern with a length, for
  // example, differ only in the remaining length.
  StateMask compute_dense(const DenseRule& table, StateId state);
  // Keeps the mask of the state as a base for later masks, if computing it was slow and it has no base
  // itself.
  void add_model(StateId state, const StateMask& mask);
  // Subtracts the work for the mask from the remaining work. If `mask` is nullopt, subtracts all remaining
  // work.
  StateMask spent(std::optional<StateMask> mask);
  // Follows all tokens from the state, without a stack, into found_. Returns the number of visited nodes.
  std::size_t follow(StateId state);
  // Follows all tokens below `node` along byte edges. Calls reach(node, state) where another state begins.
  // Returns the number of visited nodes.
  template <class Take, class Reach>
  std::size_t walk_plain(std::uint32_t node, StateId state, Take&& take, Reach&& reach);
  std::optional<Hash128> key_of(StateId state);
  // Returns a key of the automaton from this state on, for a rule without calls. Different rules may have
  // the same key.
  std::optional<Hash128> key_of_what_follows(StateId root);
  const RuleKey& rule_key(RuleId rule);
  // null if the rule cannot have a table, or if states().exhausted()
  const DenseRule* dense(RuleId rule);
  // Returns true if computing the mask is faster than a lookup in the shared cache.
  bool is_small(StateId state);

  const Tables& tables_;
  const Vocabulary& vocabulary_;
  ParseStates states_;
  std::vector<RuleId> rule_of_state_;
  std::vector<StateId> rule_end_;
  std::vector<bool> rule_calls_;
  // whether the state only reads bytes, is deterministic, and is not accepting
  std::vector<bool> plain_;
  std::unordered_map<RuleId, RuleKey> rule_keys_;
  std::unordered_map<RuleId, Dense> dense_;
  // states whose masks are bases of other masks, for each rule
  std::unordered_map<RuleId, std::vector<StateId>> models_;
  FewTokens few_;
  std::vector<std::shared_ptr<const StateMask>> state_masks_;
  std::vector<std::unique_ptr<const ConfigMask>> config_masks_;  // by configuration
  // Scratch memory:
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  std::vector<std::uint32_t> rule_numbers_, state_numbers_;
  std::vector<std::pair<std::uint32_t, ConfigId>> walk_;
  std::vector<std::pair<std::uint32_t, StateId>> plain_walk_;
  Followed found_;
  std::vector<TokenId> own_;
  std::size_t byte_size_ = 0;
};

}  // namespace octavo::grammar
