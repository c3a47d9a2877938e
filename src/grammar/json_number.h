// Converts limits on a JSON number to the regular language of its texts.
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
  // The number must be a multiple of all `multiples` and of none of `non_multiples`. All are positive.
  std::vector<Decimal> multiples, non_multiples;
  bool integers = true, fractions = true;
  bool has_divisors() const { return !multiples.empty() || !non_multiples.empty(); }
  // The schema writes a bound with an exponent, so texts with exponents are less restricted (see
  // number_text).
  bool exponents = false;
};

enum class NumberProblem : std::uint8_t { multiple_of, too_large };

// Returns an expression for the numbers within the limits, in common spellings. If no number is allowed, no
// text matches.
// * Integers have no fraction and no exponent.
// * With limits, a number with an exponent has one digit before the point. The exponent is only allowed if
//   all numbers with this exponent are within the limits.
// * Unless `exponents` is set, the text before the exponent must be within the limits, too. So with limits 0
//   and 1, "7" is not allowed as the beginning of 7e-1, and the model is not led into a long number.
// * Not included: -0 if no other negative number is allowed, long runs of zeros at a bound, and fractions
// of more than 21 digits.
std::expected<ExprId, NumberProblem> number_text(Grammar& grammar, const NumberLimits& limits);
bool within(const NumberLimits& limits, const Decimal& value);

}  // namespace octavo::grammar
