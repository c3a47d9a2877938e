#include "grammar/mask_table.h"

#include <algorithm>
#include <cstring>

#include "grammar/limits.h"
#include "grammar/trie_walk.h"

namespace octavo::grammar {

namespace {

// A mask is shared only if computing it has visited at least this number of trie nodes.
constexpr std::size_t kShareVisitedMin = 512;
constexpr std::size_t kFewMax = 256;
constexpr std::size_t kOpenAtATime = 64;
using RuleKind = Tables::RuleRow::Kind;

bool is_plain(const Tables& tables, StateId state) {
  const auto edges = tables.byte_edges(state);
  if (edges.empty() || tables.states[state].accepting) return false;
  if (!tables.call_edges(state).empty() || !tables.token_edges(state).empty()) return false;
  for (std::size_t i = 1; i < edges.size(); ++i)
    if (edges[i].low <= edges[i - 1].high) return false;
  return true;
}

}  // namespace

MaskTable::MaskTable(const Tables& tables, const Vocabulary& vocabulary)
    : tables_(tables), vocabulary_(vocabulary), states_(tables) {
  rule_of_state_.resize(tables.states.size());
  rule_end_.resize(tables.rules.size());
  rule_calls_.resize(tables.rules.size());
  rule_numbers_.resize(tables.rules.size(), kNoNumber);
  state_numbers_.resize(tables.states.size(), kNoNumber);
  std::vector<std::pair<StateId, RuleId>> starts;
  for (RuleId r = 0; r < tables.rules.size(); ++r)
    if (tables.rules[r].kind == RuleKind::automaton) starts.emplace_back(tables.rules[r].start, r);
  std::ranges::sort(starts);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1].first : tables.states.size();
    for (std::size_t s = starts[i].first; s < end; ++s) rule_of_state_[s] = starts[i].second;
    rule_end_[starts[i].second] = static_cast<StateId>(end);
    for (StateId s = starts[i].first; s < end; ++s)
      if (!tables.call_edges(s).empty() || !tables.token_edges(s).empty())
        rule_calls_[starts[i].second] = true;
  }
  few_.states.resize(tables.states.size());
  plain_.resize(tables.states.size());
  for (StateId s = 0; s < tables.states.size(); ++s) plain_[s] = is_plain(tables, s);
}

template <class Visit>
std::size_t MaskTable::walk(std::uint32_t node, ConfigId config, Visit&& visit) {
  const std::size_t most = states_.nodes_left();
  const std::size_t looked_at = walk_trie(
      vocabulary_, walk_, node, config, most,
      [&](ConfigId at) -> const ByteSet& { return states_.bytes(at); },
      [&](ConfigId at, std::uint8_t byte) { return states_.step(at, byte); },
      [&](std::uint32_t at, ConfigId reached) { return reached != kDeadConfig && visit(at, reached); });
  states_.spend_nodes(looked_at);
  if (looked_at > most) states_.give_up();
  return looked_at;
}

template <class Take, class Reach>
std::size_t MaskTable::walk_plain(std::uint32_t node, StateId state, Take&& take, Reach&& reach) {
  const std::size_t most = states_.nodes_left();
  std::size_t looked_at = 0;
  plain_walk_.assign(1, {node, state});
  while (!plain_walk_.empty() && looked_at <= most) {
    const auto [at, before] = plain_walk_.back();
    plain_walk_.pop_back();
    const auto bytes = vocabulary_.child_bytes(at);
    const auto nodes = vocabulary_.child_nodes(at);
    for (const Edge& edge : tables_.byte_edges(before)) {
      auto i = static_cast<std::size_t>(std::ranges::lower_bound(bytes, edge.low) - bytes.begin());
      for (++looked_at; i < bytes.size() && bytes[i] <= edge.high; ++i, ++looked_at) {
        take(nodes[i]);
        if (vocabulary_.trie()[nodes[i]].end == nodes[i] + 1) continue;
        if (plain_[edge.target])
          plain_walk_.emplace_back(nodes[i], edge.target);
        else
          reach(nodes[i], edge.target);
      }
    }
  }
  return looked_at;
}

