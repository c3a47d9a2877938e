#include "text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace octavo {
namespace {

// Properties of a code point that its first byte (lead byte) determines: its length, and the range of its
// second byte. Length 0: the byte cannot begin a code point.
struct Lead {
  std::size_t length;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

Lead lead(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// A complete code point, or the longest sequence (at least one byte) that could begin one.
struct Piece {
  std::size_t length;
  bool whole;
  bool cut_short;  // the text ends inside a code point
};

Piece next_piece(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const Lead first = lead(byte(0));
  if (first.length == 0) return {1, false, false};
  for (std::size_t i = 1; i < first.length; ++i) {
    if (i == text.size()) return {i, false, true};
    const std::uint8_t low = i == 1 ? first.second_min : 0x80;
    const std::uint8_t high = i == 1 ? first.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {i, false, false};
  }
  return {first.length, true, false};
}

}  // namespace

std::optional<std::size_t> invalid_utf8_at(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Piece piece = next_piece(text.substr(at));
    if (!piece.whole) return at;
    at += piece.length;
  }
  return std::nullopt;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t length = std::min<std::size_t>(3, text.size()); length > 0; --length) {
    const Piece piece = next_piece(text.substr(text.size() - length));
    if (piece.cut_short && piece.length == length) return length;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Piece piece = next_piece(text);
    out += piece.whole ? text.substr(0, piece.length) : std::string_view("\uFFFD");
    text.remove_prefix(piece.length);
  }
  return out;
}

}  // namespace octavo
