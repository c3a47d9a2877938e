#include "grammar/parse_states.h"

#include <algorithm>

#include "base/check.h"
#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

std::uint64_t hash_of(Item item) { return mix(0x51, (std::uint64_t{item.state} << 32) | item.stack); }

std::uint64_t hash_of(std::span<const Item> items) {
  std::uint64_t h = items.size();
  for (const Item item : items) h = mix(h, hash_of(item));
  return h;
}

void sort_unique(std::vector<Item>& items) {
  std::ranges::sort(items);
  items.erase(std::ranges::unique(items).begin(), items.end());
}

}  // namespace

ParseStates::ParseStates(const Tables& tables)
    : tables_(tables),
      made_base_(static_cast<StateId>(tables.states.size())),
      made_(tables, made_base_),
      fresh_of_rule_(tables.rules.size(), 0) {
  configs_.emplace_back();  // kDeadConfig
  configs_[kDeadConfig].closed = true;
  intern_stack({{kAcceptState, 0}});
  intern_stack({{kEscapeState, 0}});
  const ConfigId start = config_of({{made_.start(tables.root), kRootStack}});
  CHECK(start == kStartConfig);
}

bool ParseStates::ends(StateId state) const {
  if (state >= kEscapeState) return false;
  return is_made(state) ? made_.must_end(state) : tables_.ends(state);
}

std::uint32_t ParseStates::append(std::span<const Item> items) {
  const auto first = static_cast<std::uint32_t>(items_.size());
  items_.insert(items_.end(), items.begin(), items.end());
  byte_size_ += items.size_bytes();
  return first;
}

StackId ParseStates::intern_stack(const std::vector<Item>& returns) {
  return stack_table_.find_or_add(
      hash_of(std::span(returns)), [&](StackId id) { return std::ranges::equal(this->returns(id), returns); },
      [&] {
        byte_size_ += sizeof(Stack);
        stacks_.push_back({append(returns), static_cast<std::uint32_t>(returns.size())});
        return static_cast<StackId>(stacks_.size() - 1);
      });
}

ConfigId ParseStates::config_of(std::vector<Item> items) {
  if (items.empty()) return kDeadConfig;
  spend(items.size());
  if (exhausted()) return kDeadConfig;
  sort_unique(items);
  return config_table_.find_or_add(
      hash_of(std::span<const Item>(items)),
      [&](ConfigId id) { return std::ranges::equal(kernel(id), items); },
      [&] {
        byte_size_ += sizeof(Config);
        Config config{};
        config.kernel = append(items);
        config.kernel_count = static_cast<std::uint32_t>(items.size());
        configs_.push_back(config);
        return static_cast<ConfigId>(configs_.size() - 1);
      });
}

bool ParseStates::only_escapes(ConfigId config) const {
  const auto items = kernel(config);
  return items.size() == 1 && items[0].state == kEscapeState;
}

void ParseStates::arrive(StateId state, StackId stack, std::vector<Item>& out, int calls_left) {
  if (ends(state)) {
    // The items of a stack have not ended, because call() does not add ended items. So one step is enough.
    const auto items = returns(stack);
    spend(items.size());
    if (!exhausted()) out.insert(out.end(), items.begin(), items.end());
  } else if (calls_left > 0 && state < made_base_ && tables_.only_calls(state)) {
    for (const Edge& edge : tables_.call_edges(state)) {
      const auto below = returns(stack);
      spend(1 + below.size());
      if (exhausted()) return;
      const StackId inner = ends(edge.target) ? intern_stack({below.begin(), below.end()})
                                              : intern_stack({{edge.target, stack}});
      arrive(made_.start(edge.ref), inner, out, calls_left - 1);
      if (tables_.rules[edge.ref].nullable) arrive(edge.target, stack, out, calls_left - 1);
    }
  } else {
    out.push_back({state, stack});
  }
}

ConfigId ParseStates::new_step(ConfigId id, std::uint8_t byte) {
  if (!bytes(id).has(byte)) return kDeadConfig;
  if (configs_[id].only_move != kUnknownMove) return configs_[id].only_move;
  const bool only = configs_[id].bytes.count() == 1;
  if (!only && !configs_[id].moves) configs_[id].moves = new_row();
  std::vector<Item> out;
  const Config& config = configs_[id];
  for (std::uint32_t i = config.scan; i < config.scan + config.scan_count && !exhausted(); ++i) {
    const auto edges = tables_.byte_edges(items_[i].state);
    spend(1 + edges.size() / 16);
    for (const Edge& edge : edges)
      if (edge.low <= byte && byte <= edge.high) arrive(edge.target, items_[i].stack, out);
  }
  const ConfigId next = config_of(std::move(out));
  if (exhausted()) return kDeadConfig;
  if (only) return configs_[id].only_move = next;
  return configs_[id].moves[tables_.byte_class[byte]] = next;
}

