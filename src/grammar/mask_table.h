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
  // here. `mask` has vocabulary.mask_words() words; bit i % 32 of word i / 32 is token i.
  void fill(ConfigId config, std::span<std::int32_t> mask);

  // The configuration after one token, kDeadConfig when the token may not follow.
  ConfigId step_token(ConfigId config, TokenId token);

  std::size_t byte_size() const { return byte_size_ + states_.byte_size(); }

 private:
  // A configuration's mask: the union of the masks of its states, which are shared, and of what only this
  // stack allows.
  struct ConfigMask {
    std::vector<std::shared_ptr<const StateMask>> shared;
    TokenSet own;
  };
  // How to name a rule's states across grammars.
  struct RuleKey {
    std::optional<Hash128> hash;  // none: the rule reaches too many states
    std::unordered_map<StateId, std::uint32_t> numbers;
  };

  const ConfigMask& mask_of(ConfigId config);
  std::shared_ptr<const StateMask> state_mask(StateId state);
  StateMask compute(StateId state);
  std::optional<Hash128> key_of(StateId state);
  const RuleKey& rule_key(RuleId rule);
  const DenseRule* dense(RuleId rule);

  const Tables& tables_;
  const Vocabulary& vocabulary_;
  ParseStates states_;
  std::vector<RuleId> rule_of_state_;
  std::vector<StateId> rule_end_;  // one beyond the last state of each rule
  std::unordered_map<RuleId, RuleKey> rule_keys_;
  std::unordered_map<RuleId, std::optional<DenseRule>> dense_;
  std::unordered_map<StateId, std::shared_ptr<const StateMask>> state_masks_;
  std::unordered_map<ConfigId, ConfigMask> config_masks_;
  std::vector<ConfigId> path_;  // scratch: the configuration at each depth of the trie
  std::size_t byte_size_ = 0;
};

}  // namespace octavo::grammar
