// Minimizes automata by merging equivalent states.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

#include "grammar/automaton.h"
#include "grammar/key_table.h"

namespace octavo::grammar {

namespace {

using Blocks = std::vector<std::uint32_t>;  // index: state

// Two states have equal signatures if their edges lead to the same blocks. The span from of() is valid until
// the next call.
class Signature {
 public:
  std::span<const std::uint32_t> of(const State& state, const Blocks& block) {
    key_.assign(1, state.accepting);
    std::size_t last_range = 0;
    for (const Edge& edge : state.edges) {
      const std::uint32_t target = block[edge.target];
      if (edge.symbol == Symbol::bytes) {
        if (last_range && key_[last_range + 1] == target && key_[last_range] % 256 + 1 == edge.low) {
          key_[last_range] = key_[last_range] / 256 * 256 + edge.high;
          continue;
        }
        last_range = key_.size();
        key_.push_back(edge.low * 256u + edge.high);
      } else {
        last_range = 0;
        key_.push_back((static_cast<std::uint32_t>(edge.symbol) << 28) + edge.ref);
      }
      key_.push_back(target);
    }
    return key_;
  }

 private:
  std::vector<std::uint32_t> key_;
};

// Splits a set of states into blocks of equivalent states. No edge may leave the set. Only states with a
// target in a renumbered block are examined again. When a block is split, its largest part keeps the block's
// number, so each state is examined only a logarithmic number of times (Hopcroft 1971; this version: Valmari
// and Franceschinis 2010).
class Refinement {
 public:
  Refinement(const Automaton& in, std::vector<StateId> states, Blocks& block)
      : in_(in),
        block_(block),
        order_(std::move(states)),
        index_(in.states.size(), kNoState),
        key_of_(index_) {
    for (std::uint32_t i = 0; i < order_.size(); ++i) index_[order_[i]] = i;
    sources_.emplace(in.states, [&](StateId from, const Edge&) { return index_[from] != kNoState; });
  }

  // Writes block[state] and returns the number of blocks.
  std::uint32_t run() {
    if (order_.empty()) return 0;
    for (const StateId state : order_) block_[state] = 0;
    ranges_.push_back({0, static_cast<std::uint32_t>(order_.size())});
    std::vector<StateId> changed = order_;
    while (!changed.empty()) {
      keys_.clear();
      for (const StateId state : changed)
        key_of_[state] = keys_.number(signature_.of(in_.states[state], block_));
      std::ranges::sort(changed, {}, [&](StateId s) { return std::tuple(block_[s], key_of_[s], index_[s]); });
      renumbered_.clear();
      for (std::size_t i = 0, end = 0; i < changed.size(); i = end) {
        for (end = i; end < changed.size() && block_[changed[end]] == block_[changed[i]];) ++end;
        split(std::span(changed).subspan(i, end - i));
      }
      next_changed(changed);
    }
    return static_cast<std::uint32_t>(ranges_.size());
  }

  StateId member(std::uint32_t block) const { return order_[ranges_[block].begin]; }

 private:
  struct Range {
    std::uint32_t begin, end;  // range in order_
    std::uint32_t size() const { return end - begin; }
  };

  // Splits a block by the new keys of its changed states. The signature of the unchanged states differs from
  // all these keys.
  void split(std::span<const StateId> changed) {
    const std::uint32_t old = block_[changed[0]];
    parts_.clear();
    std::uint32_t at = ranges_[old].begin;
    for (std::size_t i = 0; i < changed.size(); ++i, ++at) {
      if (i == 0 || key_of_[changed[i]] != key_of_[changed[i - 1]]) parts_.push_back({at, at});
      swap_to(changed[i], at);
      parts_.back().end = at + 1;
    }
    if (at < ranges_[old].end) parts_.push_back({at, ranges_[old].end});
    const auto largest = std::ranges::max_element(parts_, {}, &Range::size);
    ranges_[old] = *largest;
    for (auto part = parts_.begin(); part != parts_.end(); ++part) {
      if (part == largest) continue;
      for (std::uint32_t i = part->begin; i < part->end; ++i) {
        block_[order_[i]] = static_cast<std::uint32_t>(ranges_.size());
        renumbered_.push_back(order_[i]);
      }
      ranges_.push_back(*part);
    }
  }

