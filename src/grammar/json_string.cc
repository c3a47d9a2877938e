#include "grammar/json_string.h"

#include <algorithm>
#include <array>
#include <map>

#include "grammar/limits.h"
#include "grammar/passes/passes.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

namespace {

ExprId hex_digit(Grammar& g) {
  ByteSet set = ByteSet::range('0', '9');
  for (unsigned c = 'a'; c <= 'f'; ++c) {
    set.add(c);
    set.add(c - 0x20);
  }
  return g.bytes(set);
}

ExprId byte_of(Grammar& g, std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.add(static_cast<unsigned char>(c));
  return g.bytes(set);
}

// Returns true if the expression contains a repetition that is too large to unroll.
bool has_large_repeat(const Grammar& grammar, const std::vector<std::size_t>& sizes, ExprId id) {
  if (sizes[id] <= kUnrollStatesMax) return false;
  if (std::holds_alternative<Repeat>(grammar.exprs[id].node)) return true;
  bool found = false;
  for_children(grammar.exprs[id],
               [&](ExprId child) { found = found || has_large_repeat(grammar, sizes, child); });
  return found;
}

CodePointSet plain_characters() {
  CodePointSet set;
  set.add(0x20, 0x21);
  set.add(0x23, 0x5B);
  set.add(0x5D, kCodePointMax);
  return set;
}

}  // namespace

ExprId string_character(Grammar& g) {
  const ExprId hex = hex_digit(g), d = byte_of(g, "dD");
  // The alternatives of `unicode`: \uXXXX not beginning with D, \uD0XX to \uD7XX, and pairs of surrogates.
  const ExprId not_d = g.choice({g.byte_range('0', '9'), byte_of(g, "abcefABCEF")});
  const ExprId low = g.byte_range('0', '7'), high = byte_of(g, "89abAB"), last = byte_of(g, "cdefCDEF");
  const ExprId unicode = g.choice(
      {g.sequence({g.literal("u"), not_d, hex, hex, hex}), g.sequence({g.literal("u"), d, low, hex, hex}),
       g.sequence({g.literal("u"), d, high, hex, hex, g.literal("\\u"), d, last, hex, hex})});
  const ExprId escape = g.sequence({g.literal("\\"), g.choice({byte_of(g, "\"\\/bfnrt"), unicode})});
  return g.choice({code_point_expr(g, plain_characters()), escape});
}

ExprId content_character(Grammar& g) {
  CodePointSet all;
  all.add(0, kCodePointMax);
  return code_point_expr(g, all);
}

namespace {

// Converts an automaton for contents to an automaton for spellings. The states of `contents` keep their
// numbers.
class Spelling {
 public:
  explicit Spelling(const Automaton& contents) : contents_(contents) {
    out_.states.resize(contents.states.size());
  }

  std::optional<Automaton> write() {
    for (StateId s = 0; s < contents_.states.size(); ++s) {
      if (out_.states.size() > kDfaStatesMax) return std::nullopt;
      out_.states[s].accepting = contents_.states[s].accepting;
      Escaped escaped;
      for (const Edge& edge : contents_.states[s].edges) {
        for (unsigned b = edge.low; b <= std::min<unsigned>(edge.high, 0x1F); ++b)
          escaped.control[b] = edge.target;
        if (edge.low <= '"' && '"' <= edge.high) escaped.quote = edge.target;
        if (edge.low <= '\\' && '\\' <= edge.high) escaped.backslash = edge.target;
        constexpr std::array<std::array<unsigned, 2>, 3> kPlain = {
            {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xFF}}};
        for (const auto& [low, high] : kPlain)
          if (const unsigned a = std::max<unsigned>(low, edge.low), b = std::min<unsigned>(high, edge.high);
              a <= b)
            link(s, a, b, edge.target);
      }
      if (escaped != Escaped{}) link(s, '\\', '\\', behind_backslash(escaped));
    }
    for (State& state : out_.states) std::ranges::sort(state.edges);
    return minimize(trim(out_));
  }

 private:
  struct Escaped {
    StateId quote = kNoState, backslash = kNoState;
    std::array<StateId, 0x20> control = [] {
      std::array<StateId, 0x20> none;
      none.fill(kNoState);
      return none;
    }();
    auto operator<=>(const Escaped&) const = default;
  };

