#include "grammar/automaton.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "grammar/key_table.h"

namespace octavo::grammar {

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

Automaton trim(const Automaton& in) {
  const std::size_t n = in.states.size();
  const Incoming sources(in.states, [](StateId, const Edge&) { return true; });
  std::vector<StateId> work;
  std::vector<bool> live(n, false);
  const auto mark = [&](StateId id) {
    if (live[id]) return;
    live[id] = true;
    work.push_back(id);
  };
  for (StateId id = 0; id < n; ++id)
    if (in.states[id].accepting) mark(id);
  while (!work.empty()) {
    const StateId id = work.back();
    work.pop_back();
    for (const Incoming::Source& source : sources.of(id)) mark(source.from);
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
  KeyTable pairs;
  const auto intern = [&](StateId p, StateId q) { return pairs.number(std::array{p, q}); };
  intern(0, 0);
  Automaton out;
  for (StateId id = 0; id < pairs.size(); ++id) {
    if (pairs.size() > states_max) return std::nullopt;
    const StateId p = pairs[id][0], q = pairs[id][1];
    const bool in_b = q != kNoState && b.states[q].accepting;
    State state{a.states[p].accepting && (how == Combine::intersection ? in_b : !in_b), {}};
    static const Edges kNone;
    const Edges& other = q == kNoState ? kNone : b.states[q].edges;
    for (const Edge& edge : a.states[p].edges) {
      unsigned low = edge.low;
      const auto emit = [&](unsigned high, StateId target) {
        if (target == kNoState && how == Combine::intersection) return;
        state.edges.push_back({Symbol::bytes, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high),
                               0, intern(edge.target, target)});
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

// Builds the minimal automaton of words, which are added in sorted order. register_ has all finished states.
// The states of the last added word may still change.
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
  // Finishes the states of the last word that are after its first `depth` bytes. Each is replaced by an equal
  // state of register_, or added to register_ if it has none.
  void close(std::size_t depth) {
    while (path_.size() - 1 > depth) {
      const StateId state = path_.back();
      path_.pop_back();
      key_.assign(1, states_[state].accepting);
      for (const Edge& edge : states_[state].edges) key_.insert(key_.end(), {edge.low, edge.target});
      const std::uint32_t number = register_.number(key_);
      if (number == registered_.size()) {
        registered_.push_back(state);
        continue;
      }
      states_[path_.back()].edges.back().target = registered_[number];
      if (state + 1 == states_.size()) states_.pop_back();
    }
  }

  std::vector<State> states_;
  std::vector<StateId> path_{0};
  std::string last_;
  KeyTable register_;  // signatures of the registered states
  // for each signature in register_, the state that has it
  std::vector<StateId> registered_;
  std::vector<std::uint32_t> key_;
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