// Rows are allocated in chunks, because a single growing array would copy megabytes during a step.
ConfigId* ParseStates::new_row() {
  constexpr std::size_t kChunk = 4096;
  const auto classes = static_cast<std::size_t>(tables_.classes);
  if (moves_.empty() || moves_.back().capacity() - moves_.back().size() < classes)
    moves_.emplace_back().reserve(std::max(kChunk, classes));
  std::vector<ConfigId>& chunk = moves_.back();
  chunk.resize(chunk.size() + classes, kUnknownMove);
  byte_size_ += classes * sizeof(ConfigId);
  spend(classes / 16);
  return &chunk.back() + 1 - classes;
}

ConfigId ParseStates::step_token(ConfigId id, TokenId token) {
  std::vector<Item> out;
  const Config& config = closed(id);
  for (std::uint32_t i = config.scan; i < config.scan + config.scan_count; ++i)
    for (const Edge& edge : tables_.token_edges(items_[i].state))
      if (tables_.tokens[edge.ref] == token) arrive(edge.target, items_[i].stack, out);
  return config_of(std::move(out));
}

std::vector<TokenId> ParseStates::tokens(ConfigId id) {
  std::vector<TokenId> out;
  const Config& config = closed(id);
  for (std::uint32_t i = config.scan; i < config.scan + config.scan_count; ++i)
    for (const Edge& edge : tables_.token_edges(items_[i].state)) out.push_back(tables_.tokens[edge.ref]);
  return out;
}

int ParseStates::forced_byte(ConfigId id) {
  const Config& config = closed(id);
  if (config.accepting || config.bytes.count() != 1 || !tokens(id).empty()) return -1;
  int forced = -1;
  config.bytes.for_each([&](std::uint8_t byte) { forced = byte; });
  return forced;
}

// --- Closure: all items that can be reached without reading ---

void ParseStates::close(ConfigId id) {
  seen_items_.clear();
  scan_.clear();
  accepting_ = escapes_ = false;
  for (const Item item : kernel(id)) push(item);
  while (!work_.empty() && !exhausted()) {
    const Item item = work_.back();
    work_.pop_back();
    expand(item);
  }
  finish_stacks();
  for (Item& item : scan_) {
    item.stack = same_as(item.stack);
    if (item.stack & kFreshBit) item.stack = fresh_[item.stack & ~kFreshBit].id;
  }
  for (const FreshStack& stack : fresh_) fresh_of_rule_[stack.rule] = 0;
  fresh_.clear();
  work_.clear();
  if (exhausted()) return;
  sort_unique(scan_);

  Config& config = configs_[id];
  config.scan = append(scan_);
  config.scan_count = static_cast<std::uint32_t>(scan_.size());
  for (const Item item : scan_)
    for (const Edge& edge : tables_.byte_edges(item.state)) config.bytes.add(edge.low, edge.high);
  config.accepting = accepting_;
  config.escapes = escapes_;
  config.closed = true;
}

void ParseStates::push(Item item) {
  spend(1);
  if (item.state == kAcceptState) {
    accepting_ = true;
  } else if (item.state == kEscapeState) {
    escapes_ = true;
  } else if (is_new(item)) {
    seen_items_.push_back(item);
    work_.push_back(item);
  }
}

bool ParseStates::is_new(Item item) {
  // below this number, a linear search is faster than a hash table
  constexpr std::uint32_t kFew = 16;
  const auto count = static_cast<std::uint32_t>(seen_items_.size());
  if (count < kFew) return std::ranges::find(seen_items_, item) == seen_items_.end();
  const auto add = [&](Item added, std::uint32_t as) {
    return seen_.find_or_add(
        hash_of(added), [&](std::uint32_t i) { return seen_items_[i] == added; }, [&] { return as; });
  };
  if (count == kFew) {
    seen_.clear();
    for (std::uint32_t i = 0; i < kFew; ++i) add(seen_items_[i], i);
  }
  return add(item, count) == count;
}

void ParseStates::expand(Item item) {
  if (is_made(item.state)) return expand_made(item);
  if (tables_.states[item.state].accepting) leave(item.stack);
  if (!tables_.byte_edges(item.state).empty() || !tables_.token_edges(item.state).empty())
    scan_.push_back(item);
  for (const Edge& edge : tables_.call_edges(item.state)) {
    call(edge.ref, edge.target, item.stack);
    if (tables_.rules[edge.ref].nullable) push({edge.target, item.stack});
  }
}

