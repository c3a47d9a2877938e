#include "grammar/word_boundaries.h"

#include <algorithm>
#include <array>

#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

// Returns an automaton for all texts with correct marks. \b is correct if exactly one of its neighbors is a
// word character (ASCII letter, digit, _); \B is correct elsewhere. A state stores whether the last character
// is a word character, and what the marks after it require of the next character.
Automaton right_marks() {
  enum Condition : StateId { nothing, boundary, no_boundary };
  constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 4> kWord = {{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}};
  const auto state = [](bool in_word, StateId condition) { return (in_word ? 3 : 0) + condition; };
  Automaton out;
  out.states.resize(6);
  for (const bool in_word : {false, true})
    for (const StateId condition : {nothing, boundary, no_boundary}) {
      State& from = out.states[state(in_word, condition)];
      const auto link = [&](unsigned low, unsigned high, StateId to) {
        from.edges.push_back(
            {Symbol::bytes, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), 0, to});
      };
      // next_in_word: whether the next character is a word character; false at the end of the text.
      const auto fits = [&](bool next_in_word) {
        return condition == nothing || (condition == boundary) == (next_in_word != in_word);
      };
      from.accepting = fits(false);
      unsigned low = 0;
      for (const auto& [first, last] : kWord) {
        if (fits(false)) link(low, first - 1U, state(false, nothing));
        if (fits(true)) link(first, last, state(true, nothing));
        low = last + 1U;
      }
      if (fits(false)) link(low, kNoBoundaryMark - 1U, state(false, nothing));
      if (condition != boundary) link(kNoBoundaryMark, kNoBoundaryMark, state(in_word, no_boundary));
      if (condition != no_boundary) link(kBoundaryMark, kBoundaryMark, state(in_word, boundary));
    }
  return out;
}

}  // namespace

bool has_boundaries(const RegexTree& tree) {
  return std::ranges::any_of(tree.nodes, [](const RegexNode& node) {
    return node.kind == RegexNode::Kind::boundary || node.kind == RegexNode::Kind::no_boundary;
  });
}

std::optional<Automaton> without_marks(Grammar& grammar, ExprId expr) {
  const auto marked = regular_automaton(grammar, expr, kDfaStatesMax);
  const auto right = marked ? combine(*marked, right_marks(), Combine::intersection, kDfaStatesMax) : std::nullopt;
  if (!right) return std::nullopt;
  Nfa nfa;
  for (std::size_t i = 0; i < right->states.size(); ++i) nfa.add();
  const StateId end = nfa.add();
  for (StateId s = 0; s < right->states.size(); ++s) {
    if (right->states[s].accepting) nfa.epsilon(s, end);
    for (const Edge& edge : right->states[s].edges) {
      // A range never contains both marks and other bytes, because marks do not occur in UTF-8.
      if (edge.low >= kNoBoundaryMark)
        nfa.epsilon(s, edge.target);
      else
        nfa.bytes(s, edge.low, edge.high, edge.target);
    }
  }
  std::size_t work = kRegularWorkMax;
  auto plain = determinize(nfa, 0, end, kDfaStatesMax, work);
  if (!plain || !plain->deterministic) return std::nullopt;
  return trim(*plain);
}

}  // namespace octavo::grammar