  StateId add() {
    out_.states.emplace_back();
    return static_cast<StateId>(out_.states.size() - 1);
  }
  void link(StateId from, unsigned low, unsigned high, StateId to) {
    out_.states[from].edges.push_back(
        {Symbol::bytes, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), 0, to});
  }

  // Returns the state after a backslash. All states with equal `escaped` share it.
  StateId behind_backslash(const Escaped& escaped) {
    const auto [known, fresh] = escapes_.try_emplace(escaped);
    if (!fresh) return known->second;
    const StateId escape = known->second = add();
    if (escaped.quote != kNoState) link(escape, '"', '"', escaped.quote);
    if (escaped.backslash != kNoState) link(escape, '\\', '\\', escaped.backslash);
    constexpr std::string_view kNames = "bfnrt", kValues = "\b\f\n\r\t";
    for (std::size_t i = 0; i < kNames.size(); ++i)
      if (const StateId to = escaped.control[static_cast<std::size_t>(kValues[i])]; to != kNoState)
        link(escape, static_cast<unsigned>(kNames[i]), static_cast<unsigned>(kNames[i]), to);
    if (std::ranges::all_of(escaped.control, [](StateId to) { return to == kNoState; })) return escape;
    const StateId u = add(), zero = add(), zeros = add();
    link(escape, 'u', 'u', u);
    link(u, '0', '0', zero);
    link(zero, '0', '0', zeros);
    for (unsigned high = 0; high < 2; ++high) {
      const StateId digit = add();
      link(zeros, '0' + high, '0' + high, digit);
      for (unsigned low = 0; low < 16; ++low) {
        const StateId to = escaped.control[high * 16 + low];
        if (to == kNoState) continue;
        if (low < 10) link(digit, '0' + low, '0' + low, to);
        if (low >= 10) link(digit, 'A' + low - 10, 'A' + low - 10, to);
        if (low >= 10) link(digit, 'a' + low - 10, 'a' + low - 10, to);
      }
    }
    return escape;
  }

  const Automaton& contents_;
  Automaton out_;
  std::map<Escaped, StateId> escapes_;
};

}  // namespace

std::optional<Automaton> spelled(const Automaton& contents) { return Spelling(contents).write(); }

Automaton between_quotes(const Automaton& spellings) {
  Automaton out;
  const auto end = static_cast<StateId>(spellings.states.size() + 1);
  out.states.reserve(end + std::size_t{1});
  out.states.push_back({false, {{Symbol::bytes, '"', '"', 0, 1}}});
  for (const State& from : spellings.states) {
    State& state = out.states.emplace_back(State{false, from.edges});
    for (Edge& edge : state.edges) ++edge.target;
    if (from.accepting) state.edges.push_back({Symbol::bytes, '"', '"', 0, end});
    std::ranges::sort(state.edges);
  }
  out.states.push_back({true, {}});
  return out;
}

std::optional<ExprId> spelled(Grammar& grammar, const Grammar& contents, ExprId expr) {
  const std::vector<std::size_t> sizes = expression_sizes(contents);
  const auto write = [&](const auto& self, ExprId id) -> std::optional<ExprId> {
    const auto& node = contents.exprs[id].node;
    const auto all = [&](const std::vector<ExprId>& parts) -> std::optional<std::vector<ExprId>> {
      std::vector<ExprId> out;
      for (const ExprId part : parts) {
        const auto text = self(self, part);
        if (!text) return std::nullopt;
        out.push_back(*text);
      }
      return out;
    };
    const auto* repeat = std::get_if<Repeat>(&node);
    if (repeat && sizes[id] > kUnrollStatesMax) {
      const auto body = self(self, repeat->body);
      return body ? std::optional(grammar.repeat(*body, repeat->min, repeat->max)) : std::nullopt;
    }
    const auto* choice = std::get_if<Choice>(&node);
    const auto* sequence = std::get_if<Sequence>(&node);
    if ((choice || sequence) && has_large_repeat(contents, sizes, id)) {
      auto parts = all(choice ? choice->branches : sequence->parts);
      if (!parts) return std::nullopt;
      return choice ? grammar.choice(*std::move(parts)) : grammar.sequence(*std::move(parts));
    }
    auto automaton = regular_automaton(contents, id, kPatternStatesMax);
    if (automaton) automaton = spelled(*automaton);
    return automaton ? std::optional(grammar.leaf(*std::move(automaton))) : std::nullopt;
  };
  return write(write, expr);
}

}  // namespace octavo::grammar
