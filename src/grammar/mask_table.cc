#include "grammar/mask_table.h"

#include <algorithm>
#include <cstring>

#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

// Masks cheaper than this many trie nodes are not worth a place in the shared cache.
constexpr std::size_t kShareVisitedMin = 512;

// Follows all paths of trie nodes [begin, end), whose parent was reached in configuration `from`. Calls
// visit(node, config) for every node reached alive; false stops the descent below it.
template <class Visit>
void walk(ParseStates& states, std::span<const TrieNode> trie, std::uint32_t begin, std::uint32_t end,
          ConfigId from, std::vector<ConfigId>& path, Visit&& visit) {
  if (begin == end) return;
  path[trie[begin].depth - 1u] = from;
  for (std::uint32_t i = begin; i < end;) {
    const TrieNode& node = trie[i];
    const ConfigId config = states.step(path[node.depth - 1u], node.byte);
    if (config == kDeadConfig || !visit(i, config)) {
      i = node.end;
    } else {
      path[node.depth] = config;
      ++i;
    }
  }
}

}  // namespace

MaskTable::MaskTable(const Tables& tables, const Vocabulary& vocabulary)
    : tables_(tables), vocabulary_(vocabulary), states_(tables), path_(vocabulary.token_bytes_max() + 1) {
  rule_of_state_.resize(tables.states.size());
  rule_end_.resize(tables.rules.size());
  std::vector<std::pair<StateId, RuleId>> starts;
  for (RuleId r = 0; r < tables.rules.size(); ++r)
    if (!tables.rules[r].counted) starts.emplace_back(tables.rules[r].start, r);
  std::ranges::sort(starts);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1].first : tables.states.size();
    for (std::size_t s = starts[i].first; s < end; ++s) rule_of_state_[s] = starts[i].second;
    rule_end_[starts[i].second] = static_cast<StateId>(end);
  }
}

void MaskTable::fill(ConfigId config, std::span<std::int32_t> mask) {
  std::ranges::fill(mask, 0);
  if (config == kDeadConfig) return;
  const ConfigMask& found = mask_of(config);
  for (const auto& shared : found.shared) shared->add_to(mask);
  found.own.add_to(mask);
  if (states_.accepting(config))
    for (const TokenId id : vocabulary_.eos())
      mask[static_cast<std::size_t>(id) / 32] |= static_cast<std::int32_t>(1u << (id % 32));
}

ConfigId MaskTable::step_token(ConfigId config, TokenId token) {
  if (vocabulary_.is_special(token) || vocabulary_.bytes(token).empty())
    return states_.step_token(config, token);
  ConfigId at = config;
  for (const char c : vocabulary_.bytes(token)) {
    at = states_.step(at, static_cast<std::uint8_t>(c));
    if (at == kDeadConfig) break;
  }
  return at;
}

const MaskTable::ConfigMask& MaskTable::mask_of(ConfigId config) {
  if (const auto it = config_masks_.find(config); it != config_masks_.end()) return it->second;
  const auto trie = vocabulary_.trie();
  const auto sorted = vocabulary_.sorted_tokens();
  ConfigMask mask;
  std::vector<TokenId> own = states_.tokens(config);

  std::vector<Item> work(states_.kernel(config).begin(), states_.kernel(config).end());
  for (std::size_t i = 0; i < work.size(); ++i) {
    const Item item = work[i];
    if (item.state == ParseStates::kAcceptState) continue;
    const std::shared_ptr<const StateMask> shared = state_mask(item.state);
    if (shared->accepts_any()) mask.shared.push_back(shared);
    if (!shared->may_end && !shared->has_open()) continue;
    const auto items = states_.returns(item.stack);
    const std::vector<Item> returns(items.begin(), items.end());
    if (shared->may_end)
      for (const Item next : returns)
        if (std::ranges::find(work, next) == work.end()) work.push_back(next);
    const ConfigId after = states_.config_of(returns);
    const auto take = [&](std::uint32_t at) {
      const TrieNode& node = trie[at];
      for (std::uint32_t t = 0; t < node.token_count; ++t) own.push_back(sorted[node.first_token + t]);
    };
    ConfigId entered = kDeadConfig;
    shared->for_open(
        [&](std::uint8_t byte) {
          entered = states_.step(after, byte);
          return entered != kDeadConfig;
        },
        [&](std::uint32_t open) {
          take(open);
          walk(states_, trie, open + 1, trie[open].end, entered, path_, [&](std::uint32_t at, ConfigId) {
            take(at);
            return true;
          });
        });
  }
  std::ranges::sort(mask.shared);
  mask.shared.erase(std::ranges::unique(mask.shared).begin(), mask.shared.end());
  mask.own = TokenSet(std::move(own), vocabulary_.mask_words());
  byte_size_ += sizeof(ConfigMask) + 32 + mask.shared.size() * 16 + mask.own.byte_size();
  return config_masks_.emplace(config, std::move(mask)).first->second;
}

