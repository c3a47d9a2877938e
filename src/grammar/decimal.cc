#include "grammar/decimal.h"

#include <algorithm>
#include <charconv>

#include "grammar/limits.h"

namespace octavo::grammar {

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal d;
  if (text.starts_with('-')) {
    d.negative = true;
    text.remove_prefix(1);
  }
  int exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    text = text.substr(0, e);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      if (text.find_first_not_of("0.") != std::string_view::npos) return std::nullopt;
      exponent = 0;
    }
  }
  const auto dot = text.find('.');
  std::string digits(text.substr(0, dot));
  if (dot != std::string_view::npos) digits += text.substr(dot + 1);
  // The value is 0.DIGITS * 10^point.
  long point = static_cast<long>(std::min(dot, text.size())) + exponent;
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return Decimal{};
  digits.erase(0, first);
  point -= static_cast<long>(first);
  digits.erase(digits.find_last_not_of('0') + 1);
  constexpr auto kMax = static_cast<long>(kNumberDigitsMax);
  if (point > kMax || point < -kMax || digits.size() > kNumberDigitsMax) return std::nullopt;
  if (point <= 0) {
    d.fraction = std::string(static_cast<std::size_t>(-point), '0') + digits;
  } else if (static_cast<std::size_t>(point) >= digits.size()) {
    d.integer = digits + std::string(static_cast<std::size_t>(point) - digits.size(), '0');
  } else {
    d.integer = digits.substr(0, static_cast<std::size_t>(point));
    d.fraction = digits.substr(static_cast<std::size_t>(point));
  }
  return d;
}

Decimal Decimal::negated() const {
  Decimal d = *this;
  d.negative = !negative && !is_zero();
  return d;
}

std::optional<std::uint32_t> Decimal::count() const {
  if (negative || !is_integer()) return std::nullopt;
  if (integer.size() > 9) return kRepeatMax;
  std::uint32_t value = 0;
  for (const char c : integer) value = value * 10 + static_cast<std::uint32_t>(c - '0');
  return value;
}

std::optional<std::string> Decimal::scaled(std::size_t scale) const {
  if (fraction.size() > scale) return std::nullopt;
  return integer + fraction + std::string(scale - fraction.size(), '0');
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative != other.negative)
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  const Decimal& a = negative ? other : *this;
  const Decimal& b = negative ? *this : other;
  if (a.integer.size() != b.integer.size()) return a.integer.size() <=> b.integer.size();
  if (const auto c = a.integer <=> b.integer; c != 0) return c;
  return a.fraction <=> b.fraction;
}

std::uint64_t remainder(std::string_view digits, std::uint64_t divisor) {
  std::uint64_t r = 0;
  for (const char c : digits) r = (r * 10 + static_cast<std::uint64_t>(c - '0')) % divisor;
  return r;
}

}  // namespace octavo::grammar
