// Keys of masks in StateMaskCache, which all grammars of a vocabulary share. So a key must not depend on the
// state numbers of one grammar.
#include "base/hash.h"
#include "grammar/limits.h"
#include "grammar/mask_table.h"

namespace octavo::grammar {

const MaskTable::RuleKey& MaskTable::rule_key(RuleId root) {
  const auto [it, fresh] = rule_keys_.try_emplace(root);
  RuleKey& key = it->second;
  if (!fresh) return key;
  // Lists all states that are reachable from the rule, in the order of discovery. `text` describes them and
  // is hashed.
  std::vector<RuleId> rules;
  std::vector<StateId> states;
  const auto number = [](std::vector<std::uint32_t>& numbers, auto& found, std::uint32_t id) {
    if (numbers[id] == kNoNumber) {
      numbers[id] = static_cast<std::uint32_t>(found.size());
      found.push_back(id);
    }
    return numbers[id];
  };
  const auto rule_number = [&](RuleId rule) { return number(rule_numbers_, rules, rule); };
  const auto state_number = [&](StateId state) { return number(state_numbers_, states, state); };
  std::vector<std::uint32_t> text{static_cast<std::uint32_t>(vocabulary_.size()), rule_number(root)};
  std::size_t written = 0;
  for (std::size_t r = 0; r < rules.size() && states.size() <= kShareStatesMax; ++r) {
    const Tables::RuleRow& row = tables_.rules[rules[r]];
    if (row.kind == Tables::RuleRow::Kind::counted) {
      text.insert(text.end(), {1, row.min, row.max, rule_number(row.body)});
      continue;
    }
    if (row.kind == Tables::RuleRow::Kind::any_order) {
      const Tables::AnyOrder& parts = tables_.any_order(rules[r]);
      text.insert(text.end(), {7, parts.min, parts.max, rule_number(parts.separator),
                               static_cast<std::uint32_t>(parts.parts.size()),
                               parts.others ? rule_number(*parts.others) : kNoNumber});
      for (std::size_t i = 0; i < parts.parts.size(); ++i)
        text.insert(text.end(), {contains(parts.required, i), rule_number(parts.parts[i])});
      continue;
    }
    text.insert(text.end(), {2, state_number(row.start)});
    for (; written < states.size() && states.size() <= kShareStatesMax; ++written) {
      const StateId s = states[written];
      text.insert(text.end(), {3, tables_.states[s].accepting});
      for (const Edge& edge : tables_.byte_edges(s))
        text.insert(text.end(), {4, edge.low, edge.high, state_number(edge.target)});
      for (const Edge& edge : tables_.call_edges(s))
        text.insert(text.end(), {5, rule_number(edge.ref), state_number(edge.target)});
      for (const Edge& edge : tables_.token_edges(s)) text.insert(text.end(), {6, state_number(edge.target)});
    }
  }
  if (states.size() <= kShareStatesMax) {
    key.hash =
        hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), vocabulary_.cache().seed());
    if (const Tables::RuleRow& row = tables_.rules[root]; row.kind == Tables::RuleRow::Kind::automaton)
      key.numbers.assign(state_numbers_.begin() + row.start, state_numbers_.begin() + rule_end_[root]);
  }
  for (const RuleId rule : rules) rule_numbers_[rule] = kNoNumber;
  for (const StateId state : states) state_numbers_[state] = kNoNumber;
  return key;
}

std::optional<Hash128> MaskTable::key_of_what_follows(StateId root) {
  constexpr std::size_t kStatesMax = 64;
  std::vector<StateId> states{root};
  std::vector<std::uint32_t> text{static_cast<std::uint32_t>(vocabulary_.size()), UINT32_MAX - 1};
  state_numbers_[root] = 0;
  for (std::size_t i = 0; i < states.size() && states.size() <= kStatesMax; ++i) {
    text.insert(text.end(), {3, tables_.states[states[i]].accepting});
    for (const Edge& edge : tables_.byte_edges(states[i])) {
      if (state_numbers_[edge.target] == kNoNumber) {
        state_numbers_[edge.target] = static_cast<std::uint32_t>(states.size());
        states.push_back(edge.target);
      }
      text.insert(text.end(), {4, edge.low, edge.high, state_numbers_[edge.target]});
    }
  }
  for (const StateId state : states) state_numbers_[state] = kNoNumber;
  if (states.size() > kStatesMax) return std::nullopt;
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), vocabulary_.cache().seed());
}

std::optional<Hash128> MaskTable::key_of(StateId state) {
  const bool made = states_.is_made(state);
  if (!made && !rule_calls_[rule_of_state_[state]])
    if (const auto key = key_of_what_follows(state)) return key;
  const RuleId own = made ? states_.made().rule(state) : rule_of_state_[state];
  const RuleKey& rule = rule_key(states_.is_counter(state) ? tables_.rules[own].body : own);
  if (!rule.hash) return std::nullopt;
  std::vector<std::uint32_t> name;
  if (made) {
    const KeyTable::Key key = states_.made().key(state);
    name.assign(key.begin(), key.end());
    name[0] = UINT32_MAX;
  } else {
    name = {rule.numbers[state - tables_.rules[own].start], 0, 0};
  }
  const Hash128 named = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(name)), rule.hash->low);
  return Hash128{named.low ^ rule.hash->high, named.high};
}

}  // namespace octavo::grammar
