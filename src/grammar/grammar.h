// A grammar: named rules whose bodies are expressions over bytes. The parsers of regex, EBNF, JSON Schema
// and so on create it, passes/ rewrites it, and CompiledGrammar converts it to automata: Grammar ->
// CompiledGrammar (with a Vocabulary) -> Matcher -> token mask.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"

namespace octavo::grammar {

using ExprId = std::uint32_t;
using RuleId = std::uint32_t;
inline constexpr std::uint32_t kUnbounded = UINT32_MAX;

struct ByteSet {
  std::uint64_t words[4] = {};
  bool operator==(const ByteSet&) const = default;

  static ByteSet range(unsigned low, unsigned high) {
    ByteSet set;
    set.add(low, high);
    return set;
  }
  void add(unsigned byte) { words[byte / 64] |= std::uint64_t{1} << (byte % 64); }
  void add(unsigned low, unsigned high) {
    for (unsigned i = low / 64; i <= high / 64; ++i) {
      const unsigned first = i == low / 64 ? low % 64 : 0, last = i == high / 64 ? high % 64 : 63;
      words[i] |= ~std::uint64_t{0} << first & ~std::uint64_t{0} >> (63 - last);
    }
  }
  bool has(unsigned byte) const { return words[byte / 64] >> (byte % 64) & 1; }
  std::size_t count() const {
    std::size_t n = 0;
    for (const std::uint64_t word : words) n += static_cast<std::size_t>(std::popcount(word));
    return n;
  }
  // Calls visit(byte) for each byte, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (unsigned i = 0; i < 4; ++i)
      for (std::uint64_t rest = words[i]; rest != 0; rest &= rest - 1)
        visit(static_cast<std::uint8_t>(64 * i + static_cast<unsigned>(std::countr_zero(rest))));
  }
};

// A special token such as <|eot_id|>, which is not part of the text. A grammar names it by its text, or by
// its id if `id` is not -1.
struct TokenAtom {
  std::string text;
  std::int32_t id = -1;
  auto operator<=>(const TokenAtom&) const = default;
};

struct Literal {
  std::string bytes;  // may be empty
};
struct Sequence {
  std::vector<ExprId> parts;
};
struct Choice {
  std::vector<ExprId> branches;  // if empty, no text matches
};
struct Repeat {
  ExprId body;
  std::uint32_t min, max;  // max: kUnbounded for no limit
};
struct Call {
  RuleId rule;
};
struct Token {
  TokenAtom atom;
};
struct Leaf {
  std::shared_ptr<const Automaton> automaton;  // its edges only read bytes
};
// An automaton whose edges are expressions. Node 0 is the start. For some rules, such as objects with
// optional members, a Graph is smaller than an expression of sequences and choices.
struct Graph {
  struct Arc {
    std::uint32_t from, to;
    std::optional<ExprId> label;  // nullopt: the arc reads nothing
  };
  std::vector<Arc> arcs;
  std::vector<std::uint32_t> accepting;
  std::uint32_t nodes = 1;
};

// Parts in any order with separators between them. Each part occurs at most once; `others` may occur several
// times. An AnyOrder must be the whole body of a rule, because the parser stores for each rule the set of
// parts that it has read. All expressions here are calls of rules that do not match the empty text.
struct AnyOrder {
  std::vector<ExprId> parts;
  std::vector<bool> required;  // required[i]: whether parts[i] must occur
  std::optional<ExprId> others;
  ExprId separator;
  // limits on the number of parts, including `others`; min >= 1; max: kUnbounded for no limit
  std::uint32_t min, max;
};

struct Expr {
  std::variant<Literal, ByteSet, Sequence, Choice, Repeat, Call, Token, Leaf, Graph, AnyOrder> node;
  int depth = 1;  // height of the expression tree
};

// The text of a rule is its body, repeated `min` to `max` times.
struct Rule {
  // position in the source, for error messages; "": messages use the name of a rule that calls this rule
  std::string name;
  ExprId body = 0;
  std::uint32_t min = 1, max = 1;
  // the rule is a JSON array with uniqueItems (unique_items.h)
  bool unique_items = false;
  bool counted() const { return min != 1 || max != 1; }
};

struct Grammar {
  std::vector<Expr> exprs;
  std::vector<Rule> rules;
  RuleId root = 0;

  RuleId rule(std::string name, ExprId body = 0);

  ExprId literal(std::string_view bytes);
  ExprId bytes(const ByteSet& set);
  ExprId byte_range(unsigned low, unsigned high) { return bytes(ByteSet::range(low, high)); }
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> branches);
  ExprId repeat(ExprId body, std::uint32_t min, std::uint32_t max);
  ExprId optional(ExprId body) { return repeat(body, 0, 1); }
  ExprId call(RuleId rule);
  ExprId token(TokenAtom atom);
  ExprId leaf(Automaton automaton);
  ExprId graph(Graph graph);
  // Adds a rule with these parts as its body, and returns a call of the rule.
  ExprId any_order(AnyOrder parts);
  ExprId empty() { return literal(""); }
  ExprId nothing() { return choice({}); }

  // Matches one code point of [low, high] in UTF-8, but no surrogates. Requires low <= high <= 0x10FFFF.
  ExprId code_points(std::uint32_t low, std::uint32_t high);

 private:
  ExprId add(Expr expr);
};

template <class Visit>
void for_children(const Expr& expr, Visit&& visit) {
  if (const auto* s = std::get_if<Sequence>(&expr.node)) {
    for (const ExprId id : s->parts) visit(id);
  } else if (const auto* c = std::get_if<Choice>(&expr.node)) {
    for (const ExprId id : c->branches) visit(id);
  } else if (const auto* r = std::get_if<Repeat>(&expr.node)) {
    visit(r->body);
  } else if (const auto* g = std::get_if<Graph>(&expr.node)) {
    for (const Graph::Arc& arc : g->arcs)
      if (arc.label) visit(*arc.label);
  } else if (const auto* a = std::get_if<AnyOrder>(&expr.node)) {
    for (const ExprId id : a->parts) visit(id);
    if (a->others) visit(*a->others);
    visit(a->separator);
  }
}

// Checks the limits of limits.h (expressions, rules, depth). All parsers of grammars call it at the end.
Result<Grammar> within_limits(Grammar grammar);

// Converts expressions to NFA states and edges.
struct NfaBuilder {
  const Grammar& grammar;
  Nfa nfa;
  std::size_t states_max;
  // the token atoms that build() has found; null: tokens and calls are not allowed
  std::vector<TokenAtom>* tokens = nullptr;

  // Adds states that read the expression between `from` and `to`. Returns false if there are too many
  // states, or if tokens or calls are not allowed but occur.
  bool build(ExprId expr, StateId from, StateId to);

 private:
  bool build_repeat(const Repeat& repeat, StateId from, StateId to);
  void build_leaf(const Automaton& automaton, StateId from, StateId to);
};

// Returns nullopt if the expression has calls or tokens, or if the automaton needs too many states or too
// much work. Adds the number of visited nodes to `cost`.
std::optional<Automaton> regular_automaton(const Grammar& grammar, ExprId expr, std::size_t states_max,
                                           std::size_t* cost = nullptr);

}  // namespace octavo::grammar
