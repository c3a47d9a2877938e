// Converts nondeterministic automata to deterministic ones.
#include <algorithm>
#include <utility>

#include "grammar/automaton.h"
#include "grammar/key_table.h"

namespace octavo::grammar {

StateId Nfa::add() {
  nodes.emplace_back();
  return static_cast<StateId>(nodes.size() - 1);
}

void Nfa::bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to) {
  nodes[from].edges.push_back({Symbol::bytes, low, high, 0, to});
}

namespace {

// Follows epsilon edges from a set of nodes. Returns those reached nodes that are `accept` or have other
// edges, sorted.
class Closure {
 public:
  Closure(const Nfa& nfa, StateId accept) : nfa_(nfa), accept_(accept), seen_(nfa.nodes.size(), 0) {}

  // Returns the nodes that are reached from the set `from`. Valid until the next call.
  std::span<const StateId> of(std::span<const StateId> from) {
    ++round_;
    stack_.assign(from.begin(), from.end());
    found_.clear();
    while (!stack_.empty()) {
      const StateId id = stack_.back();
      stack_.pop_back();
      if (std::exchange(seen_[id], round_) == round_) continue;
      if (id == accept_ || !nfa_.nodes[id].edges.empty()) found_.push_back(id);
      stack_.insert(stack_.end(), nfa_.nodes[id].epsilon.begin(), nfa_.nodes[id].epsilon.end());
      ++visited;
    }
    std::ranges::sort(found_);
    return found_;
  }

  std::size_t visited = 0;  // nodes visited in all calls

 private:
  const Nfa& nfa_;
  StateId accept_;
  std::vector<std::uint32_t> seen_;
  std::vector<StateId> stack_, found_;
  std::uint32_t round_ = 0;
};

// Collects the edges of a set of nodes: the targets for each symbol or byte range.
class Moves {
 public:
  explicit Moves(const Nfa& nfa) : nfa_(nfa) {}

  void find(std::span<const StateId> set) {
    moves_.clear();
    targets_.clear();
    ranges_.clear();
    others_.clear();
    for (const StateId id : set)
      for (const Edge& edge : nfa_.nodes[id].edges)
        (edge.symbol == Symbol::bytes ? ranges_ : others_).push_back(edge);
    std::ranges::sort(ranges_);
    if (std::ranges::adjacent_find(ranges_, [](const Edge& a, const Edge& b) { return b.low <= a.high; }) ==
        ranges_.end())
      for (const Edge& edge : ranges_) add_run(edge.low, edge.high, std::span(&edge, 1));
    else
      find_overlapping();
    std::ranges::sort(others_);
    for (const Edge& edge : others_) {
      if (moves_.empty() || moves_.back().symbol.symbol != edge.symbol ||
          moves_.back().symbol.ref != edge.ref)
        moves_.push_back({Edge{edge.symbol, 0, 0, edge.ref, 0}, targets_.size(), targets_.size()});
      targets_.push_back(edge.target);
      moves_.back().end = targets_.size();
    }
  }

  // Calls visit(symbol, targets) for each symbol. Bytes come first, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Move& move : moves_)
      visit(move.symbol, std::span(targets_).subspan(move.begin, move.end - move.begin));
  }

 private:
  struct Move {
    Edge symbol;
    std::size_t begin, end;  // range in targets_
  };

