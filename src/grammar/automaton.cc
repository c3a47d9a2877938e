#include "grammar/automaton.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "grammar/limits.h"

namespace octavo::grammar {

StateId Nfa::add() {
  nodes.emplace_back();
  return static_cast<StateId>(nodes.size() - 1);
}

void Nfa::bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to) {
  nodes[from].edges.push_back({Symbol::bytes, low, high, 0, to});
}

namespace {

struct HashOfIds {
  std::size_t operator()(const std::vector<StateId>& ids) const {
    std::size_t h = ids.size();
    for (const StateId id : ids) h = (h ^ id) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 29);
  }
};

// Follows epsilon edges from the ids in `set`; the result is sorted and holds only nodes with edges, and
// `accept`.
class Closure {
 public:
  Closure(const Nfa& nfa, StateId accept) : nfa_(nfa), accept_(accept), seen_(nfa.nodes.size(), 0) {}

  std::vector<StateId> of(std::span<const StateId> from) {
    ++round_;
    stack_.assign(from.begin(), from.end());
    std::vector<StateId> out;
    while (!stack_.empty()) {
      const StateId id = stack_.back();
      stack_.pop_back();
      if (std::exchange(seen_[id], round_) == round_) continue;
      if (id == accept_ || !nfa_.nodes[id].edges.empty()) out.push_back(id);
      stack_.insert(stack_.end(), nfa_.nodes[id].epsilon.begin(), nfa_.nodes[id].epsilon.end());
      ++visited;
    }
    std::ranges::sort(out);
    return out;
  }

  std::size_t visited = 0;  // nodes, in all calls

 private:
  const Nfa& nfa_;
  StateId accept_;
  std::vector<std::uint32_t> seen_;
  std::vector<StateId> stack_;
  std::uint32_t round_ = 0;
};

// One symbol (or run of bytes) out of a set of nodes, and the nodes it leads to.
struct Move {
  Edge symbol;
  std::vector<StateId> targets;
};

std::vector<Move> moves_of(const Nfa& nfa, std::span<const StateId> set) {
  std::vector<Edge> ranges;
  std::vector<Edge> others;
  for (const StateId id : set)
    for (const Edge& edge : nfa.nodes[id].edges)
      (edge.symbol == Symbol::bytes ? ranges : others).push_back(edge);

  std::vector<Move> moves;
  std::vector<unsigned> cuts;
  for (const Edge& edge : ranges) {
    cuts.push_back(edge.low);
    cuts.push_back(edge.high + 1u);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  std::ranges::sort(ranges);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Move move;
    for (const Edge& edge : ranges) {
      if (edge.low > cuts[i]) break;
      if (edge.high >= cuts[i]) move.targets.push_back(edge.target);
    }
    if (move.targets.empty()) continue;
    std::ranges::sort(move.targets);
    move.targets.erase(std::ranges::unique(move.targets).begin(), move.targets.end());
    const auto low = static_cast<std::uint8_t>(cuts[i]), high = static_cast<std::uint8_t>(cuts[i + 1] - 1);
    if (!moves.empty() && moves.back().targets == move.targets && moves.back().symbol.high + 1 == low)
      moves.back().symbol.high = high;
    else
      moves.push_back({Edge{Symbol::bytes, low, high, 0, 0}, std::move(move.targets)});
  }

  std::ranges::sort(others);
  for (const Edge& edge : others) {
    const Edge& last = moves.empty() ? edge : moves.back().symbol;
    if (moves.empty() || last.symbol != edge.symbol || last.ref != edge.ref)
      moves.push_back({Edge{edge.symbol, 0, 0, edge.ref, 0}, {}});
    moves.back().targets.push_back(edge.target);
  }
  return moves;
}