std::optional<bool> MaskTable::fill_lone(ConfigId config, std::span<std::int32_t> mask) {
  const auto items = states_.kernel(config);
  if (items.size() != 1 || !tables_.tokens.empty() || items[0].state == ParseStates::kAcceptState)
    return std::nullopt;
  const StateId state = items[0].state;
  if (const auto tokens = few(state)) {
    std::ranges::fill(mask, 0);
    set_bits(mask, *tokens);
    return !tokens->empty();
  }
  const StateMask* known = state < state_masks_.size() ? state_masks_[state].get() : nullptr;
  if (!known) known = state_mask(state).get();
  if (states_.exhausted() || known->may_end || known->has_open()) return std::nullopt;
  known->copy_to(mask);
  return known->accepts_any();
}

void MaskTable::look_ahead() {
  states_.allow(kAheadWork);
  for (StateId s = 0; s < plain_.size() && !states_.exhausted(); ++s)
    if (is_small(s) && !few(s)) state_mask(s);
  states_.allow(kWorkMax);
}

std::optional<std::span<const TokenId>> MaskTable::few(StateId state) {
  if (state >= few_.states.size() || !plain_[state]) return std::nullopt;
  Few& known = few_.states[state];
  if (known.count == Few::kUnknown) {
    known.count = Few::kMany;
    if (is_small(state)) {
      follow(state);
      if (states_.exhausted()) {
        known.count = Few::kUnknown;
        return std::nullopt;
      }
      if (found_.open.empty() && found_.accepted.size() <= kFewMax) {
        known = {static_cast<std::uint32_t>(few_.tokens.size()),
                 static_cast<std::uint32_t>(found_.accepted.size())};
        few_.tokens.insert(few_.tokens.end(), found_.accepted.begin(), found_.accepted.end());
        byte_size_ += found_.accepted.size() * sizeof(TokenId);
      }
    }
  }
  if (known.count == Few::kMany) return std::nullopt;
  return std::span(few_.tokens).subspan(known.first, known.count);
}

std::optional<bool> MaskTable::fill(ConfigId config, std::span<std::int32_t> mask) {
  if (config != kDeadConfig)
    if (const std::optional<bool> any = fill_lone(config, mask)) return any;
  const ConfigMask* found = config == kDeadConfig ? nullptr : mask_of(config);
  if (!found) {
    std::ranges::fill(mask, 0);
    return config == kDeadConfig ? std::optional(false) : std::nullopt;
  }
  const auto& shared = found->shared;
  if (shared.empty()) {
    found->own.copy_to(mask);
  } else {
    shared[0]->copy_to(mask);
    for (const auto& more : std::span(shared).subspan(1)) more->add_to(mask);
    found->own.add_to(mask);
  }
  bool any = !shared.empty() || !found->own.empty();
  if (states_.accepting(config))
    for (const TokenId id : vocabulary_.eos()) {
      mask[static_cast<std::size_t>(id) / 32] |= static_cast<std::int32_t>(1u << (id % 32));
      any = true;
    }
  return any;
}

ConfigId MaskTable::step_token(ConfigId config, TokenId token) {
  const ConfigId whole = tables_.tokens.empty() ? kDeadConfig : states_.step_token(config, token);
  if (vocabulary_.is_special(token) || vocabulary_.bytes(token).empty()) return whole;
  ConfigId at = config;
  for (const char c : vocabulary_.bytes(token)) {
    at = states_.step(at, static_cast<std::uint8_t>(c));
    if (at == kDeadConfig) break;
  }
  if (whole == kDeadConfig || at == kDeadConfig) return std::max(whole, at);
  // If a grammar names a token by its id, and the token's bytes also match as text, the parser continues with
  // both.
  std::vector<Item> both(states_.kernel(at).begin(), states_.kernel(at).end());
  both.insert(both.end(), states_.kernel(whole).begin(), states_.kernel(whole).end());
  return states_.config_of(std::move(both));
}

