#include "grammar/grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/limits.h"

namespace octavo::grammar {

RuleId Grammar::rule(std::string name, ExprId body) {
  rules.push_back({std::move(name), body});
  return static_cast<RuleId>(rules.size() - 1);
}

ExprId Grammar::add(Expr expr) {
  for_children(expr, [&](ExprId child) { expr.depth = std::max(expr.depth, exprs[child].depth + 1); });
  exprs.push_back(std::move(expr));
  return static_cast<ExprId>(exprs.size() - 1);
}

ExprId Grammar::literal(std::string_view bytes) { return add({Literal{std::string(bytes)}}); }
ExprId Grammar::bytes(const ByteSet& set) { return add({set}); }

ExprId Grammar::sequence(std::vector<ExprId> parts) {
  return parts.size() == 1 ? parts[0] : add({Sequence{std::move(parts)}});
}

ExprId Grammar::choice(std::vector<ExprId> branches) {
  return branches.size() == 1 ? branches[0] : add({Choice{std::move(branches)}});
}

ExprId Grammar::repeat(ExprId body, std::uint32_t min, std::uint32_t max) {
  return min == 1 && max == 1 ? body : add({Repeat{body, min, max}});
}

ExprId Grammar::call(RuleId rule) { return add({Call{rule}}); }
ExprId Grammar::token(TokenAtom atom) { return add({Token{std::move(atom)}}); }
ExprId Grammar::leaf(Automaton automaton) {
  return add({Leaf{std::make_shared<const Automaton>(std::move(automaton))}});
}
ExprId Grammar::graph(Graph graph) { return add({std::move(graph)}); }
ExprId Grammar::any_order(AnyOrder parts) { return call(rule("", add({std::move(parts)}))); }

namespace {

std::array<unsigned, 4> utf8(std::uint32_t c, int length) {
  std::array<unsigned, 4> out{};
  for (int i = length - 1; i > 0; --i, c >>= 6) out[static_cast<std::size_t>(i)] = 0x80u | (c & 0x3Fu);
  constexpr unsigned kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = kLead[length] | c;
  return out;
}

// Splits a range of code points, whose UTF-8 forms all have `length` bytes, into ranges in which each byte
// varies independently.
void utf8_runs(Grammar& g, std::uint32_t low, std::uint32_t high, int length, std::vector<ExprId>& out) {
  for (int i = 1; i < length; ++i) {
    const std::uint32_t mask = (1u << (6 * i)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      utf8_runs(g, low, low | mask, length, out);
      return utf8_runs(g, (low | mask) + 1, high, length, out);
    }
    if ((high & mask) != mask) {
      utf8_runs(g, low, (high & ~mask) - 1, length, out);
      return utf8_runs(g, high & ~mask, high, length, out);
    }
  }
  const auto a = utf8(low, length), b = utf8(high, length);
  std::vector<ExprId> parts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i)
    parts.push_back(g.byte_range(a[i], b[i]));
  out.push_back(g.sequence(std::move(parts)));
}

}  // namespace

ExprId Grammar::code_points(std::uint32_t low, std::uint32_t high) {
  constexpr struct {
    std::uint32_t low, high;
    int length;
  } kRanges[] = {
      {0, 0x7F, 1}, {0x80, 0x7FF, 2}, {0x800, 0xD7FF, 3}, {0xE000, 0xFFFF, 3}, {0x10000, 0x10FFFF, 4}};
  std::vector<ExprId> runs;
  for (const auto& range : kRanges)
    if (const auto a = std::max(low, range.low), b = std::min(high, range.high); a <= b)
      utf8_runs(*this, a, b, range.length, runs);
  return choice(std::move(runs));
}

namespace {

// Returns the name of the rule that contains the expression. The body of a rule has a higher id than all
// its parts.
std::string rule_at(const Grammar& grammar, ExprId id) {
  const Rule* found = nullptr;
  for (const Rule& rule : grammar.rules)
    if (rule.body >= id && (!found || rule.body < found->body)) found = &rule;
  return found ? found->name : "";
}

}  // namespace

Result<Grammar> within_limits(Grammar grammar) {
  if (grammar.exprs.size() > kExprsMax)
    return failure(ErrorCode::invalid_argument,
                   "the grammar has {} expressions, the limit is {}; shorten the grammar (the limit is "
                   "reached in {:.200})",
                   grammar.exprs.size(), kExprsMax, rule_at(grammar, kExprsMax));
  if (grammar.rules.size() > kRulesMax)
    return failure(ErrorCode::invalid_argument, "the grammar has {} rules, the limit is {}; use fewer",
                   grammar.rules.size(), kRulesMax);
  for (const Expr& expr : grammar.exprs)
    if (expr.depth > kExprDepthMax)
      return failure(ErrorCode::invalid_argument,
                     "the expressions are nested {} deep, the limit is {}; flatten them", expr.depth,
                     kExprDepthMax);
  return grammar;
}

