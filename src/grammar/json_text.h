// The texts of JSON strings and numbers as regular languages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "grammar/decimal.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

// One character of a string in any of its spellings: itself, \n, \u000a, a surrogate pair.
ExprId string_character(Grammar& grammar);
// One character of a string's content: any code point, not escaped.
ExprId content_character(Grammar& grammar);

// Turns a language of contents into the language of their spellings between the quotes: characters that need
// no escape stand for themselves, the others may be written in every way JSON has. nullopt beyond the state
// limit.
std::optional<Automaton> spelled(const Automaton& contents);

struct NumberLimits {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };
  std::optional<Bound> min, max;
  std::vector<Decimal> multiples;  // of each of these, all positive
  bool integers = true, fractions = true;
};

enum class NumberProblem : std::uint8_t { multiple_of, too_large };

// The texts of all numbers within the limits. Integers are written without fraction, and the exponent form is
// left out wherever a limit must be checked. Empty automaton: no number fits.
std::expected<ExprId, NumberProblem> number_text(Grammar& grammar, const NumberLimits& limits);
bool within(const NumberLimits& limits, const Decimal& value);

}  // namespace octavo::grammar
