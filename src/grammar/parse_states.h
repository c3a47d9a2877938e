// The parser: a generalised pushdown automaton over rule automata, with graph-structured stacks (Tomita
// 1985). It is equivalent to Earley's sets (1970), with stacks instead of origins. All data is interned:
// equal situations have equal ids anywhere in the text. The parser is thus an automaton that is
// determinized at run time, and a known step is one table look-up.
//
// A configuration is the set of readings of the text so far. A reading (Item) is an automaton state and a
// stack. A stack is the set of items that called the current rule, in their states after the call.
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
  // Returns the configuration after the byte, or kDeadConfig if no reading continues.
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
  // Returns whether the text can have left the state in which `isolated` began.
  bool escapes(ConfigId config) { return closed(config).escapes; }
  bool only_escapes(ConfigId config) const;
  std::vector<TokenId> tokens(ConfigId config);
  // Returns the only byte that can follow, or -1.
  int forced_byte(ConfigId config);

  std::span<const Item> kernel(ConfigId config) const {
    return std::span(items_).subspan(configs_[config].kernel, configs_[config].kernel_count);
  }
  std::span<const Item> returns(StackId stack) const {
    return std::span(items_).subspan(stacks_[stack].first, stacks_[stack].count);
  }
  // Returns whether the last byte, a '[', can be the beginning of an array whose items must differ.
  bool opens_unique(ConfigId config) const {
    return std::ranges::any_of(kernel(config), [&](Item item) {
      return item.state < made_base_ && tables_.states[item.state].opens_unique;
    });
  }
  ConfigId config_of(std::vector<Item> items);
  // Returns the configuration with one state on an unknown stack. A return to this stack sets escapes().
  ConfigId isolated(StateId state) { return config_of({{state, kUnknownStack}}); }

  // Returns whether the state belongs to no automaton (made_states.h).
  bool is_made(StateId state) const { return state >= made_base_ && state < kEscapeState; }
  bool is_counter(StateId state) const { return is_made(state) && made_.is_counter(state); }
  MadeStates& made() { return made_; }

  static constexpr StateId kAcceptState = UINT32_MAX;  // end of the text
  static constexpr StateId kEscapeState = UINT32_MAX - 1;

  // Limits the work of an operation. One reading that the parser follows costs about one unit; walk_share
  // trie nodes cost one unit. At the limit, every step leads to kDeadConfig, partial results are deleted,
  // and the operation must fail.
  void allow(std::int64_t work, std::size_t walk_share = kWalkShare) {
    work_left_ = work;
    walk_share_ = walk_share;
  }
  void spend(std::size_t work) { work_left_ -= static_cast<std::int64_t>(work); }
  bool exhausted() const { return work_left_ < 0; }
  void give_up() { work_left_ = -1; }
  void spend_nodes(std::size_t nodes) { spend(nodes / walk_share_); }
  // Returns the number of trie nodes that the remaining work permits.
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
  static constexpr StackId kFreshBit = 1u << 31;  // marks stacks made in the current closure

  static constexpr ConfigId kUnknownMove = UINT32_MAX;

  struct Config {
    std::uint32_t kernel, kernel_count;
    std::uint32_t scan = 0, scan_count = 0;  // items that read a byte or token next
    ConfigId* moves = nullptr;               // row in moves_, with one entry per byte class
    ConfigId only_move = kUnknownMove;       // used instead of `moves` if only one byte can follow
    ByteSet bytes;                           // bytes that some item can read
    bool closed = false, accepting = false, escapes = false;
  };
  struct Stack {
    std::uint32_t first, count;
  };
  // A stack that the current closure builds for a called rule.
  struct FreshStack {
    RuleId rule;
    std::vector<Item> returns;
    std::vector<StackId> includes;  // from tail calls: this stack also returns to the items of these stacks
    StackId same = kNoStack;        // this stack, or the only stack to which it returns
    StackId id = kNoStack;
  };

  ConfigId new_step(ConfigId config, std::uint8_t byte);
  ConfigId* new_row();  // returns a row of unknown moves
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
  // Adds an item. If its rule has ended, it adds the items to which the rule returns instead. If the state
  // can only call one rule, it adds that rule. Positions inside a called rule thus have the ids of that
  // rule, whose masks are shared, and not those of the caller.
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
  std::vector<std::vector<ConfigId>> moves_;  // rows of moves, in chunks whose addresses stay valid
  InternTable config_table_, stack_table_;
  std::int64_t work_left_ = kWorkMax;
  std::size_t walk_share_ = kWalkShare;
  std::size_t byte_size_ = 0;

  // The members below are data of the current closure.
  std::vector<Item> work_;
  InternTable seen_;
  std::vector<Item> seen_items_;
  std::vector<Item> scan_;
  std::vector<FreshStack> fresh_;
  std::vector<std::uint32_t> fresh_of_rule_;  // index + 1 in fresh_, by rule; 0: no stack
  bool accepting_ = false, escapes_ = false;
};

}  // namespace octavo::grammar
