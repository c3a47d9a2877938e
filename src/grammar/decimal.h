// Exact decimal numbers of any size, for the numbers in JSON Schemas.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::grammar {

struct Decimal {
  bool negative = false;  // false for zero
  // digits without leading zeros; "" for 0
  std::string integer;
  std::string fraction;   // digits without trailing zeros

  // Returns nullopt if the number, written without an exponent, has more than kNumberDigitsMax digits.
  static std::optional<Decimal> parse(std::string_view json_number);

  bool is_integer() const { return fraction.empty(); }
  bool is_zero() const { return integer.empty() && fraction.empty(); }
  Decimal negated() const;
  // Returns nullopt unless the value is an integer from 0 to 10^9.
  std::optional<std::uint32_t> count() const;
  // Returns the digits of |value| * 10^scale, or nullopt if the product is not an integer.
  std::optional<std::string> scaled(std::size_t scale) const;

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
};

std::uint64_t remainder(std::string_view digits, std::uint64_t divisor);

}  // namespace octavo::grammar
