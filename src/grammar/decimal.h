// Exact decimal numbers of any size. JSON numbers are decimal, not floating point.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::grammar {

struct Decimal {
  bool negative = false;  // false if the value is zero
  std::string integer;    // digits without leading zeros; "" if it is 0
  std::string fraction;   // digits without trailing zeros

  // Returns nullopt if the number has more than kNumberDigitsMax digits without an exponent.
  static std::optional<Decimal> parse(std::string_view json_number);

  bool is_integer() const { return fraction.empty(); }
  bool is_zero() const { return integer.empty() && fraction.empty(); }
  Decimal negated() const;
  // Returns the value of a non-negative integer, at most 10^9; nullopt for other numbers.
  std::optional<std::uint32_t> count() const;
  // Returns the digits of value * 10^scale, or nullopt if that is not an integer.
  std::optional<std::string> scaled(std::size_t scale) const;

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
};

std::uint64_t remainder(std::string_view digits, std::uint64_t divisor);

}  // namespace octavo::grammar