std::shared_ptr<const StateMask> MaskTable::state_mask(StateId state) {
  if (states_.is_counter(state)) {
    // A token of n bytes repeats at most n times, so bounds further away than that look alike.
    ParseStates::Counter counter = states_.counter(state);
    const auto far = static_cast<std::uint32_t>(vocabulary_.token_bytes_max()) + 1;
    counter.min = std::min(counter.min, far);
    if (counter.max > far) counter.max = kUnbounded;
    const RuleId body = tables_.rules[counter.rule].body;
    const DenseRule* table = counter.min > 0 || counter.max != kUnbounded ? dense(body) : nullptr;
    if (table && table->prefix_free()) {
      auto& slot = state_masks_[states_.counter_state(counter)];
      if (slot) return slot;
      const auto all = state_mask(states_.counter_state({counter.rule, 0, kUnbounded}));
      const auto mask =
          std::make_shared<const StateMask>(bounded(all, counter.min, counter.max, vocabulary_.mask_words()));
      byte_size_ += mask->byte_size();
      return state_masks_[states_.counter_state(counter)] = mask;
    }
    state = states_.counter_state(counter);
  }
  auto& slot = state_masks_[state];
  if (slot) return slot;
  const std::optional<Hash128> key = key_of(state);
  if (key) slot = vocabulary_.cache().find(*key);
  if (slot) return slot;
  const auto mask = std::make_shared<const StateMask>(compute(state));
  if (key && mask->visited >= kShareVisitedMin) vocabulary_.cache().insert(*key, mask);
  byte_size_ += mask->byte_size();
  return state_masks_[state] = mask;
}

const DenseRule* MaskTable::dense(RuleId rule) {
  const auto [it, fresh] = dense_.try_emplace(rule);
  if (fresh && !tables_.rules[rule].counted)
    it->second = DenseRule::make(tables_, tables_.rules[rule].start, rule_end_[rule]);
  return it->second ? &*it->second : nullptr;
}

StateMask MaskTable::compute(StateId state) {
  if (!states_.is_counter(state)) {
    if (const DenseRule* table = dense(rule_of_state_[state]))
      return table->mask(tables_, vocabulary_, state);
  } else if (const ParseStates::Counter counter = states_.counter(state);
             counter.min == 0 && counter.max == kUnbounded) {
    const RuleId body = tables_.rules[counter.rule].body;
    const DenseRule* table = dense(body);
    if (table && table->prefix_free())
      return table->repeated(tables_, vocabulary_, tables_.rules[body].start);
  }
  const auto trie = vocabulary_.trie();
  const auto sorted = vocabulary_.sorted_tokens();
  StateMask mask;
  const ConfigId start = states_.isolated(state);
  mask.may_end = states_.escapes(start);
  std::vector<TokenId> accepted;
  std::vector<std::uint32_t> open;
  walk(states_, trie, 1, static_cast<std::uint32_t>(trie.size()), start, path_,
       [&](std::uint32_t i, ConfigId config) {
         const TrieNode& node = trie[i];
         ++mask.visited;
         for (std::uint32_t t = 0; t < node.token_count; ++t)
           accepted.push_back(sorted[node.first_token + t]);
         if (node.end == i + 1) return true;
         if (states_.escapes(config)) open.push_back(i);
         return !states_.only_escapes(config);
       });
  mask.set_open(trie, open, {});
  mask.accepted = TokenSet(std::move(accepted), vocabulary_.mask_words());
  return mask;
}

// --- names of states across grammars ---

const MaskTable::RuleKey& MaskTable::rule_key(RuleId root) {
  const auto [it, fresh] = rule_keys_.try_emplace(root);
  RuleKey& key = it->second;
  if (!fresh) return key;
  // All that can be reached from the rule, numbered in order of discovery and written out.
  std::vector<RuleId> rules{root};
  std::unordered_map<RuleId, std::uint32_t> rule_numbers{{root, 0}};
  std::vector<StateId> states;
  std::vector<std::uint32_t> text{static_cast<std::uint32_t>(vocabulary_.size())};
  const auto number_rule = [&](RuleId rule) {
    const auto [found, added] = rule_numbers.try_emplace(rule, static_cast<std::uint32_t>(rules.size()));
    if (added) rules.push_back(rule);
    return found->second;
  };
  const auto number_state = [&](StateId state) {
    const auto [found, added] = key.numbers.try_emplace(state, static_cast<std::uint32_t>(states.size()));
    if (added) states.push_back(state);
    return found->second;
  };
  std::size_t next_state = 0;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    const Tables::RuleRow& row = tables_.rules[rules[r]];
    if (row.counted) {
      text.insert(text.end(), {1, row.min, row.max, number_rule(row.body)});
      continue;
    }
    text.insert(text.end(), {2, number_state(row.start)});
    for (; next_state < states.size(); ++next_state) {
      if (states.size() > kShareStatesMax) {
        key.numbers.clear();
        return key;
      }
      const StateId s = states[next_state];
      text.insert(text.end(), {3, tables_.states[s].accepting});
      for (const Edge& edge : tables_.byte_edges(s))
        text.insert(text.end(), {4, edge.low, edge.high, number_state(edge.target)});
      for (const Edge& edge : tables_.call_edges(s))
        text.insert(text.end(), {5, number_rule(edge.ref), number_state(edge.target)});
      for (const Edge& edge : tables_.token_edges(s)) text.insert(text.end(), {6, number_state(edge.target)});
    }
  }
  key.hash = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), vocabulary_.cache().seed());
  return key;
}

std::optional<Hash128> MaskTable::key_of(StateId state) {
  std::uint32_t name[3] = {0, 0, 0};
  const RuleKey* rule = nullptr;
  if (states_.is_counter(state)) {
    const ParseStates::Counter counter = states_.counter(state);
    rule = &rule_key(tables_.rules[counter.rule].body);
    name[0] = UINT32_MAX;
    name[1] = counter.min;
    name[2] = counter.max;
  } else {
    rule = &rule_key(rule_of_state_[state]);
    if (rule->hash) name[0] = rule->numbers.at(state);
  }
  if (!rule->hash) return std::nullopt;
  const Hash128 named = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(name)), rule->hash->low);
  return Hash128{named.low ^ rule->hash->high, named.high};
}

}  // namespace octavo::grammar
