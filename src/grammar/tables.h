// The parser's tables: the states of all automata in one array, except states that do not lead to an
// accepting state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

// The parts of an AnyOrder that were read. Bit i % 32 of word i / 32 is part i.
using PartSet = std::vector<std::uint32_t>;
inline bool contains(const PartSet& set, std::size_t part) { return set[part / 32] >> (part % 32) & 1; }
inline void add_part(PartSet& set, std::size_t part) { set[part / 32] |= 1u << (part % 32); }

struct Tables {
  struct StateRow {
    // index in `edges` of the state's first edge; byte ranges are first, then calls, then tokens
    std::uint32_t edges;
    std::uint32_t bytes_end, calls_end, tokens_end;
    bool accepting;
    // whether the last byte was the '[' of a rule with unique_items
    bool opens_unique = false;
  };
  struct RuleRow {
    enum class Kind : std::uint8_t { automaton, counted, any_order };
    Kind kind;
    bool nullable;
    StateId start;
    // counted: the repeated rule; any_order: index in any_orders
    std::uint32_t body;
    std::uint32_t min, max;
  };
  struct AnyOrder {
    std::vector<RuleId> parts;
    PartSet required;
    std::optional<RuleId> others;
    RuleId separator;
    std::uint32_t min, max;
    PartSet no_parts() const { return PartSet(parts.size() / 32 + 1, 0); }
    // Returns the number of parts up to which the parser counts. Above it, the exact number makes no
    // difference.
    std::uint32_t count_max() const { return max == kUnbounded ? min : max; }
  };

  std::vector<StateRow> states;
  std::vector<Edge> edges;
  std::vector<RuleRow> rules;
  std::vector<AnyOrder> any_orders;
  std::vector<TokenId> tokens;  // tokens by index; the index is `ref` of a token edge
  RuleId root = 0;
  bool unique_items = false;

  // Two bytes have the same class if each edge reads both of them or none.
  std::array<std::uint8_t, 256> byte_class{};
  int classes = 0;

  const AnyOrder& any_order(RuleId rule) const { return any_orders[rules[rule].body]; }
  std::span<const Edge> byte_edges(StateId s) const { return between(states[s].edges, states[s].bytes_end); }
  std::span<const Edge> call_edges(StateId s) const {
    return between(states[s].bytes_end, states[s].calls_end);
  }
  std::span<const Edge> token_edges(StateId s) const {
    return between(states[s].calls_end, states[s].tokens_end);
  }
  // Returns true if the state is accepting and has no edges, so that the parser must return from the rule.
  bool ends(StateId s) const { return states[s].accepting && states[s].edges == states[s].tokens_end; }
  bool only_calls(StateId s) const {
    const StateRow& row = states[s];
    return !row.accepting && row.edges == row.bytes_end && row.calls_end == row.tokens_end &&
           row.calls_end > row.bytes_end && row.calls_end - row.bytes_end <= 4 && !row.opens_unique;
  }
  std::size_t byte_size() const;

 private:
  std::span<const Edge> between(std::uint32_t a, std::uint32_t b) const {
    return std::span(edges).subspan(a, b - a);
  }
};

// Returns an error if the grammar is too large, matches no text, or has tokens that the vocabulary lacks.
Result<Tables> make_tables(const Grammar& grammar, const Vocabulary& vocabulary);

}  // namespace octavo::grammar