bool NfaBuilder::build(ExprId id, StateId from, StateId to) {
  if (nfa.nodes.size() > states_max) return false;
  const auto& node = grammar.exprs[id].node;
  if (const auto* literal = std::get_if<Literal>(&node)) {
    StateId at = from;
    for (const char c : literal->bytes) {
      const auto byte = static_cast<std::uint8_t>(c);
      const StateId next = nfa.add();
      nfa.bytes(at, byte, byte, next);
      at = next;
    }
    nfa.epsilon(at, to);
  } else if (const auto* set = std::get_if<ByteSet>(&node)) {
    for (unsigned low = 0; low < 256; ++low) {
      if (!set->has(low)) continue;
      unsigned high = low;
      while (high < 255 && set->has(high + 1)) ++high;
      nfa.bytes(from, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), to);
      low = high;
    }
  } else if (const auto* sequence = std::get_if<Sequence>(&node)) {
    StateId at = from;
    for (const ExprId part : sequence->parts) {
      const StateId next = nfa.add();
      if (!build(part, at, next)) return false;
      at = next;
    }
    nfa.epsilon(at, to);
  } else if (const auto* choice = std::get_if<Choice>(&node)) {
    for (const ExprId branch : choice->branches) {
      const StateId start = nfa.add();
      nfa.epsilon(from, start);
      if (!build(branch, start, to)) return false;
    }
  } else if (const auto* repeat = std::get_if<Repeat>(&node)) {
    return build_repeat(*repeat, from, to);
  } else if (const auto* leaf = std::get_if<Leaf>(&node)) {
    build_leaf(*leaf->automaton, from, to);
  } else if (const auto* graph = std::get_if<Graph>(&node)) {
    const auto base = static_cast<StateId>(nfa.nodes.size());
    nfa.nodes.resize(nfa.nodes.size() + graph->nodes);
    nfa.epsilon(from, base);
    for (const std::uint32_t end : graph->accepting) nfa.epsilon(base + end, to);
    for (const Graph::Arc& arc : graph->arcs) {
      if (!arc.label) {
        nfa.epsilon(base + arc.from, base + arc.to);
        continue;
      }
      const StateId start = nfa.add();
      nfa.epsilon(base + arc.from, start);
      if (!build(*arc.label, start, base + arc.to)) return false;
    }
  } else if (!tokens) {
    return false;
  } else if (const auto* call = std::get_if<Call>(&node)) {
    nfa.nodes[from].edges.push_back({Symbol::call, 0, 0, call->rule, to});
  } else if (std::holds_alternative<AnyOrder>(node)) {
    return false;  // an automaton cannot express AnyOrder
  } else {
    const TokenAtom& atom = std::get<Token>(node).atom;
    auto it = std::ranges::find(*tokens, atom);
    if (it == tokens->end()) it = tokens->insert(it, atom);
    nfa.nodes[from].edges.push_back(
        {Symbol::token, 0, 0, static_cast<std::uint32_t>(it - tokens->begin()), to});
  }
  return nfa.nodes.size() <= states_max;
}

bool NfaBuilder::build_repeat(const Repeat& repeat, StateId from, StateId to) {
  StateId at = from;
  const auto copy = [&]() -> bool {
    const StateId start = nfa.add(), next = nfa.add();
    nfa.epsilon(at, start);
    at = next;
    return build(repeat.body, start, next);
  };
  for (std::uint32_t i = 0; i < repeat.min; ++i)
    if (!copy()) return false;
  if (repeat.max == kUnbounded) {
    const StateId loop = nfa.add(), next = nfa.add();
    nfa.epsilon(at, loop);
    if (!build(repeat.body, loop, next)) return false;
    nfa.epsilon(next, loop);
    nfa.epsilon(loop, to);
    return true;
  }
  for (std::uint32_t i = repeat.min; i < repeat.max; ++i) {
    nfa.epsilon(at, to);
    if (!copy()) return false;
  }
  nfa.epsilon(at, to);
  return true;
}

void NfaBuilder::build_leaf(const Automaton& automaton, StateId from, StateId to) {
  const auto base = static_cast<StateId>(nfa.nodes.size());
  nfa.nodes.resize(nfa.nodes.size() + automaton.states.size());
  nfa.epsilon(from, base);
  for (StateId s = 0; s < automaton.states.size(); ++s) {
    for (Edge edge : automaton.states[s].edges) {
      edge.target += base;
      nfa.nodes[base + s].edges.push_back(edge);
    }
    if (automaton.states[s].accepting) nfa.epsilon(base + s, to);
  }
}

std::optional<Automaton> regular_automaton(const Grammar& grammar, ExprId expr, std::size_t states_max,
                                           std::size_t* cost) {
  NfaBuilder builder{grammar, {}, states_max * 40, nullptr};
  const StateId start = builder.nfa.add(), accept = builder.nfa.add();
  if (!builder.build(expr, start, accept)) {
    if (cost) *cost += 3 * builder.nfa.nodes.size();
    return std::nullopt;
  }
  std::size_t work = kRegularWorkMax;
  auto automaton = determinize(builder.nfa, start, accept, states_max, work);
  if (cost) *cost += kRegularWorkMax - work;
  if (automaton && !automaton->deterministic) return std::nullopt;
  return automaton;
}

}  // namespace octavo::grammar
