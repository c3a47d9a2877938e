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

  // Sets the bits of all tokens that can follow, including end-of-text tokens if the text may end. Bit i % 32
  // of word i / 32 is token i; `mask` has vocabulary.mask_words() words. Returns true if any token can
  // follow, or nullopt if states().exhausted().
  std::optional<bool> fill(ConfigId config, std::span<std::int32_t> mask);

  // Computes masks of literal text before they are needed, within kAheadWork.
  void look_ahead();

  // Returns kDeadConfig if the token cannot follow or states().exhausted().
  ConfigId step_token(ConfigId config, TokenId token);

  std::size_t byte_size() const { return byte_size_ + states_.byte_size(); }

 private:
  // The mask of a configuration: the union of `shared` (masks of its states) and `own` (tokens that are
  // allowed because of its stacks).
  struct ConfigMask {
    std::vector<std::shared_ptr<const StateMask>> shared;
    TokenSet own;
  };
  // The tokens that can follow a state inside a literal: few_.tokens[first, first + count). Most states of a
  // schema are inside literals, and such a list is smaller than a StateMask.
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
  // states[i] is the range in `tokens` that belongs to state i.
  struct FewTokens {
    std::vector<Few> states;
    std::vector<TokenId> tokens;
  };
  struct Dense {
    std::optional<DenseRule> rule;  // table of a rule; nullopt: the rule has none
    ByteSet wanted;                 // `wanted` in the last call of open_after_repeats()
    DenseRule::OpenNodes open;
  };
  // Identifies a rule across grammars.
  struct RuleKey {
    // hash of all states that the rule reaches; nullopt: the rule reaches too many states
    std::optional<Hash128> hash;
    // for each state of the rule, its index in the hashed list of states
    std::vector<std::uint32_t> numbers;
  };

  // Calls walk_trie() with the parser's configurations as states. If the work is exhausted, skips the
  // remaining nodes.
  template <class Visit>
  std::size_t walk(std::uint32_t node, ConfigId config, Visit&& visit);
  // null if the work is exhausted
  const ConfigMask* mask_of(ConfigId config);
  // Adds tokens in which the rule of `state` ends and the text after the rule continues. after:
  // configuration after the rule.
  void add_open_tokens(StateId state, const StateMask& mask, ConfigId after);
  // If the configuration has only one state and its mask does not depend on the stack, fills `mask` directly
  // and returns whether any token can follow. Otherwise returns nullopt.
  std::optional<bool> fill_lone(ConfigId config, std::span<std::int32_t> mask);
  std::optional<std::span<const TokenId>> few(StateId state);  // nullopt if the state has a StateMask
  std::shared_ptr<const StateMask> state_mask(StateId state);
  MadeStates::Counter near_bounds(StateId counted);
  // Returns the trie nodes at which a repetition may end and whose byte is in `wanted`. Returns an empty list
  // if the work is exhausted.
  std::span<const DenseRule::OpenNodes::Node> open_after_repeats(StateId counted, ByteSet wanted);
  std::shared_ptr<const StateMask>& mask_slot(StateId state);
  StateMask compute(StateId state);
  // Computes the mask of a state that has no hub (DenseRule::hub), in a rule without calls. If an earlier
  // state is sufficiently similar (DenseRule::alike), the result is a difference from that state's mask. For
  // example, the states of a pattern with a length differ only in the remaining length.
  StateMask compute_dense(const DenseRule& table, StateId state);
  // If computing the mask was slow, remembers the state, so that later masks can be differences from this
  // mask.
  void add_model(StateId state, const StateMask& mask);
  // Subtracts the work for the mask from the remaining work. If `mask` is nullopt, subtracts all remaining
  // work.
  StateMask spent(std::optional<StateMask> mask);
  // Follows all tokens from the state, without a stack, into found_. Returns the number of visited nodes.
  std::size_t follow(StateId state);
  // Follows all tokens below `node` along byte edges, as long as states are plain (plain_). Calls take(node)
  // for each reached node, and reach(node, state) where a state is not plain. Returns the number of visited
  // nodes.
  template <class Take, class Reach>
  std::size_t walk_plain(std::uint32_t node, StateId state, Take&& take, Reach&& reach);
  std::optional<Hash128> key_of(StateId state);
  // Returns a hash of the part of the automaton that follows the state, for a rule without calls. Different
  // rules may have the same key, and then share masks.
  std::optional<Hash128> key_of_what_follows(StateId root);
  const RuleKey& rule_key(RuleId rule);
  // null if the rule cannot have a table, or if states().exhausted()
  const DenseRule* dense(RuleId rule);
  // Returns true if the state has few continuations. Then computing its mask is faster than a lookup in the
  // shared cache.
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
  // for each rule, the states that add_model() has remembered
  std::unordered_map<RuleId, std::vector<StateId>> models_;
  FewTokens few_;
  std::vector<std::shared_ptr<const StateMask>> state_masks_;
  std::vector<std::unique_ptr<const ConfigMask>> config_masks_;  // index: ConfigId
  // Scratch memory, up to own_:
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  std::vector<std::uint32_t> rule_numbers_, state_numbers_;
  std::vector<std::pair<std::uint32_t, ConfigId>> walk_;
  std::vector<std::pair<std::uint32_t, StateId>> plain_walk_;
  Followed found_;
  std::vector<TokenId> own_;
  std::size_t byte_size_ = 0;
};

}  // namespace octavo::grammar