const MaskTable::ConfigMask* MaskTable::mask_of(ConfigId config) {
  if (config < config_masks_.size() && config_masks_[config]) return config_masks_[config].get();
  ConfigMask mask;
  own_.clear();
  if (!tables_.tokens.empty()) own_ = states_.tokens(config);

  std::vector<Item> work(states_.kernel(config).begin(), states_.kernel(config).end());
  for (std::size_t i = 0; i < work.size() && !states_.exhausted(); ++i) {
    const Item item = work[i];
    states_.spend(1);
    if (item.state == ParseStates::kAcceptState) continue;
    if (const auto tokens = few(item.state)) {
      own_.insert(own_.end(), tokens->begin(), tokens->end());
      continue;
    }
    const std::shared_ptr<const StateMask> shared = state_mask(item.state);
    if (shared->accepts_any()) mask.shared.push_back(shared);
    if (!shared->may_end && !shared->has_open()) continue;
    const auto items = states_.returns(item.stack);
    const std::vector<Item> returns(items.begin(), items.end());
    if (shared->may_end)
      for (const Item next : returns) {
        states_.spend(1 + work.size() / 16);
        if (std::ranges::find(work, next) == work.end()) work.push_back(next);
      }
    add_open_tokens(item.state, *shared, states_.config_of(returns));
  }
  std::ranges::sort(mask.shared);
  mask.shared.erase(std::ranges::unique(mask.shared).begin(), mask.shared.end());
  mask.own = TokenSet(own_, vocabulary_.mask_words());
  if (states_.exhausted()) return nullptr;
  byte_size_ += sizeof(ConfigMask) + mask.shared.size() * 16 + mask.own.byte_size();
  if (config_masks_.size() <= config) {
    byte_size_ += (config + std::size_t{1} - config_masks_.size()) * sizeof(config_masks_[0]);
    config_masks_.resize(config + std::size_t{1});
  }
  config_masks_[config] = std::make_unique<const ConfigMask>(std::move(mask));
  return config_masks_[config].get();
}

void MaskTable::add_open_tokens(StateId state, const StateMask& mask, ConfigId after) {
  const auto trie = vocabulary_.trie();
  const auto sorted = vocabulary_.sorted_tokens();
  const auto take = [&](std::uint32_t at) {
    const TrieNode& node = trie[at];
    for (std::uint32_t t = 0; t < node.token_count; ++t) own_.push_back(sorted[node.first_token + t]);
  };
  ConfigId entered = kDeadConfig;
  const auto enter = [&](std::uint8_t byte) {
    entered = states_.step(after, byte);
    return entered != kDeadConfig && !states_.exhausted();
  };
  std::size_t opened = 0;
  const auto take_below = [&](std::uint32_t open) {
    // Each open node costs the work of two trie nodes. The cost is added for kOpenAtATime nodes at once,
    // because the cost of a single node would be rounded to 0.
    if (states_.exhausted()) return;
    if (++opened % kOpenAtATime == 0) states_.spend_nodes(2 * kOpenAtATime);
    take(open);
    walk(open, entered, [&](std::uint32_t at, ConfigId) {
      take(at);
      return true;
    });
  };
  mask.for_open(enter, take_below);
  if (!mask.open_by_path) return;
  for (const auto& [node, repeats] : open_after_repeats(state, states_.bytes(after)))
    if (mask.repeats_min <= repeats && repeats <= mask.repeats_max && enter(trie[node].byte))
      take_below(node);
}

std::span<const DenseRule::OpenNodes::Node> MaskTable::open_after_repeats(StateId counted, ByteSet wanted) {
  const RuleId body = tables_.rules[states_.made().rule(counted)].body;
  const DenseRule* const table = dense(body);
  if (!table) return {};
  Dense& kept = dense_.at(body);
  if (kept.wanted == wanted) return kept.open.nodes;
  auto found = table->open_after_repeats(tables_, vocabulary_, tables_.rules[body].start, wanted,
                                         states_.nodes_left());
  if (!found) {
    states_.give_up();
    return {};
  }
  states_.spend_nodes(found->visited);
  byte_size_ += (found->nodes.size() - kept.open.nodes.size()) * sizeof(found->nodes[0]);
  kept.wanted = wanted;
  kept.open = *std::move(found);
  return kept.open.nodes;
}

