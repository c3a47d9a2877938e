// Finite automata, to which grammar rules are converted. An edge reads one byte, calls a rule, or reads one
// special token. An automaton whose edges only read bytes describes a regular language. Only such automata
// can be used for the set operations at the end of this file.
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
  std::uint8_t low = 0;  // inclusive range of bytes
  std::uint8_t high = 0;
  std::uint32_t ref = 0;  // called rule, or index of the token atom
  StateId target = 0;
  auto operator<=>(const Edge&) const = default;
};

// Edges of a state. Up to two edges need no heap memory: most states are inside literal text and have one
// edge.
using Edges = boost::container::small_vector<Edge, 2>;

struct State {
  bool accepting = false;
  Edges edges;
};

// An automaton without epsilon edges. State 0 is the start state. deterministic: the byte ranges of a state
// are disjoint, and no call or token occurs twice at a state.
struct Automaton {
  std::vector<State> states;
  bool deterministic = true;
};

// A nondeterministic automaton with epsilon edges, while it is built.
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

// Removes the epsilon edges. The result is deterministic and minimal. If such a result would need more than
// states_max states or too much work, the result is nondeterministic. work: number of nodes that the call may
// visit; the call subtracts the number of visited nodes. Returns nullopt if even a nondeterministic result
// needs more work.
std::optional<Automaton> determinize(const Nfa& nfa, StateId start, StateId accept, std::size_t states_max,
                                     std::size_t& work);

// Merges equivalent states. The automaton must be deterministic.
Automaton minimize(const Automaton& automaton);

// Removes states that cannot be reached from the start, and states from which no accepting state can be
// reached. Keeps the start state.
Automaton trim(const Automaton& automaton);

// For each state, the incoming edges for which wanted(from, edge) is true. `states` must outlive this object.
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
  // index in sources_ of each state's first edge; the last element is sources_.size()
  std::vector<std::size_t> begin_;
  std::vector<Source> sources_;
};

// Orders the states so that every edge leads to a state that is earlier in the list. Returns an empty list if
// there is a cycle.
std::vector<StateId> reverse_topological(const Automaton& automaton);

// --- Regular languages: deterministic automata that read only bytes ---

enum class Combine : std::uint8_t { intersection, difference };
// Returns nullopt if the product has more than states_max states.
std::optional<Automaton> combine(const Automaton& a, const Automaton& b, Combine how, std::size_t states_max);

bool is_empty(const Automaton& automaton);
bool matches(const Automaton& automaton, std::string_view text);

// Sorts the strings and returns the number of bytes in their trie. The time of automaton_of() is proportional
// to it.
std::size_t trie_bytes(std::vector<std::string>& strings);

// Returns the minimal automaton of a finite set of strings (Daciuk et al. 2000). Sorts the strings.
Automaton automaton_of(std::vector<std::string> strings);

}  // namespace octavo::grammar