std::optional<Automaton> subset_construction(const Nfa& nfa, StateId start, StateId accept,
                                             std::size_t states_max, std::size_t& work) {
  Closure closure(nfa, accept);
  std::unordered_map<std::vector<StateId>, StateId, HashOfIds> ids;
  std::vector<const std::vector<StateId>*> sets;
  Automaton out;
  const auto intern = [&](std::vector<StateId> set) {
    const auto [it, fresh] = ids.try_emplace(std::move(set), static_cast<StateId>(ids.size()));
    if (fresh) {
      sets.push_back(&it->first);
      out.states.push_back({std::ranges::binary_search(it->first, accept), {}});
    }
    return it->second;
  };
  intern(closure.of(std::span(&start, 1)));
  for (StateId id = 0; id < sets.size(); ++id) {
    if (sets.size() > states_max || closure.visited > work) {
      work -= std::min(work, closure.visited);
      return std::nullopt;
    }
    for (Move& move : moves_of(nfa, *sets[id])) {
      const StateId target = intern(closure.of(move.targets));
      move.symbol.target = target;
      out.states[id].edges.push_back(move.symbol);
    }
  }
  work -= std::min(work, closure.visited);
  return out;
}

std::optional<Automaton> without_epsilon(const Nfa& nfa, StateId start, StateId accept, std::size_t& work) {
  Closure closure(nfa, accept);
  std::unordered_map<StateId, StateId> ids;
  std::vector<StateId> order;
  const auto intern = [&](StateId node) {
    const auto [it, fresh] = ids.try_emplace(node, static_cast<StateId>(order.size()));
    if (fresh) order.push_back(node);
    return it->second;
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

// Renumbers by class and joins neighbouring byte ranges that lead to the same state.
Automaton quotient(const Automaton& in, const std::vector<StateId>& block, std::size_t blocks) {
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

std::vector<StateId> reverse_topological(const Automaton& a) {
  const std::size_t n = a.states.size();
  std::vector<std::uint8_t> mark(n, 0);
  std::vector<StateId> order;
  std::vector<std::pair<StateId, std::size_t>> stack;
  for (StateId root = 0; root < n; ++root) {
    if (mark[root]) continue;
    mark[root] = 1;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      if (next == a.states[id].edges.size()) {
        mark[id] = 2;
        order.push_back(id);
        stack.pop_back();
        continue;
      }
      const StateId target = a.states[id].edges[next++].target;
      if (mark[target] == 1) return {};
      if (mark[target] == 0) {
        mark[target] = 1;
        stack.emplace_back(target, 0);
      }
    }
  }
  return order;
}

namespace {

// What tells a state apart, given the classes of its targets.
std::vector<StateId> signature(const State& state, const std::vector<StateId>& block) {
  std::vector<StateId> key{state.accepting};
  std::size_t last_range = 0;
  for (const Edge& edge : state.edges) {
    const StateId target = block[edge.target];
    if (edge.symbol == Symbol::bytes) {
      if (last_range && key[last_range + 1] == target && key[last_range] % 256 + 1 == edge.low) {
        key[last_range] = key[last_range] / 256 * 256 + edge.high;
        continue;
      }
      last_range = key.size();
      key.push_back(edge.low * 256u + edge.high);
    } else {
      last_range = 0;
      key.push_back((static_cast<StateId>(edge.symbol) << 28) + edge.ref);
    }
    key.push_back(target);
  }
  return key;
}

}  // namespace

Automaton minimize(Automaton in) {
  const std::size_t n = in.states.size();
  // The states that no cycle leads to, each before those it leads to. The others are told apart by rounds.
  std::vector<std::uint32_t> incoming(n, 0);
  for (const State& state : in.states)
    for (const Edge& edge : state.edges) ++incoming[edge.target];
  std::vector<StateId> straight, others;
  for (StateId id = 0; id < n; ++id)
    if (incoming[id] == 0) straight.push_back(id);
  for (std::size_t i = 0; i < straight.size(); ++i)
    for (const Edge& edge : in.states[straight[i]].edges)
      if (--incoming[edge.target] == 0) straight.push_back(edge.target);
  std::unordered_map<std::vector<StateId>, StateId, HashOfIds> classes;
  std::vector<StateId> block(n, 0);
  for (StateId id = 0; id < n; ++id)
    if (incoming[id] > 0) {
      others.push_back(id);
      block[id] = in.states[id].accepting;
    }
  std::size_t blocks = 0;
  // Each round visits all of them, and a long chain takes a round for each of its states.
  for (std::size_t visits = others.size(); !others.empty(); visits += others.size()) {
    if (visits > kMinimizeVisitsMax) return in;
    classes.clear();
    std::vector<StateId> refined(n);
    for (const StateId id : others) {
      std::vector<StateId> key = signature(in.states[id], block);
      key.push_back(block[id]);
      refined[id] = classes.try_emplace(std::move(key), static_cast<StateId>(classes.size())).first->second;
    }
    block = std::move(refined);
    if (classes.size() == blocks) break;
    blocks = classes.size();
  }
  classes.clear();
  for (const StateId id : others) classes.try_emplace(signature(in.states[id], block), block[id]);
  for (const StateId id : std::views::reverse(straight)) {
    const auto [it, fresh] =
        classes.try_emplace(signature(in.states[id], block), static_cast<StateId>(blocks));
    blocks += fresh;
    block[id] = it->second;
  }
  return quotient(in, block, blocks);
}

std::optional<Automaton> determinize(const Nfa& nfa, StateId start, StateId accept, std::size_t states_max,
                                     std::size_t& work) {
  // A part is kept for the nondeterministic automaton.
  std::size_t subsets = work / 2;
  work -= subsets;
  auto automaton = subset_construction(nfa, start, accept, states_max, subsets);
  work += subsets;
  if (automaton) return minimize(trim(*automaton));
  automaton = without_epsilon(nfa, start, accept, work);
  if (automaton) automaton = trim(*automaton);
  return automaton;
}

Automaton trim(const Automaton& in) {
  const std::size_t n = in.states.size();
  std::vector<std::vector<StateId>> sources(n);
  std::vector<StateId> work;
  std::vector<bool> live(n, false);
  for (StateId id = 0; id < n; ++id) {
    for (const Edge& edge : in.states[id].edges) sources[edge.target].push_back(id);
    if (in.states[id].accepting) {
      live[id] = true;
      work.push_back(id);
    }
  }
  while (!work.empty()) {
    const StateId id = work.back();
    work.pop_back();
    for (const StateId source : sources[id])
      if (!live[source]) {
        live[source] = true;
        work.push_back(source);
      }
  }
  std::vector<StateId> number(n, kNoState);
  std::vector<StateId> order{0};
  number[0] = 0;
  Automaton out;
  out.deterministic = in.deterministic;
  for (std::size_t i = 0; i < order.size(); ++i) {
    State state{in.states[order[i]].accepting, {}};
    for (Edge edge : in.states[order[i]].edges) {
      if (!live[edge.target]) continue;
      if (number[edge.target] == kNoState) {
        number[edge.target] = static_cast<StateId>(order.size());
        order.push_back(edge.target);
      }
      edge.target = number[edge.target];
      state.edges.push_back(edge);
    }
    out.states.push_back(std::move(state));
  }
  return out;
}

std::optional<Automaton> combine(const Automaton& a, const Automaton& b, Combine how,
                                 std::size_t states_max) {
  CHECK(a.deterministic && b.deterministic);
  using Pair = std::pair<StateId, StateId>;
  std::map<Pair, StateId> ids;
  std::vector<Pair> order;
  const auto intern = [&](Pair pair) {
    const auto [it, fresh] = ids.try_emplace(pair, static_cast<StateId>(order.size()));
    if (fresh) order.push_back(pair);
    return it->second;
  };
  intern({0, 0});
  Automaton out;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.size() > states_max) return std::nullopt;
    const auto [p, q] = order[i];
    const bool in_b = q != kNoState && b.states[q].accepting;
    State state{a.states[p].accepting && (how == Combine::intersection ? in_b : !in_b), {}};
    static const std::vector<Edge> kNone;
    const std::vector<Edge>& other = q == kNoState ? kNone : b.states[q].edges;
    for (const Edge& edge : a.states[p].edges) {
      unsigned low = edge.low;
      const auto emit = [&](unsigned high, StateId target) {
        if (target == kNoState && how == Combine::intersection) return;
        state.edges.push_back({Symbol::bytes, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high),
                               0, intern({edge.target, target})});
      };
      for (const Edge& second : other) {
        if (second.high < low) continue;
        if (second.low > edge.high) break;
        if (second.low > low) {
          emit(second.low - 1u, kNoState);
          low = second.low;
        }
        const unsigned high = std::min(edge.high, second.high);
        emit(high, second.target);
        low = high + 1;
        if (low > edge.high) break;
      }
      if (low <= edge.high) emit(edge.high, kNoState);
    }
    out.states.push_back(std::move(state));
  }
  return minimize(trim(out));
}

