// The texts of JSON numbers as regular languages.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "grammar/decimal.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

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

// The texts of all numbers within the limits. Integers are written without fraction and exponent. Where there
// are limits the exponent form has one digit before its point and a power of ten that lies within them
// whatever the other digits. Empty automaton: no number fits.
std::expected<ExprId, NumberProblem> number_text(Grammar& grammar, const NumberLimits& limits);
bool within(const NumberLimits& limits, const Decimal& value);

}  // namespace octavo::grammar