void ParseStates::expand_made(Item item) {
  if (!made_.is_counter(item.state)) {
    const MadeStates::Parts now = made_.parts(item.state);
    if (made_.may_end(now)) leave(item.stack);
    made_.for_next(now, [&](RuleId part, StateId after) {
      spend(1);
      call(part, after, item.stack);
    });
    return;
  }
  const MadeStates::Counter now = made_.counter(item.state);
  if (now.min == 0) leave(item.stack);
  if (now.max == 0) return;
  const MadeStates::Counter after{now.rule, now.min - (now.min > 0),
                                  now.max == kUnbounded ? kUnbounded : now.max - 1};
  call(tables_.rules[now.rule].body, made_.of(after), item.stack);
}

void ParseStates::leave(StackId stack) {
  // This closure has called the rule, so the rule has read no byte and ends empty. expand() has already
  // continued after each call of a nullable rule.
  if (stack & kFreshBit) return;
  for (std::size_t i = 0; i < stacks_[stack].count; ++i) push(items_[stacks_[stack].first + i]);
}

void ParseStates::call(RuleId rule, StateId after, StackId stack) {
  std::uint32_t& index = fresh_of_rule_[rule];
  if (index == 0) {
    fresh_.push_back({rule, {}, {}});
    index = static_cast<std::uint32_t>(fresh_.size());
    push({made_.start(rule), kFreshBit | (index - 1)});
  }
  FreshStack& fresh = fresh_[fresh_of_rule_[rule] - 1];
  if (ends(after))
    fresh.includes.push_back(stack);
  else
    fresh.returns.push_back({after, stack});
}

std::vector<Item> ParseStates::full_returns(std::size_t index) {
  std::vector<Item> out;
  std::vector<std::size_t> work{index};
  std::vector<bool> seen(fresh_.size(), false);
  seen[index] = true;
  while (!work.empty()) {
    const FreshStack& fresh = fresh_[work.back()];
    work.pop_back();
    spend(1 + fresh.returns.size() + fresh.includes.size());
    if (exhausted()) break;
    out.insert(out.end(), fresh.returns.begin(), fresh.returns.end());
    for (const StackId include : fresh.includes) {
      const StackId id = same_as(include);
      if (!(id & kFreshBit)) {
        const auto items = returns(id);
        spend(items.size());
        if (exhausted()) break;
        out.insert(out.end(), items.begin(), items.end());
      } else if (const std::size_t next = id & ~kFreshBit; !seen[next]) {
        seen[next] = true;
        work.push_back(next);
      }
    }
  }
  sort_unique(out);
  return out;
}

// Assigns ids to the fresh stacks. A stack that returns to itself (left recursion) cannot be looked up by its
// content, so it always gets a new id. This makes no duplicates, because each configuration is closed only
// once.
void ParseStates::finish_stacks() {
  // A stack that only includes one other stack is replaced by that stack. Otherwise tail calls would form
  // chains as long as the grammar.
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    FreshStack& fresh = fresh_[i];
    const bool passes_on = fresh.returns.empty() && fresh.includes.size() == 1;
    fresh.same = passes_on ? same_as(fresh.includes[0]) : kFreshBit | static_cast<StackId>(i);
    if (!passes_on) open.push_back(i);
  }
  std::vector<std::vector<Item>> all(fresh_.size());
  for (const std::size_t i : open) all[i] = full_returns(i);
  const auto resolve = [&](std::vector<Item>& items) {
    bool complete = true;
    spend(items.size());
    for (Item& item : items) {
      item.stack = same_as(item.stack);
      if (!(item.stack & kFreshBit)) continue;
      const StackId id = fresh_[item.stack & ~kFreshBit].id;
      if (id == kNoStack)
        complete = false;
      else
        item.stack = id;
    }
    return complete;
  };
  for (std::size_t before = open.size() + 1; open.size() < before && !exhausted();) {
    before = open.size();
    std::erase_if(open, [&](std::size_t i) {
      if (!resolve(all[i])) return false;
      sort_unique(all[i]);
      fresh_[i].id = intern_stack(all[i]);
      return true;
    });
  }
  if (exhausted()) return;
  for (const std::size_t i : open) {
    fresh_[i].id = static_cast<StackId>(stacks_.size());
    stacks_.push_back({});
  }
  for (const std::size_t i : open) {
    resolve(all[i]);
    sort_unique(all[i]);
    stacks_[fresh_[i].id] = {append(all[i]), static_cast<std::uint32_t>(all[i].size())};
    byte_size_ += sizeof(Stack);
  }
}

}  // namespace octavo::grammar
