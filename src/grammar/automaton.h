// Finite automata whose edges read bytes, call rules or take whole tokens. An automaton without calls and
// tokens describes a regular language, and the set operations at the end of this file apply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/container/small_vector.hpp>

namespace octavo::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kNoState = UINT32_MAX;

enum class Symbol : std::uint8_t { bytes, call, token };

struct Edge {
  Symbol symbol = Symbol::bytes;
  std::uint8_t low = 0;  // bytes low..high, inclusive
  std::uint8_t high = 0;
  std::uint32_t ref = 0;  // the called rule, or the index of the token atom
  StateId target = 0;
  auto operator<=>(const Edge&) const = default;
};

// Most states of a grammar are inside literal text and have one edge.
using Edges = boost::container::small_vector<Edge, 2>;

struct State {
  bool accepting = false;
  Edges edges;
};

// State 0 is the start. No edge is an epsilon edge. deterministic: the byte ranges of a state are disjoint,
// and no symbol occurs twice.
struct Automaton {
  std::vector<State> states;
  bool deterministic = true;
};

// A nondeterministic automaton under construction. Epsilon edges join its fragments.
struct Nfa {
  struct Node {
    boost::container::small_vector<Edge, 1> edges;
    boost::container::small_vector<StateId, 2> epsilon;
  };
  std::vector<Node> nodes;

  StateId add();
  void epsilon(StateId from, StateId to) { nodes[from].epsilon.push_back(to); }
  void bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to);
};

// Removes epsilon edges. The result is deterministic and minimal, unless this needs more than states_max
// states or too much work; then it is nondeterministic. work: allowed number of visited nodes. It is reduced
// by the number used. nullopt: the work does not suffice for a nondeterministic automaton either.
std::optional<Automaton> determinize(const Nfa& nfa, StateId start, StateId accept, std::size_t states_max,
                                     std::size_t& work);

// Merges states with the same continuations. The automaton must be deterministic.
Automaton minimize(const Automaton& automaton);

// Drops states that cannot be reached or from which no accepting state can be reached. The start state stays.
Automaton trim(const Automaton& automaton);

// For each state, the edges that lead to it, if wanted(from, edge). The states must outlive it.
class Incoming {
 public:
  struct Source {
    StateId from;
    const Edge* edge;
  };

  template <class Wanted>
  Incoming(std::span<const State> states, Wanted&& wanted) : begin_(states.size() + 1, 0) {
    const auto for_each = [&](auto&& visit) {
      for (StateId s = 0; s < states.size(); ++s)
        for (const Edge& edge : states[s].edges)
          if (wanted(s, edge)) visit(s, edge);
    };
    for_each([&](StateId, const Edge& edge) { ++begin_[edge.target]; });
    for (std::size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
    sources_.resize(begin_.back());
    for_each([&](StateId s, const Edge& edge) { sources_[--begin_[edge.target]] = {s, &edge}; });
  }

  std::span<const Source> of(StateId state) const {
    return std::span(sources_).subspan(begin_[state], begin_[state + 1] - begin_[state]);
  }

 private:
  std::vector<std::size_t> begin_;  // index in sources_; has one more entry than there are states
  std::vector<Source> sources_;
};

// Orders the states so that every edge leads to an earlier state. Empty: the automaton has a cycle.
std::vector<StateId> reverse_topological(const Automaton& automaton);

// --- Regular languages: deterministic automata that read only bytes ---

enum class Combine : std::uint8_t { intersection, difference };
// nullopt: the product has more than states_max states.
std::optional<Automaton> combine(const Automaton& a, const Automaton& b, Combine how, std::size_t states_max);

bool is_empty(const Automaton& automaton);
bool matches(const Automaton& automaton, std::string_view text);

// Sorts the strings and returns the number of bytes in their trie, which is the cost of automaton_of().
std::size_t trie_bytes(std::vector<std::string>& strings);

// The minimal automaton of a finite set of strings (Daciuk et al. 2000). Sorts the strings.
Automaton automaton_of(std::vector<std::string> strings);

}  // namespace octavo::grammar