  void find_overlapping() {
    cuts_.clear();
    for (const Edge& edge : ranges_) {
      cuts_.push_back(edge.low);
      cuts_.push_back(edge.high + 1u);
    }
    std::ranges::sort(cuts_);
    cuts_.erase(std::ranges::unique(cuts_).begin(), cuts_.end());
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i) {
      across_.clear();
      for (const Edge& edge : ranges_) {
        if (edge.low > cuts_[i]) break;
        if (edge.high >= cuts_[i]) across_.push_back(edge);
      }
      if (!across_.empty()) add_run(cuts_[i], cuts_[i + 1] - 1, across_);
    }
  }

  // Adds the byte range [low, high] with the targets of these edges, which all read this range.
  void add_run(unsigned low, unsigned high, std::span<const Edge> edges) {
    const auto begin = static_cast<std::ptrdiff_t>(targets_.size());
    for (const Edge& edge : edges) targets_.push_back(edge.target);
    std::sort(targets_.begin() + begin, targets_.end());
    targets_.erase(std::unique(targets_.begin() + begin, targets_.end()), targets_.end());
    if (!moves_.empty() && moves_.back().symbol.high + 1u == low &&
        std::equal(targets_.begin() + static_cast<std::ptrdiff_t>(moves_.back().begin),
                   targets_.begin() + begin, targets_.begin() + begin, targets_.end())) {
      moves_.back().symbol.high = static_cast<std::uint8_t>(high);
      targets_.resize(static_cast<std::size_t>(begin));
      return;
    }
    moves_.push_back(
        {Edge{Symbol::bytes, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), 0, 0},
         static_cast<std::size_t>(begin), targets_.size()});
  }

  const Nfa& nfa_;
  std::vector<Move> moves_;
  std::vector<StateId> targets_;
  std::vector<Edge> ranges_, others_, across_;
  std::vector<unsigned> cuts_;
};

std::optional<Automaton> subset_construction(const Nfa& nfa, StateId start, StateId accept,
                                             std::size_t states_max, std::size_t& work) {
  Closure closure(nfa, accept);
  Moves moves(nfa);
  KeyTable sets;
  Automaton out;
  const auto intern = [&](std::span<const StateId> set) {
    const StateId id = sets.number(set);
    if (id == out.states.size()) out.states.push_back({std::ranges::binary_search(set, accept), {}});
    return id;
  };
  intern(closure.of(std::span(&start, 1)));
  for (StateId id = 0; id < sets.size(); ++id) {
    if (sets.size() > states_max || closure.visited > work) {
      work -= std::min(work, closure.visited);
      return std::nullopt;
    }
    moves.find(sets[id]);
    moves.for_each([&](Edge edge, std::span<const StateId> targets) {
      edge.target = intern(closure.of(targets));
      out.states[id].edges.push_back(edge);
    });
  }
  work -= std::min(work, closure.visited);
  return out;
}

std::optional<Automaton> without_epsilon(const Nfa& nfa, StateId start, StateId accept, std::size_t& work) {
  Closure closure(nfa, accept);
  std::vector<StateId> number(nfa.nodes.size(), kNoState);
  std::vector<StateId> order;
  const auto intern = [&](StateId node) {
    if (number[node] == kNoState) {
      number[node] = static_cast<StateId>(order.size());
      order.push_back(node);
    }
    return number[node];
  };
  Automaton out;
  out.deterministic = false;
  intern(start);
  for (StateId id = 0; id < order.size(); ++id) {
    if (closure.visited > work) return std::nullopt;
    State state;
    const StateId node = order[id];
    for (const StateId reached : closure.of(std::span(&node, 1))) {
      if (reached == accept) state.accepting = true;
      for (Edge edge : nfa.nodes[reached].edges) {
        edge.target = intern(edge.target);
        state.edges.push_back(edge);
      }
    }
    std::ranges::sort(state.edges);
    state.edges.erase(std::ranges::unique(state.edges).begin(), state.edges.end());
    out.states.push_back(std::move(state));
  }
  work -= std::min(work, closure.visited);
  return out;
}

}  // namespace

std::optional<Automaton> determinize(const Nfa& nfa, StateId start, StateId accept, std::size_t states_max,
                                     std::size_t& work) {
  // Half of the work may be used for a deterministic result; the other half remains for a nondeterministic
  // result.
  std::size_t subsets = work / 2;
  work -= subsets;
  auto automaton = subset_construction(nfa, start, accept, states_max, subsets);
  work += subsets;
  if (automaton) return minimize(trim(*automaton));
  automaton = without_epsilon(nfa, start, accept, work);
  if (automaton) automaton = trim(*automaton);
  return automaton;
}

}  // namespace octavo::grammar