// A token of n bytes contains at most n repetitions. So all bounds above the length of the longest token have
// the same mask.
MadeStates::Counter MaskTable::near_bounds(StateId counted) {
  MadeStates::Counter counter = states_.made().counter(counted);
  const auto far = static_cast<std::uint32_t>(vocabulary_.token_bytes_max()) + 1;
  counter.min = std::min(counter.min, far);
  if (counter.max > far) counter.max = kUnbounded;
  return counter;
}

std::shared_ptr<const StateMask> MaskTable::state_mask(StateId state) {
  if (states_.is_counter(state)) {
    MadeStates::Counter counter = near_bounds(state);
    const RuleId body = tables_.rules[counter.rule].body;
    const DenseRule* table = counter.min > 0 || counter.max != kUnbounded ? dense(body) : nullptr;
    state = states_.made().of(counter);
    if (table && table->prefix_free()) {
      if (const auto& known = mask_slot(state)) return known;
      const auto all = state_mask(states_.made().of(MadeStates::Counter{counter.rule, 0, kUnbounded}));
      if (states_.exhausted()) return all;
      const auto mask =
          std::make_shared<const StateMask>(bounded(all, counter.min, counter.max, vocabulary_.mask_words()));
      byte_size_ += mask->byte_size();
      return mask_slot(state) = mask;
    }
  }
  if (const auto& known = mask_slot(state)) return known;
  const std::optional<Hash128> key = is_small(state) ? std::nullopt : key_of(state);
  if (key)
    if (const auto found = vocabulary_.cache().find(*key);
        found && (!found->open_by_path || dense(tables_.rules[states_.made().rule(state)].body))) {
      if (!found->subtracts) add_model(state, *found);
      return mask_slot(state) = found;
    }
  const auto mask = std::make_shared<const StateMask>(compute(state));
  if (states_.exhausted()) return mask;
  if (key && mask->visited >= kShareVisitedMin) vocabulary_.cache().insert(*key, mask);
  byte_size_ += mask->byte_size();
  return mask_slot(state) = mask;
}

std::shared_ptr<const StateMask>& MaskTable::mask_slot(StateId state) {
  if (state >= state_masks_.size()) {
    byte_size_ += (state + std::size_t{1} - state_masks_.size()) * sizeof(state_masks_[0]);
    state_masks_.resize(state + std::size_t{1});
  }
  return state_masks_[state];
}

bool MaskTable::is_small(StateId state) {
  if (states_.is_made(state) || !rule_calls_[rule_of_state_[state]]) return false;
  if (!plain_[state]) return states_.bytes(states_.isolated(state)).count() <= 2;
  const auto edges = tables_.byte_edges(state);
  return edges.size() <= 2 &&
         std::ranges::all_of(edges, [](const Edge& edge) { return edge.low == edge.high; });
}

const DenseRule* MaskTable::dense(RuleId rule) {
  if (tables_.rules[rule].kind != RuleKind::automaton || rule_calls_[rule]) return nullptr;
  const StateId start = tables_.rules[rule].start, end = rule_end_[rule];
  const auto it = dense_.find(rule);
  if (it != dense_.end()) return it->second.rule ? &*it->second.rule : nullptr;
  states_.spend((end - start) * static_cast<std::size_t>(tables_.classes) / kWalkShare);
  if (states_.exhausted()) return nullptr;
  const std::optional<DenseRule>& made = dense_[rule].rule = DenseRule::make(tables_, start, end);
  return made ? &*made : nullptr;
}

StateMask MaskTable::spent(std::optional<StateMask> mask) {
  if (!mask) {
    states_.give_up();
    return {};
  }
  states_.spend_nodes(mask->visited);
  return *std::move(mask);
}

