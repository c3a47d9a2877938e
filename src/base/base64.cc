#include "base/base64.h"

#include <array>
#include <cstdint>

namespace octavo {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 255;

constexpr std::array<std::uint8_t, 256> values() {
  std::array<std::uint8_t, 256> table{};
  table.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    table[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return table;
}
constexpr std::array<std::uint8_t, 256> kValues = values();

// Programs such as base64(1) break their lines.
bool is_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  for (int padding = 0; !text.empty() && (is_break(text.back()) || (padding < 2 && text.back() == '='));
       text.remove_suffix(1))
    padding += text.back() == '=' ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_break(text[i])) continue;
    ++characters;
    const std::uint8_t value = kValues[static_cast<std::uint8_t>(text[i])];
    if (value == kNone) return invalid("", "character {} is not a base64 character", i);
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  if (characters % 4 == 1)
    return invalid("", "{} characters are not valid base64, because the length is wrong", characters);
  return bytes;
}

}  // namespace octavo
