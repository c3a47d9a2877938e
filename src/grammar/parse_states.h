// The parser: a generalized pushdown automaton over the automata of the rules, with a graph-structured stack
// (Tomita 1985). It is equivalent to Earley's algorithm (1970), but has stacks instead of origins. All data
// is interned, so equal situations have equal ids anywhere in a text. So the parser becomes a DFA that is
// built at run time: a step that was made before is one table lookup.
//
// An Item is one way to read the text so far: an automaton state and a stack. A configuration is the set of
// all items at one position of the text. A stack is the set of items to continue with after the current rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grammar/intern_table.h"
#include "grammar/limits.h"
#include "grammar/made_states.h"
#include "grammar/tables.h"

namespace octavo::grammar {

using ConfigId = std::uint32_t;
using StackId = std::uint32_t;
inline constexpr ConfigId kDeadConfig = 0;

struct Item {
  StateId state;
  StackId stack;
  auto operator<=>(const Item&) const = default;
};

// Not thread-safe.
class ParseStates {
 public:
  explicit ParseStates(const Tables& tables);

  static constexpr ConfigId kStartConfig = 1;
  ConfigId start() const { return kStartConfig; }
  // Returns kDeadConfig if no item continues with the byte.
  ConfigId step(ConfigId config, std::uint8_t byte) {
    if (const ConfigId* row = configs_[config].moves) {
      const ConfigId known = row[tables_.byte_class[byte]];
      if (known != kUnknownMove) return known;
    }
    return new_step(config, byte);
  }
  const ByteSet& bytes(ConfigId config) { return closed(config).bytes; }
  ConfigId step_token(ConfigId config, TokenId token);
  bool accepting(ConfigId config) { return closed(config).accepting; }
  // For configurations that began with isolated(): returns true if the first rule may have ended.
  bool escapes(ConfigId config) { return closed(config).escapes; }
  bool only_escapes(ConfigId config) const;
  std::vector<TokenId> tokens(ConfigId config);
  // Returns -1 if more than one byte, or none, can follow.
  int forced_byte(ConfigId config);

  std::span<const Item> kernel(ConfigId config) const {
    return std::span(items_).subspan(configs_[config].kernel, configs_[config].kernel_count);
  }
  std::span<const Item> returns(StackId stack) const {
    return std::span(items_).subspan(stacks_[stack].first, stacks_[stack].count);
  }
  // Returns true if the last byte, a '[', may begin an array with unique items.
  bool opens_unique(ConfigId config) const {
    return std::ranges::any_of(kernel(config), [&](Item item) {
      return item.state < made_base_ && tables_.states[item.state].opens_unique;
    });
  }
  ConfigId config_of(std::vector<Item> items);
  // Returns a configuration with one state and an unknown stack. When the state's rule ends, escapes() is
  // true.
  ConfigId isolated(StateId state) { return config_of({{state, kUnknownStack}}); }

  // Returns true for a state of made_states.h.
  bool is_made(StateId state) const { return state >= made_base_ && state < kEscapeState; }
  bool is_counter(StateId state) const { return is_made(state) && made_.is_counter(state); }
  MadeStates& made() { return made_; }

  static constexpr StateId kAcceptState = UINT32_MAX;  // end of the text
  static constexpr StateId kEscapeState = UINT32_MAX - 1;

  // Sets the work that the next operation may do. Following one item costs about one unit; visiting
  // `walk_share` trie nodes costs one unit. When no work is left, exhausted() is true, each step returns
  // kDeadConfig, incomplete results are deleted, and the operation must return an error.
  void allow(std::int64_t work, std::size_t walk_share = kWalkShare) {
    work_left_ = work;
    walk_share_ = walk_share;
  }
  void spend(std::size_t work) { work_left_ -= static_cast<std::int64_t>(work); }
  bool exhausted() const { return work_left_ < 0; }
  void give_up() { work_left_ = -1; }
  void spend_nodes(std::size_t nodes) { spend(nodes / walk_share_); }
  // Returns the number of trie nodes for which work is left.
  std::size_t nodes_left() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(work_left_, 0)) * walk_share_;
  }

  std::size_t byte_size() const {
    return byte_size_ + config_table_.byte_size() + stack_table_.byte_size() + made_.byte_size();
  }

 private:
  static constexpr StackId kRootStack = 0;
  static constexpr StackId kUnknownStack = 1;
  static constexpr StackId kNoStack = UINT32_MAX;
  static constexpr StackId kFreshBit = 1u << 31;  // marks indices in fresh_

  static constexpr ConfigId kUnknownMove = UINT32_MAX;

  struct Config {
    std::uint32_t kernel, kernel_count;
    // items that read a byte or token next
    std::uint32_t scan = 0, scan_count = 0;
    // row in moves_ with an element for each byte class
    ConfigId* moves = nullptr;
    // replaces `moves` if only one byte can follow
    ConfigId only_move = kUnknownMove;
    ByteSet bytes;
    bool closed = false, accepting = false, escapes = false;
  };
  struct Stack {
    std::uint32_t first, count;
  };
  // A stack that close() builds for a rule that it calls.
  struct FreshStack {
    RuleId rule;
    std::vector<Item> returns;
    // after tail calls: the stack also returns to the items of these stacks
    std::vector<StackId> includes;
    // this stack; or, if it includes one stack and has no `returns`, that stack
    StackId same = kNoStack;
    StackId id = kNoStack;
  };

  ConfigId new_step(ConfigId config, std::uint8_t byte);
  ConfigId* new_row();  // all moves of the row are unknown
  const Config& closed(ConfigId config) {
    if (!configs_[config].closed) close(config);
    return configs_[config];
  }
  void close(ConfigId config);
  void push(Item item);
  bool is_new(Item item);
  void expand(Item item);
  void leave(StackId stack);
  void call(RuleId rule, StateId after, StackId stack);
  void finish_stacks();
  StackId same_as(StackId stack) const { return stack & kFreshBit ? fresh_[stack & ~kFreshBit].same : stack; }
  std::vector<Item> full_returns(std::size_t fresh);
  StackId intern_stack(const std::vector<Item>& returns);
  // Adds an item. If its rule has ended, instead adds the items of its stack. If the state can only call
  // rules, instead adds the starts of these rules. So positions inside a rule have the same ids for all
  // callers, and share masks.
  void arrive(StateId state, StackId stack, std::vector<Item>& out, int calls_left = 3);
  void expand_made(Item item);
  bool ends(StateId state) const;
  std::uint32_t append(std::span<const Item> items);

  const Tables& tables_;
  const StateId made_base_;
  MadeStates made_;
  std::vector<Item> items_;  // storage of kernels, scans and stacks
  std::vector<Config> configs_;
  std::vector<Stack> stacks_;
  // rows of moves, in chunks that never move in memory
  std::vector<std::vector<ConfigId>> moves_;
  InternTable config_table_, stack_table_;
  std::int64_t work_left_ = kWorkMax;
  std::size_t walk_share_ = kWalkShare;
  std::size_t byte_size_ = 0;

  // Used only within close():
  std::vector<Item> work_;
  InternTable seen_;
  std::vector<Item> seen_items_;
  std::vector<Item> scan_;
  std::vector<FreshStack> fresh_;
  // index in fresh_ plus 1, for each rule; 0: no stack
  std::vector<std::uint32_t> fresh_of_rule_;
  bool accepting_ = false, escapes_ = false;
};

}  // namespace octavo::grammar
