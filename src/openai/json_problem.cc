#include "openai/json_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace octavo::openai {
namespace {

// Returns the first two hexadecimal digits of the escape \uXXXX at this position in lower case, or "" if
// there is no such escape.
std::string escape_at(std::string_view text, std::size_t at) {
  if (!text.substr(std::min(at, text.size())).starts_with("\\u") || at + 4 > text.size()) return "";
  std::string digits;
  for (const char c : text.substr(at + 2, 2))
    digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return digits;
}

bool is_high(std::string_view digits) { return digits >= "d8" && digits <= "db"; }
bool is_low(std::string_view digits) { return digits >= "dc" && digits <= "df"; }

// Returns whether an escape shortly before this position is an unpaired half of a surrogate pair.
bool half_pair_before(std::string_view text, std::size_t at) {
  constexpr std::size_t kEscape = 6;
  for (std::size_t i = at > 2 * kEscape ? at - 2 * kEscape : 0; i < at; ++i) {
    const std::string digits = escape_at(text, i);
    if (is_high(digits) && is_low(escape_at(text, i + kEscape))) {
      i += 2 * kEscape - 1;
      continue;
    }
    // The first escape in the loop may be the second half of a valid pair.
    const bool second = i >= kEscape && is_high(escape_at(text, i - kEscape));
    if (is_high(digits) || (is_low(digits) && !second)) return true;
  }
  return false;
}

// Returns the length in bytes of the UTF-8 character at this position, or 0 if the bytes are not UTF-8.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const int first = byte(at);
  const bool outside = (first >= 0x80 && first < 0xC2) || first > 0xF4;
  const std::size_t bytes = outside ? 0 : first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  return bytes;
}

// Returns whether the byte at this position belongs to an invalid UTF-8 character.
bool broken_character(std::string_view text, std::size_t at) {
  if (at >= text.size() || static_cast<unsigned char>(text[at]) < 0x80) return false;
  std::size_t start = at;
  while (start > 0 && at - start < 3 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start + character_bytes(text, start) <= at;
}

}  // namespace

std::string json_problem(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  for (const std::string_view name : {"NaN", "Infinity"})
    if (text.substr(at).starts_with(name))
      return fmt::format("{} is no JSON value: send a number, null, or leave the field out", name);
  if (half_pair_before(text, at)) return "an escape in a string is half of a surrogate pair";
  // The parser stops at a byte within the invalid character, or at the byte after it.
  const bool broken = broken_character(text, at) || (at > 0 && broken_character(text, at - 1));
  return broken ? "the text is not UTF-8" : "";
}

}  // namespace octavo::openai
