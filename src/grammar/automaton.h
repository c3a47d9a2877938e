// Finite automata whose edges read bytes, call rules or take whole tokens. Without calls and tokens an
// automaton is a regular language, and the set operations at the end of this file apply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kNoState = UINT32_MAX;

enum class Symbol : std::uint8_t { bytes, call, token };

struct Edge {
  Symbol symbol = Symbol::bytes;
  std::uint8_t low = 0;  // bytes low..high, both included
  std::uint8_t high = 0;
  std::uint32_t ref = 0;  // the rule called, or the index of the token atom
  StateId target = 0;
  auto operator<=>(const Edge&) const = default;
};

struct State {
  bool accepting = false;
  std::vector<Edge> edges;
};

// State 0 is the start. Every automaton here is free of epsilon edges; `deterministic` says whether byte
// ranges of one state are disjoint and no symbol occurs twice.
struct Automaton {
  std::vector<State> states;
  bool deterministic = true;
};

// A nondeterministic automaton under construction: fragments are joined with epsilon edges.
struct Nfa {
  struct Node {
    std::vector<Edge> edges;
    std::vector<StateId> epsilon;
  };
  std::vector<Node> nodes;

  StateId add();
  void epsilon(StateId from, StateId to) { nodes[from].epsilon.push_back(to); }
  void bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to);
};

// The same language without epsilon edges: deterministic and minimal unless that takes more than states_max
// states or too much work, in which case the nondeterministic automaton comes back. `work` is what may be
// spent, in nodes that are visited, and becomes what is left; nullopt when it does not suffice for the
// nondeterministic one either.
std::optional<Automaton> determinize(const Nfa& nfa, StateId start, StateId accept, std::size_t states_max,
                                     std::size_t& work);

// Merges states that no continuation tells apart.
Automaton minimize(Automaton automaton);

// Drops states that cannot be reached or from which no accepting state can be reached. The start state stays.
Automaton trim(const Automaton& automaton);

// States in an order where every edge leads backwards, or empty when there is a cycle.
std::vector<StateId> reverse_topological(const Automaton& automaton);

// --- regular languages: deterministic, bytes only ---

enum class Combine : std::uint8_t { intersection, difference };
// nullopt when the product has more than states_max states.
std::optional<Automaton> combine(const Automaton& a, const Automaton& b, Combine how, std::size_t states_max);

bool is_empty(const Automaton& automaton);
bool matches(const Automaton& automaton, std::string_view text);

// Sorts the strings and returns the bytes of their trie: what building their automaton costs.
std::size_t trie_bytes(std::vector<std::string>& strings);

// The automaton of a finite set of strings, minimal from the start (Daciuk et al. 2000). Sorts the strings.
Automaton automaton_of(std::vector<std::string> strings);

}  // namespace octavo::grammar