  void swap_to(StateId state, std::uint32_t index) {
    const StateId other = order_[index];
    std::swap(order_[index_[state]], order_[index]);
    index_[other] = std::exchange(index_[state], index);
  }

  void next_changed(std::vector<StateId>& changed) {
    changed.clear();
    for (const StateId state : renumbered_)
      for (const auto& source : sources_->of(state)) changed.push_back(source.from);
    std::ranges::sort(changed);
    changed.erase(std::ranges::unique(changed).begin(), changed.end());
  }

  const Automaton& in_;
  Blocks& block_;
  std::vector<StateId> order_;        // states, grouped by block
  std::vector<std::uint32_t> index_;  // index in order_ of each state
  std::vector<std::uint32_t> key_of_;
  std::optional<Incoming> sources_;
  // ranges_: ranges of all blocks; parts_: parts of the block that is being split
  std::vector<Range> ranges_, parts_;
  std::vector<StateId> renumbered_;
  Signature signature_;
  KeyTable keys_;
};

// Replaces each block by one state, and joins adjacent byte ranges with the same target.
Automaton quotient(const Automaton& in, const Blocks& block, std::size_t blocks) {
  std::vector<StateId> number(blocks, kNoState);
  std::vector<StateId> order;
  Automaton out;
  out.deterministic = in.deterministic;
  const auto intern = [&](StateId state) {
    StateId& id = number[block[state]];
    if (id == kNoState) {
      id = static_cast<StateId>(order.size());
      order.push_back(state);
    }
    return id;
  };
  intern(0);
  for (StateId id = 0; id < order.size(); ++id) {
    State state{in.states[order[id]].accepting, {}};
    for (Edge edge : in.states[order[id]].edges) {
      edge.target = intern(edge.target);
      Edge* last = state.edges.empty() ? nullptr : &state.edges.back();
      if (last && edge.symbol == Symbol::bytes && last->symbol == Symbol::bytes &&
          last->high + 1 == edge.low && last->target == edge.target)
        last->high = edge.high;
      else
        state.edges.push_back(edge);
    }
    std::ranges::sort(state.edges);
    state.edges.erase(std::ranges::unique(state.edges).begin(), state.edges.end());
    out.states.push_back(std::move(state));
  }
  return out;
}

}  // namespace

Automaton minimize(const Automaton& in) {
  const std::size_t n = in.states.size();
  // Finds in topological order the states that cannot be reached from a cycle. For these states, one backward
  // pass is enough.
  std::vector<std::uint32_t> incoming(n, 0);
  for (const State& state : in.states)
    for (const Edge& edge : state.edges) ++incoming[edge.target];
  std::vector<StateId> straight, others;
  for (StateId id = 0; id < n; ++id)
    if (incoming[id] == 0) straight.push_back(id);
  for (std::size_t i = 0; i < straight.size(); ++i)
    for (const Edge& edge : in.states[straight[i]].edges)
      if (--incoming[edge.target] == 0) straight.push_back(edge.target);
  for (StateId id = 0; id < n; ++id)
    if (incoming[id] > 0) others.push_back(id);

  Blocks block(n, 0);
  Refinement refinement(in, std::move(others), block);
  const std::uint32_t blocks = refinement.run();
  KeyTable known;
  Signature signature;
  for (std::uint32_t b = 0; b < blocks; ++b)
    known.number(signature.of(in.states[refinement.member(b)], block));
  for (const StateId id : std::views::reverse(straight))
    block[id] = known.number(signature.of(in.states[id], block));
  return quotient(in, block, known.size());
}

}  // namespace octavo::grammar