bool is_empty(const Automaton& automaton) {
  const Automaton live = trim(automaton);
  return !live.states[0].accepting && live.states[0].edges.empty();
}

bool matches(const Automaton& automaton, std::string_view text) {
  StateId state = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const auto& edges = automaton.states[state].edges;
    const auto it =
        std::ranges::find_if(edges, [&](const Edge& e) { return e.low <= byte && byte <= e.high; });
    if (it == edges.end()) return false;
    state = it->target;
  }
  return automaton.states[state].accepting;
}

namespace {

// Incremental construction from sorted words: only the path of the last word is not yet in the register.
class WordAutomaton {
 public:
  WordAutomaton() { states_.push_back({}); }

  void add(std::string_view word) {
    std::size_t common = 0;
    while (common < last_.size() && common < word.size() && last_[common] == word[common]) ++common;
    close(common);
    for (std::size_t i = common; i < word.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(word[i]);
      const auto fresh = static_cast<StateId>(states_.size());
      states_.push_back({});
      states_[path_[i]].edges.push_back({Symbol::bytes, byte, byte, 0, fresh});
      path_.push_back(fresh);
    }
    states_[path_.back()].accepting = true;
    last_ = word;
  }

  Automaton finish() {
    close(0);
    return trim(Automaton{std::move(states_), true});
  }