StateMask MaskTable::compute(StateId state) {
  if (!states_.is_made(state)) {
    if (const DenseRule* table = dense(rule_of_state_[state])) {
      const std::optional<StateId> hub = table->hub(tables_, state);
      if (!hub) return compute_dense(*table, state);
      const std::shared_ptr<const StateMask> of_hub = state_mask(*hub);
      if (states_.exhausted()) return {};
      return spent(table->mask_near(tables_, vocabulary_, state, *hub, of_hub, 0, states_.nodes_left()));
    }
  } else if (states_.is_counter(state)) {
    const MadeStates::Counter counter = states_.made().counter(state);
    const RuleId body = tables_.rules[counter.rule].body;
    const DenseRule* table = counter.min == 0 && counter.max == kUnbounded ? dense(body) : nullptr;
    if (table && table->prefix_free())
      return spent(table->repeated(tables_, vocabulary_, tables_.rules[body].start, states_.nodes_left()));
  }
  StateMask mask;
  mask.visited = follow(state);
  mask.may_end = states_.escapes(states_.isolated(state));
  mask.set_open(vocabulary_.trie(), found_.open);
  mask.accepted = TokenSet(found_.accepted, vocabulary_.mask_words());
  return mask;
}

StateMask MaskTable::compute_dense(const DenseRule& table, StateId state) {
  constexpr std::size_t kAlikeMin = 8;
  std::size_t most_alike = 0, cost = 0;
  StateId nearest = state;
  for (const StateId model : models_[rule_of_state_[state]])
    if (const std::size_t bytes =
            table.alike(state, model, vocabulary_.token_bytes_max(), states_.nodes_left(), cost);
        bytes > most_alike) {
      most_alike = bytes;
      nearest = model;
    }
  states_.spend_nodes(cost);
  if (states_.exhausted()) return {};
  if (most_alike >= kAlikeMin) {
    auto near = table.mask_near(tables_, vocabulary_, state, nearest, state_masks_[nearest], most_alike,
                                states_.nodes_left());
    if (near) near->counts_base = true;
    return spent(std::move(near));
  }
  StateMask mask = spent(table.mask(tables_, vocabulary_, state, states_.nodes_left()));
  if (!states_.exhausted()) add_model(state, mask);
  return mask;
}

void MaskTable::add_model(StateId state, const StateMask& mask) {
  constexpr std::size_t kModelsMax = 8;
  if (states_.is_made(state) || mask.visited < kShareVisitedMin) return;
  std::vector<StateId>& models = models_[rule_of_state_[state]];
  if (models.size() == kModelsMax) models.erase(models.begin());
  models.push_back(state);
}

std::size_t MaskTable::follow(StateId state) {
  const auto trie = vocabulary_.trie();
  const auto sorted = vocabulary_.sorted_tokens();
  found_.accepted.clear();
  found_.open.clear();
  const auto take = [&](std::uint32_t i) {
    for (std::uint32_t t = 0; t < trie[i].token_count; ++t)
      found_.accepted.push_back(sorted[trie[i].first_token + t]);
  };
  const auto reach = [&](std::uint32_t i, ConfigId config) {
    if (trie[i].end == i + 1) return false;
    if (states_.escapes(config)) found_.open.push_back(i);
    return !states_.only_escapes(config);
  };
  const auto visit = [&](std::uint32_t i, ConfigId config) {
    take(i);
    return reach(i, config);
  };
  if (states_.is_made(state) || !plain_[state]) return walk(0, states_.isolated(state), visit);
  std::size_t below = 0;
  const std::size_t looked_at = walk_plain(0, state, take, [&](std::uint32_t i, StateId reached) {
    const ConfigId config = states_.isolated(reached);
    if (config != kDeadConfig && reach(i, config)) below += walk(i, config, visit);
  });
  states_.spend_nodes(looked_at);
  states_.spend(1);
  return looked_at + below;
}

}  // namespace octavo::grammar
