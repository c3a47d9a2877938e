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
  std::vector<Decimal> multiples, non_multiples;  // of each of these, and of none of these; all positive
  bool integers = true, fractions = true;
  bool has_divisors() const { return !multiples.empty() || !non_multiples.empty(); }
  bool exponents = false;  // a bound is written with one: all texts with exponents are open
};

enum class NumberProblem : std::uint8_t { multiple_of, too_large };

// The texts of numbers within the limits, as people write them. Integers are written without fraction and exponent. Where
// there are limits the exponent form has one digit before its point and a power of ten that lies within them whatever the
// other digits; what is before the exponent is within them, too, unless `exponents`. So a text that has begun can end soon:
// "7" is no beginning of 7e-1 between 0 and 1. Likewise -0 is left out where no other negative number fits, and so are long
// runs of zeros at a bound and fractions of more than 21 digits. Empty automaton: no number fits.
std::expected<ExprId, NumberProblem> number_text(Grammar& grammar, const NumberLimits& limits);
bool within(const NumberLimits& limits, const Decimal& value);

}  // namespace octavo::grammar