 private:
  // Replaces the path's states below `depth` by equal ones of the register.
  void close(std::size_t depth) {
    while (path_.size() - 1 > depth) {
      const StateId state = path_.back();
      path_.pop_back();
      std::vector<StateId> key{states_[state].accepting};
      for (const Edge& edge : states_[state].edges) key.insert(key.end(), {edge.low, edge.target});
      const auto [it, fresh] = register_.try_emplace(std::move(key), state);
      if (fresh) continue;
      states_[path_.back()].edges.back().target = it->second;
      if (state + 1 == states_.size()) states_.pop_back();
    }
  }

  std::vector<State> states_;
  std::vector<StateId> path_{0};
  std::string last_;
  std::unordered_map<std::vector<StateId>, StateId, HashOfIds> register_;
};

}  // namespace

std::size_t trie_bytes(std::vector<std::string>& strings) {
  std::ranges::sort(strings);
  std::size_t bytes = 0;
  std::string_view last;
  for (const std::string& text : strings) {
    bytes += text.size() - static_cast<std::size_t>(std::ranges::mismatch(last, text).in2 - text.begin());
    last = text;
  }
  return bytes;
}

Automaton automaton_of(std::vector<std::string> strings) {
  std::ranges::sort(strings);
  WordAutomaton words;
  for (const std::string& word : strings) words.add(word);
  return words.finish();
}

}  // namespace octavo::grammar
